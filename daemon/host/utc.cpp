#include "daemon/host/utc.hpp"

#include <array>
#include <ctime>

namespace petacq::daemon {

std::string utc_text(std::chrono::system_clock::time_point time) {
    const auto ms = std::chrono::floor<std::chrono::milliseconds>(time.time_since_epoch()).count() % 1000;
    return utc_text(time, "%Y-%m-%dT%H:%M:%S.") + std::to_string(1000 + ms).substr(1) + "Z";
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

}  // namespace petacq::daemon
