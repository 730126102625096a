// A pseudo-terminal and its screen.
#pragma once

#include <termios.h>

#include <string>
#include <string_view>
#include <vector>

namespace petacq::test {

/// The part of a terminal that programs for TERM=xterm use. Text that does not fit is cut.
class Screen {
  public:
    void resize(std::size_t columns, std::size_t rows);
    void take(std::string_view bytes);
    /// Rows without the blanks at their ends.
    [[nodiscard]] std::string text() const;
    /// Unknown sequences, after which the screen may be wrong.
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

/// Starts with 80 columns and 24 rows. good() is false if the system has no pseudo-terminals.
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
    /// Waits a moment and takes what has arrived.
    void read();
    /// Everything that arrived, including escape sequences.
    [[nodiscard]] const std::string& bytes() const { return bytes_; }
    /// Waits until the bytes arrive, or until the text is on the screen; false if it does not happen in time.
    bool comes(const std::string& part);
    bool shows(const std::string& text);
    [[nodiscard]] const Screen& screen() const { return screen_; }
    /// Whether its modes are the initial ones.
    [[nodiscard]] bool as_it_was() const;

  private:
    int main_ = -1;
    int other_ = -1;  ///< held open, so that the terminal does not hang up between programs
    std::string name_;
    std::string bytes_;
    Screen screen_;
    termios modes_{};
};

}  // namespace petacq::test
