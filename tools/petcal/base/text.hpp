// Text for people.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace petacq::petcal {

/// Indented, one a line; how many more there are after the first 20.
inline std::string first_lines(const std::vector<std::string>& lines) {
    constexpr std::size_t most = 20;
    std::string text;
    for (std::size_t i = 0; i < std::min(most, lines.size()); ++i)
        text += "  " + lines[i] + "\n";
    if (lines.size() > most) text += "  and " + std::to_string(lines.size() - most) + " more\n";
    return text;
}

}  // namespace petacq::petcal
