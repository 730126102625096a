// A pseudo-terminal, and what a person would see on it.
#pragma once

#include <termios.h>

#include <string>
#include <string_view>
#include <vector>

namespace petacq::test {

/// As much of a terminal as programs for TERM=xterm ask for. Text that does not fit is cut.
class Screen {
  public:
    void resize(std::size_t columns, std::size_t rows);
    void take(std::string_view bytes);
    /// Rows without the blanks at their ends.
    [[nodiscard]] std::string text() const;
    /// Sequences that it does not know: what is shown may be wrong.
    [[nodiscard]] const std::string& unknown() const { return unknown_; }

  private:
    using Cell = std::string;
    void character(std::string_view bytes);
    void sequence(const std::string& parameters, char final);
    void blank(std::size_t row, std::size_t from, std::size_t to);

    std::vector<std::vector<Cell>> rows_;
    std::size_t x_ = 0;
    std::size_t y_ = 0;
    std::string waiting_;  ///< the beginning of a sequence or character
    Cell last_ = " ";
    std::string unknown_;
};

/// Of 80 columns and 24 rows at first; good() is false where the system has none.
class PseudoTerminal {
  public:
    PseudoTerminal();
    PseudoTerminal(const PseudoTerminal&) = delete;
    PseudoTerminal& operator=(const PseudoTerminal&) = delete;
    ~PseudoTerminal();

    [[nodiscard]] bool good() const { return main_ >= 0; }
    [[nodiscard]] const std::string& name() const { return name_; }
    void resize(unsigned short columns, unsigned short rows);
    void type(const std::string& keys) const;
    /// Takes what has come, after a moment.
    void read();
    /// Everything that came, escape sequences included.
    [[nodiscard]] const std::string& bytes() const { return bytes_; }
    /// Waits until the bytes have come, or until the text stands on the screen; false when it does not.
    bool comes(const std::string& part);
    bool shows(const std::string& text);
    [[nodiscard]] const Screen& screen() const { return screen_; }
    /// Whether its modes are those it was made with.
    [[nodiscard]] bool as_it_was() const;

  private:
    int main_ = -1;
    int other_ = -1;  ///< held open, so that nothing is hung up between programs
    std::string name_;
    std::string bytes_;
    Screen screen_;
    termios modes_{};
};

}  // namespace petacq::test
