// Styled lines of text, and tables. Styles appear on a terminal only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace petacq::petctl {

/// Standard output cannot be written, a file named on the command line cannot be read, or the terminal lacks
/// a function.
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

void append(Lines& lines, Lines more);

/// Rows of cells. Each column is as wide as its widest cell; two blanks separate columns.
struct Table {
    std::vector<bool> left;  ///< per column: aligned to the left; otherwise to the right
    std::vector<Line> rows;  ///< each as long as `left`
};

/// Width of UTF-8 text in columns: one for each code point.
std::size_t width_of(std::string_view text);
/// The bytes of the first `columns` characters.
std::size_t bytes_of(std::string_view text, std::size_t columns);
/// A line for each row, with two blanks in front.
Lines table_lines(const Table& table);
/// "  label            value", with all values in one column.
Line labelled(std::string_view label, std::string value, Style style = Style::plain);

/// The text in lines of at most `width` columns, divided at blanks; a longer word has a line of its own.
std::vector<std::string> wrapped(const std::string& text, std::size_t width);
/// The same with styles; lines after the first begin with `indent` blanks.
Lines wrapped(const Line& line, std::size_t width, std::size_t indent);
/// The line, or its first `width` columns with "..." at their end.
Line clipped(Line line, std::size_t width);

/// The lines as one string, with escape sequences for the styles if `colour`.
std::string joined(const Lines& lines, bool colour);
/// Whether the locale of the environment has characters besides ASCII.
bool unicode_wanted();
/// Columns of the terminal that is the standard output, from 40 to 160; 80 elsewhere.
std::size_t output_width();
/// Writes to the standard output at once. Throws OutputError.
void print(const std::string& text);
/// Whether escape sequences may go to the standard output: a terminal that is not dumb, and NO_COLOR not set.
bool colour_wanted();

}  // namespace petacq::petctl
