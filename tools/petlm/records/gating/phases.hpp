// The phases of a breath or heart beat: the bins of the cycles between the triggers of a channel.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "tools/petlm/records/tags.hpp"

namespace petacq::petlm {

inline constexpr std::uint32_t max_phases = 64;

struct PhaseOptions {
    unsigned channel = 0;              ///< whose triggers (or openings of the gate) start the cycles
    std::uint32_t bins = 8;            ///< equal parts of a cycle
    std::optional<double> shortest_s;  ///< cycles outside these limits are rejected
    std::optional<double> longest_s;
};

/// Throws UsageError that names the option; `bins`: how that of the bins is called.
void check_phases(const PhaseOptions& options, const char* bins);
/// The cycles of the runs of `target`. Throws BadInput when none is accepted, and as tags_of() does.
Cycles cycles_of(const std::filesystem::path& target, const daemon::Coverage& coverage,
                 const PhaseOptions& options, double tick_s);

}  // namespace petacq::petlm
