#include "tools/petctl/text/text.hpp"

#include <fmt/core.h>
#include <langinfo.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <clocale>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <utility>

#include "config/base/colour.hpp"

namespace petacq::petctl {

namespace {

/// In the order of Style.
constexpr std::array escapes{
    "", "\x1b[1m", "\x1b[2m", config::colour::good, config::colour::warning, config::colour::bad};

}  // namespace

void append(Lines& lines, Lines more) {
    std::move(more.begin(), more.end(), std::back_inserter(lines));
}

std::size_t width_of(std::string_view text) {
    return static_cast<std::size_t>(std::count_if(
        text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::size_t bytes_of(std::string_view text, std::size_t columns) {
    std::size_t i = 0;
    for (; i < text.size(); ++i) {
        const bool begins = (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80;
        if (begins && columns-- == 0) break;
    }
    return i;
}

Lines table_lines(const Table& table) {
    std::vector<std::size_t> widths(table.left.size(), 0);
    for (const Line& row : table.rows) {
        for (std::size_t i = 0; i < row.size(); ++i)
            widths[i] = std::max(widths[i], width_of(row[i].text));
    }
    Lines lines;
    for (const Line& row : table.rows) {
        Line line;
        std::size_t last = row.size();
        while (last > 1 && row[last - 1].text.empty())
            --last;
        for (std::size_t i = 0; i < last; ++i) {
            const std::string pad(widths[i] - width_of(row[i].text), ' ');
            line.push_back({table.left[i] ? "  " : "  " + pad});
            line.push_back(row[i]);
            if (table.left[i] && i + 1 < last) line.push_back({pad});
        }
        lines.push_back(std::move(line));
    }
    return lines;
}

Line labelled(std::string_view label, std::string value, Style style) {
    return {{fmt::format("  {:<16}  ", label)}, {std::move(value), style}};
}

std::vector<std::string> wrapped(const std::string& text, std::size_t width) {
    std::vector<std::string> lines;
    for (const Line& line : wrapped(Line{{text}}, width, 0)) {
        lines.emplace_back();
        for (const Span& span : line)
            lines.back() += span.text;
    }
    return lines;
}

Lines wrapped(const Line& line, std::size_t width, std::size_t indent) {
    Lines lines{{}};
    std::size_t column = 0;
    for (const Span& span : line) {
        std::size_t begin = 0;
        while (begin < span.text.size()) {
            // A word with the blanks before it.
            const std::size_t word = std::min(span.text.find_first_not_of(' ', begin), span.text.size());
            const std::size_t end = std::min(span.text.find(' ', word), span.text.size());
            std::string piece = span.text.substr(begin, end - begin);
            const bool starts_here = word > begin && column > indent;
            if (starts_here && column + width_of(piece) > width) {
                lines.push_back({{std::string(indent, ' ')}});
                column = indent;
                piece.erase(0, word - begin);
            }
            column += width_of(piece);
            lines.back().push_back({std::move(piece), span.style});
            begin = end;
        }
    }
    return lines;
}

Line clipped(Line line, std::size_t width) {
    std::size_t whole = 0;
    for (const Span& span : line)
        whole += width_of(span.text);
    if (whole <= width || width < 3) return line;
    std::size_t left = width - 3;
    for (Span& span : line) {
        const std::size_t columns = std::min(left, width_of(span.text));
        span.text.resize(bytes_of(span.text, columns));
        left -= columns;
    }
    line.push_back({"..."});
    return line;
}

std::string joined(const Lines& lines, bool colour) {
    std::string text;
    for (const Line& line : lines) {
        for (const Span& span : line) {
            const char* escape =
                colour && !span.text.empty() ? escapes.at(static_cast<std::size_t>(span.style)) : "";
            text += escape + span.text;
            if (*escape != '\0') text += "\x1b[0m";
        }
        text += '\n';
    }
    return text;
}

void print(const std::string& text) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
        throw OutputError("cannot write to standard output");
}

bool unicode_wanted() {
    std::setlocale(LC_CTYPE, "");
    return std::strcmp(::nl_langinfo(CODESET), "UTF-8") == 0;
}

std::size_t output_width() {
    winsize size{};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
    return std::clamp<std::size_t>(size.ws_col, 40, 160);
}

bool colour_wanted() {
    return config::colour_wanted(STDOUT_FILENO);
}

}  // namespace petacq::petctl
