#include "tools/petctl/values.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

namespace petacq::petctl {

using nlohmann::json;

namespace {

const json absent;  // NOLINT(cert-err58-cpp): a null allocates nothing

std::string grouped(std::string digits) {
    const std::size_t first = digits.starts_with('-') ? 1 : 0;
    for (std::size_t i = digits.size(); i > first + 3; i -= 3)
        digits.insert(i - 3, ",");
    return digits;
}

}  // namespace

const json& at(const json& document, std::initializer_list<const char*> path) {
    const json* here = &document;
    for (const char* key : path) {
        if (!here->is_object()) return absent;
        const auto next = here->find(key);
        if (next == here->end()) return absent;
        here = &*next;
    }
    return *here;
}

std::string printable(std::string text) {
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto c = static_cast<unsigned char>(text[i]);
        // U+0080 to U+009F, C2 80 to C2 9F in UTF-8, are control characters for some terminals.
        const bool high = c == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0;
        if (high) text.erase(i + 1, 1);
        if (high || c < ' ' || c == 0x7F) text[i] = '?';
    }
    return text;
}

std::string text_of(const json& value) {
    if (value.is_string()) return value.get_ref<const std::string&>().empty() ? "-" : printable(value);
    if (value.is_number_integer()) return grouped(value.dump());
    if (value.is_number()) return fmt::format("{:.6g}", value.get<double>());
    if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
    return "-";
}

std::string scaled(const json& value, std::string_view unit) {
    if (!value.is_number()) return "-";
    auto number = value.get<double>();
    constexpr std::array prefixes{"", "k", "M", "G", "T", "P"};
    std::size_t prefix = 0;
    // A value that rounds to 1000 takes the next prefix.
    while (std::abs(number) >= 999.95 && prefix + 1 < prefixes.size()) {
        number /= 1000;
        ++prefix;
    }
    return fmt::format("{:.4g} {}{}", number, prefixes[prefix], unit);
}

std::string percent(const json& value) {
    if (!value.is_number()) return "-";
    return fmt::format("{:.3g} %", 100 * value.get<double>());
}

std::string with_unit(const json& value, const char* format, std::string_view unit) {
    if (!value.is_number()) return "-";
    return fmt::format(fmt::runtime(format), value.get<double>()) + std::string(unit);
}

std::string duration(const json& seconds) {
    if (!seconds.is_number() || seconds.get<double>() < 60) return with_unit(seconds, "{:.1f}", " s");
    const auto whole = static_cast<long long>(std::min(seconds.get<double>(), 1e15));
    if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
    if (whole < 86'400) return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
    return fmt::format("{} d {:02} h", whole / 86'400, whole / 3600 % 24);
}

std::string closed(const json& value) {
    if (!value.is_boolean()) return "-";
    return value.get<bool>() ? "closed" : "NOT CLOSED";
}

}  // namespace petacq::petctl
