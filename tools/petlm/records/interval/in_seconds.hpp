// An interval of detector time that the operator gives in seconds.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "config/base/ticks.hpp"

namespace petacq::petlm {

/// Decimal numbers. The ends that are given replace those in ticks.
struct IntervalInSeconds {
    std::optional<std::string> from;  ///< inclusive
    std::optional<std::string> to;    ///< exclusive
    [[nodiscard]] bool any() const { return from || to; }
};

/// As config::ticks_of(). Throws UsageError that names the option.
std::uint64_t option_ticks(const char* option, const std::string& decimal, config::TimeUnit unit,
                           double tick_ps, config::Rounding rounding);

/// Sets the ends that are given: the first tick at or after each. Throws UsageError.
void set_ticks(const IntervalInSeconds& interval, double tick_ps, std::uint64_t& from, std::uint64_t& to);

/// `tick_ps` in the description of a list-mode file or of a scanner. Throws BadInput that names the target if
/// it is missing.
double tick_ps_of(const nlohmann::json& description, const std::filesystem::path& target);

}  // namespace petacq::petlm
