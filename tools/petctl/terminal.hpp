// The terminal as a full-screen display (ncurses).
#pragma once

#include <cstddef>
#include <string>

#include "tools/petctl/text/dashboard.hpp"
#include "tools/petctl/text/text.hpp"

namespace petacq::petctl {

/// Shows the alternate screen during its life, then restores the terminal. Only one may exist.
class Terminal {
  public:
    /// Throws OutputError if the terminal does not support it.
    Terminal();
    Terminal(const Terminal&) = delete;
    Terminal& operator=(const Terminal&) = delete;
    ~Terminal();

    [[nodiscard]] std::size_t width() const;
    [[nodiscard]] std::size_t height() const;
    /// Whether the locale has block characters.
    [[nodiscard]] bool unicode() const { return unicode_; }

    void show(const Lines& lines);
    /// The title of the window, until the end of the display. Nothing, where windows have no title. `text`
    /// has no control characters.
    void title(const std::string& text);
    /// The next key that was pressed; false if there is none. Also notices a change of the size.
    bool read_key(KeyPress& key);

  private:
    void* screen_;
    bool unicode_;
    std::string title_;  ///< the latest; empty: the terminal has its own
};

}  // namespace petacq::petctl
