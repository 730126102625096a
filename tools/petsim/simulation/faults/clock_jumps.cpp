#include "tools/petsim/simulation/faults/clock_jumps.hpp"

#include "tools/petsim/simulation/base/truth.hpp"

namespace petacq::sim {

namespace {

constexpr std::uint64_t all_later = UINT64_MAX;

}  // namespace

ClockJumps::ClockJumps(const std::vector<ClockJump>& jumps, std::uint16_t source, const RunClock& clock) {
    for (const ClockJump& j : jumps) {
        if (j.source != source) continue;
        jumps_.push_back(
            {clock.at(j.at_s), static_cast<std::uint64_t>(j.ticks), j.datagrams.value_or(all_later)});
    }
}

ClockShift ClockJumps::of_datagram(std::uint64_t time) {
    ClockShift out;
    for (Jump& j : jumps_) {
        if (time < j.at || j.datagrams == 0) continue;
        if (j.datagrams != all_later) --j.datagrams;
        out.ticks += j.ticks;
        out.flags |= truth_clock_jump;
    }
    return out;
}

}  // namespace petacq::sim
