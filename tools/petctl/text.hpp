// Lines of text in a few styles, and tables of them. A terminal shows the styles; elsewhere they are left
// out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace petacq::petctl {

/// The standard output cannot be written, a file named on the command line cannot be read, or the terminal
/// cannot do what is asked of it.
class OutputError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

enum class Style : std::uint8_t { plain, title, faint, good, warning, bad };

struct Span {
    std::string text;
    Style style = Style::plain;
};

using Line = std::vector<Span>;
using Lines = std::vector<Line>;

/// Rows of cells; columns as wide as their widest cell, two blanks between them.
struct Table {
    std::vector<bool> left;  ///< per column: to the left; the others to the right
    std::vector<Line> rows;  ///< each as long as `left`
};

/// Columns that UTF-8 text takes: one for each code point.
std::size_t width_of(std::string_view text);
/// A line for each row, with two blanks in front.
Lines table_lines(const Table& table);
/// "  label            value", aligned among each other.
Line labelled(std::string_view label, std::string value, Style style = Style::plain);

/// One string, with line ends; escape sequences for the styles when `colour`.
std::string joined(const Lines& lines, bool colour);
/// Whether escape sequences may go to the standard output: a terminal that is not dumb, and NO_COLOR not set.
bool colour_wanted();

}  // namespace petacq::petctl
