// Text for people.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
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

/// "0 to 3, 7"
inline std::string ranges_text(const std::vector<std::uint32_t>& numbers) {
    std::string out;
    for (std::size_t i = 0; i < numbers.size();) {
        std::size_t last = i;
        while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1)
            ++last;
        out += (out.empty() ? "" : ", ") + std::to_string(numbers[i]);
        if (last > i) out += " to " + std::to_string(numbers[last]);
        i = last + 1;
    }
    return out;
}

}  // namespace petacq::petcal
