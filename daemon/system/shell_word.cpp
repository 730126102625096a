#include "daemon/system/shell_word.hpp"

#include <string_view>

namespace petacq::daemon {

std::string shell_word(const std::string& text) {
    constexpr std::string_view harmless =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:@%+=,-";
    if (!text.empty() && text.find_first_not_of(harmless) == std::string::npos) return text;
    std::string word = "'";
    for (const char c : text)
        word += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return word + "'";
}

}  // namespace petacq::daemon
