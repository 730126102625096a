#include "tools/petctl/text.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

namespace petacq::petctl {

namespace {

/// In the order of Style.
constexpr std::array escapes{"", "\x1b[1m", "\x1b[2m", "\x1b[32m", "\x1b[33m", "\x1b[1;31m"};

}  // namespace

std::size_t width_of(std::string_view text) {
    return static_cast<std::size_t>(std::count_if(
        text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
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

bool colour_wanted() {
    const char* no_colour = std::getenv("NO_COLOR");
    const char* terminal = std::getenv("TERM");
    return ::isatty(STDOUT_FILENO) == 1 && (no_colour == nullptr || *no_colour == '\0') &&
           !(terminal != nullptr && std::string_view(terminal) == "dumb");
}

}  // namespace petacq::petctl
