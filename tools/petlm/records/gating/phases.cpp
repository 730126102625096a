#include "tools/petlm/records/gating/phases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tools/petlm/base/status.hpp"

namespace petacq::petlm {

void check_phases(const PhaseOptions& o, const char* bins) {
    if (o.bins < 2 || o.bins > max_phases)
        throw UsageError(fmt::format("{} {}: expected 2 to {}", bins, o.bins, max_phases));
    for (const auto& [name, limit] :
         {std::pair{"--shortest-s", o.shortest_s}, {"--longest-s", o.longest_s}}) {
        if (limit && !(*limit > 0))
            throw UsageError(fmt::format("{} {}: expected more than 0", name, *limit));
    }
    if (o.shortest_s && o.longest_s && *o.shortest_s > *o.longest_s) {
        throw UsageError(
            fmt::format("--shortest-s {}: expected at most --longest-s {}", *o.shortest_s, *o.longest_s));
    }
}

Cycles cycles_of(const std::filesystem::path& target, const daemon::Coverage& coverage,
                 const PhaseOptions& options, double tick_s) {
    CycleLimits limits;
    const auto ticks = [&](double s) { return static_cast<std::uint64_t>(std::min(s / tick_s, 0x1p62)); };
    if (options.shortest_s) limits.shortest = ticks(*options.shortest_s);
    if (options.longest_s) limits.longest = ticks(*options.longest_s);
    Cycles cycles(tags_of(target, coverage, options.channel), limits);
    if (cycles.accepted().empty()) {
        throw BadInput(fmt::format("{}: no cycle of channel {} is accepted, {} are rejected", target.string(),
                                   options.channel, cycles.rejected()));
    }
    return cycles;
}

}  // namespace petacq::petlm
