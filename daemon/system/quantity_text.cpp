#include "daemon/system/quantity_text.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace petacq::daemon {

std::string duration_text(double seconds) {
    // Rounds to the unit that is shown last; what rounds up to the next larger unit is shown with that.
    if (seconds < 59.95) return fmt::format("{:.1f} s", seconds);
    const auto rounded = [&](long long unit_s) {
        return std::llround(std::min(seconds, 1e15) / static_cast<double>(unit_s));
    };
    if (const auto whole_s = rounded(1); whole_s < 3600)
        return fmt::format("{} min {:02} s", whole_s / 60, whole_s % 60);
    if (const auto minutes = rounded(60); minutes < 24 * 60)
        return fmt::format("{} h {:02} min", minutes / 60, minutes % 60);
    const auto hours = rounded(3600);
    return fmt::format("{} d {:02} h", hours / 24, hours % 24);
}

std::string scaled_text(double number, std::string_view unit) {
    constexpr std::array prefixes{"", "k", "M", "G", "T", "P"};
    std::size_t prefix = 0;
    // A value that rounds to 1000 takes the next prefix.
    while (std::abs(number) >= 999.95 && prefix + 1 < prefixes.size()) {
        number /= 1000;
        ++prefix;
    }
    const std::string text = fmt::format("{:.4g}", number);
    const std::string scale = std::string(prefixes.at(prefix)).append(unit);
    return scale.empty() ? text : text + ' ' + scale;
}

std::string grouped(std::string digits) {
    const std::size_t first = digits.starts_with('-') ? 1 : 0;
    for (std::size_t i = digits.size(); i > first + 3; i -= 3)
        digits.insert(i - 3, ",");
    return digits;
}

std::string counted_text(std::uint64_t number, std::string_view one) {
    return fmt::format("{} {}{}", number, one, number == 1 ? "" : "s");
}

}  // namespace petacq::daemon
