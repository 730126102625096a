#include "config/base/ticks.hpp"

#include <array>
#include <charconv>
#include <cstddef>
#include <optional>

#include "config/base/error.hpp"

namespace petacq::config {

namespace {

__extension__ using Wide = unsigned __int128;

constexpr int max_digits = 18;
constexpr std::array<const char*, 5> unit_names{"ps", "ns", "us", "ms", "s"};

/// digits * 10^exponent
struct Decimal {
    std::uint64_t digits = 0;
    int exponent = 0;
};

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

std::optional<int> exponent_from(const std::string& text, std::size_t at) {
    if (at == text.size()) return 0;
    if (text[at] != 'e' && text[at] != 'E') return std::nullopt;
    ++at;
    if (at < text.size() && text[at] == '+') ++at;
    int exponent = 0;
    const auto end = std::from_chars(text.data() + at, text.data() + text.size(), exponent);
    if (end.ec != std::errc() || end.ptr != text.data() + text.size()) return std::nullopt;
    return exponent;
}

/// Trailing zeros do not count as digits.
std::optional<Decimal> decimal_from(const std::string& text) {
    Decimal d;
    bool after_point = false;
    int zeros = 0;  // not yet part of the digits
    int digits = 0;
    std::size_t at = 0;
    bool any = false;
    for (; at < text.size() && (is_digit(text[at]) || (text[at] == '.' && !after_point)); ++at) {
        if (text[at] == '.') {
            after_point = true;
            continue;
        }
        any = true;
        if (after_point) --d.exponent;
        if (text[at] == '0') {
            ++zeros;
            continue;
        }
        // Zeros in front are no digits.
        if (d.digits == 0) zeros = 0;
        digits += zeros + 1;
        if (digits > max_digits) return std::nullopt;
        for (; zeros >= 0; --zeros)
            d.digits *= 10;
        d.digits += static_cast<std::uint64_t>(text[at] - '0');
        zeros = 0;
    }
    const auto exponent = exponent_from(text, at);
    if (!any || !exponent || *exponent > 400 || *exponent < -400) return std::nullopt;
    d.exponent += *exponent + (d.digits == 0 ? 0 : zeros);
    return d;
}

/// digits * 10^exponent; nothing if it is too large.
std::optional<Wide> whole(std::uint64_t digits, int exponent) {
    Wide number = digits;
    for (; exponent > 0; --exponent) {
        if (number > ~Wide{0} / 10) return std::nullopt;
        number *= 10;
    }
    return number;
}

/// The shortest decimal number that reads as this double: what a JSON file has.
Decimal decimal_of(double value) {
    std::array<char, 64> text{};
    const auto end = std::to_chars(text.data(), text.data() + text.size(), value);
    return decimal_from({text.data(), end.ptr}).value_or(Decimal{});
}

/// over / under; nothing if it is not less than 2^63.
std::optional<std::uint64_t> rounded(Wide over, Wide under, Rounding rounding) {
    Wide ticks = over / under;
    const Wide rest = over % under;
    if ((rounding == Rounding::up && rest > 0) || (rounding == Rounding::nearest && rest >= under - rest))
        ++ticks;
    constexpr Wide most = Wide{1} << 63;
    if (ticks >= most) return std::nullopt;
    return static_cast<std::uint64_t>(ticks);
}

/// time / tick = time.digits * 10^exponent / tick.digits. Nothing: too large.
std::optional<std::uint64_t> quotient(const Decimal& time, const Decimal& tick, int exponent,
                                      Rounding rounding) {
    if (time.digits == 0) return 0;
    const auto over = whole(time.digits, exponent);
    if (!over || tick.digits == 0) return std::nullopt;
    const auto under = whole(tick.digits, -exponent);
    if (!under) return rounding == Rounding::up ? 1 : 0;  // far less than half a tick
    return rounded(*over, *under, rounding);
}

}  // namespace

WholeTimes::WholeTimes(TimeUnit unit, double tick_ps) : over_(0), under_(0) {
    const Decimal tick = decimal_of(tick_ps);
    const int exponent = 3 * static_cast<int>(unit) - tick.exponent;
    const auto over = whole(1, exponent);
    const auto under = whole(tick.digits, -exponent);
    if (tick.digits == 0 || !over || !under)
        throw Error("expected a tick between 1e-3 and 1e9 ps; found " + std::to_string(tick_ps));
    over_ = *over;
    under_ = *under;
}

std::optional<std::uint64_t> WholeTimes::ticks(std::uint64_t number, Rounding rounding) const {
    if (number != 0 && over_ > ~Wide{0} / number) return std::nullopt;
    return rounded(number * over_, under_, rounding);
}

std::uint64_t ticks_of(const std::string& decimal, TimeUnit unit, double tick_ps, Rounding rounding) {
    const auto time = decimal_from(decimal);
    const Decimal tick = decimal_of(tick_ps);
    const auto of_unit = static_cast<std::size_t>(unit);
    const int to_ps = 3 * static_cast<int>(of_unit);
    if (time) {
        if (const auto ticks = quotient(*time, tick, time->exponent + to_ps - tick.exponent, rounding))
            return *ticks;
    }
    throw Error(std::string("expected a number of ") + unit_names[of_unit] +
                " of at least 0, with at most 18 digits and less than 2^63 ticks; found " + decimal);
}

}  // namespace petacq::config
