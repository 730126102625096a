// The terminal as a full-screen display, by ncurses.
#pragma once

#include <cstddef>

#include "tools/petctl/dashboard.hpp"
#include "tools/petctl/text.hpp"

namespace petacq::petctl {

/// The alternate screen, from construction to destruction; then the terminal is as it was. One at a time.
class Terminal {
  public:
    /// Throws OutputError when this terminal cannot.
    Terminal();
    Terminal(const Terminal&) = delete;
    Terminal& operator=(const Terminal&) = delete;
    ~Terminal();

    [[nodiscard]] std::size_t width() const;
    [[nodiscard]] std::size_t height() const;
    /// Whether the locale has block characters.
    [[nodiscard]] bool unicode() const { return unicode_; }

    void show(const Lines& lines);
    /// The next key that was pressed; false when there is none. Takes note of a changed size.
    bool read_key(Key& key);

  private:
    void* screen_;
    bool unicode_;
};

}  // namespace petacq::petctl
