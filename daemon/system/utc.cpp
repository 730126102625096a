#include "daemon/system/utc.hpp"

#include <array>
#include <ctime>

namespace petacq::daemon {

namespace {

/// The rest of a text that is read from left to right.
class Rest {
  public:
    explicit Rest(std::string_view text) : text_(text) {}

    [[nodiscard]] bool empty() const { return text_.empty(); }
    bool skip(char expected) {
        if (text_.empty() || text_.front() != expected) return false;
        text_.remove_prefix(1);
        return true;
    }
    std::optional<int> digit() {
        if (text_.empty() || text_.front() < '0' || text_.front() > '9') return std::nullopt;
        const int value = text_.front() - '0';
        text_.remove_prefix(1);
        return value;
    }
    /// A number of exactly that many digits, at most `highest`; otherwise -1.
    int number(int digits, int highest) {
        int value = 0;
        for (int i = 0; i < digits; ++i) {
            const auto next = digit();
            if (!next) return -1;
            value = 10 * value + *next;
        }
        return value <= highest ? value : -1;
    }

  private:
    std::string_view text_;
};

/// Reads the fraction of a second, if there is one: a point or comma and digits. It ignores digits after the
/// ninth.
std::optional<std::chrono::nanoseconds> fraction(Rest& rest) {
    if (!rest.skip('.') && !rest.skip(',')) return std::chrono::nanoseconds(0);
    auto next = rest.digit();
    if (!next) return std::nullopt;
    std::int64_t value = 0;
    for (std::int64_t unit = 100'000'000; next; unit /= 10, next = rest.digit())
        value += *next * unit;
    return std::chrono::nanoseconds(value);
}

/// "Z", "+01:00", "-0530" or "+01" at the end of the text.
std::optional<std::chrono::minutes> ahead_of_utc(Rest& rest) {
    if (rest.skip('Z')) return rest.empty() ? std::optional(std::chrono::minutes(0)) : std::nullopt;
    const bool ahead = rest.skip('+');
    if (!ahead && !rest.skip('-')) return std::nullopt;
    const int hours = rest.number(2, 23);
    int minutes = 0;
    if (!rest.empty()) {
        rest.skip(':');
        minutes = rest.number(2, 59);
    }
    if (hours < 0 || minutes < 0 || !rest.empty()) return std::nullopt;
    return std::chrono::minutes((ahead ? 1 : -1) * (60 * hours + minutes));
}

}  // namespace

std::string utc_text(std::chrono::system_clock::time_point time) {
    const auto ms = std::chrono::floor<std::chrono::milliseconds>(time.time_since_epoch()).count() % 1000;
    return utc_text(time, "%Y-%m-%dT%H:%M:%S.") + std::to_string(1000 + (ms + 1000) % 1000).substr(1) + "Z";
}

std::string utc_text(std::chrono::system_clock::time_point time, const char* format) {
    const std::time_t seconds =
        std::chrono::system_clock::to_time_t(std::chrono::floor<std::chrono::seconds>(time));
    std::tm parts{};
    ::gmtime_r(&seconds, &parts);
    std::array<char, 64> text{};
    const std::size_t length = std::strftime(text.data(), text.size(), format, &parts);
    return {text.data(), length};
}

std::optional<std::chrono::system_clock::time_point> utc_time(std::string_view text) {
    Rest rest(text);
    const int year = rest.number(4, 2199);
    const bool month_follows = rest.skip('-');
    const int month = rest.number(2, 12);
    const bool day_follows = rest.skip('-');
    const int day = rest.number(2, 31);
    const bool time_follows = rest.skip('T');
    const int hour = rest.number(2, 23);
    const bool minute_follows = rest.skip(':');
    const int minute = rest.number(2, 59);
    if (year < 1970 || !month_follows || !day_follows || !time_follows || hour < 0 || !minute_follows ||
        minute < 0) {
        return std::nullopt;
    }
    const std::chrono::year_month_day date{std::chrono::year(year),
                                           std::chrono::month(static_cast<unsigned>(month)),
                                           std::chrono::day(static_cast<unsigned>(day))};
    if (!date.ok()) return std::nullopt;
    const int second = rest.skip(':') ? rest.number(2, 59) : 0;
    const auto part = fraction(rest);
    const auto offset = ahead_of_utc(rest);
    if (second < 0 || !part || !offset) return std::nullopt;
    return std::chrono::time_point_cast<std::chrono::system_clock::duration>(
        std::chrono::sys_days(date) + std::chrono::hours(hour) + std::chrono::minutes(minute) +
        std::chrono::seconds(second) + *part - *offset);
}

}  // namespace petacq::daemon
