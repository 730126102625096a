// Text in the HTML pages that the tools write.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "config/base/printable.hpp"

namespace petacq {

/// The text as HTML shows it, whatever it contains.
inline std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : config::printable(text, "\n\t\r")) {
        const std::size_t special = std::string_view("&<>\"").find(c);
        if (special != std::string_view::npos) {
            out += std::array{"&amp;", "&lt;", "&gt;", "&quot;"}[special];
        } else {
            out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
        }
    }
    return out;
}

}  // namespace petacq
