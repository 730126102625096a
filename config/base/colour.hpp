// Colours on terminals. See https://no-color.org for NO_COLOR.
#pragma once

#include <string>
#include <string_view>

namespace petacq::config {

namespace colour {
inline constexpr const char* good = "\x1b[32m";
inline constexpr const char* warning = "\x1b[33m";
inline constexpr const char* bad = "\x1b[1;31m";
}  // namespace colour

/// Whether the descriptor leads to a terminal that has colours, and the user has not set NO_COLOR.
bool colour_wanted(int descriptor);

/// The text in that colour, if `wanted`.
inline std::string coloured(std::string_view text, const char* colour, bool wanted) {
    return wanted ? std::string(colour) + std::string(text) + "\x1b[0m" : std::string(text);
}

}  // namespace petacq::config
