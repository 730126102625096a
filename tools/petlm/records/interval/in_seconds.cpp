#include "tools/petlm/records/interval/in_seconds.hpp"

#include <nlohmann/json.hpp>

#include "config/base/error.hpp"
#include "tools/petlm/base/status.hpp"

namespace petacq::petlm {

using config::Rounding;
using config::TimeUnit;

std::uint64_t option_ticks(const char* option, const std::string& decimal, TimeUnit unit, double tick_ps,
                           Rounding rounding) {
    try {
        return config::ticks_of(decimal, unit, tick_ps, rounding);
    } catch (const config::Error& error) {
        throw UsageError(std::string(option) + ": " + error.what());
    }
}

void set_ticks(const IntervalInSeconds& interval, double tick_ps, std::uint64_t& from, std::uint64_t& to) {
    if (interval.from) from = option_ticks("--from-s", *interval.from, TimeUnit::s, tick_ps, Rounding::up);
    if (interval.to) to = option_ticks("--to-s", *interval.to, TimeUnit::s, tick_ps, Rounding::up);
}

double tick_ps_of(const nlohmann::json& description, const std::filesystem::path& target) {
    const auto tick_ps = description.value("tick_ps", nlohmann::json());
    if (!tick_ps.is_number() || !(tick_ps > 0))
        throw BadInput(target.string() + ": its description has no tick_ps; expected times in ticks");
    return tick_ps.get<double>();
}

}  // namespace petacq::petlm
