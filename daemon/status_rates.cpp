#include <algorithm>

#include "daemon/status_parts.hpp"

namespace petacq::daemon {

namespace {

using nlohmann::json;

json when(bool known, double value) {
    return known ? json(value) : json();
}

/// Hits in a crystal, whatever their energy and time.
std::uint64_t raw_singles(const gpu::FrameCounts& f) {
    return f.received - f.bad_marker - f.bad_address - f.outside_crystal;
}

}  // namespace

double rate(std::uint64_t now, std::uint64_t before, double seconds) {
    return seconds > 0 && now >= before ? static_cast<double>(now - before) / seconds : 0;
}

json make_rates(const AcquisitionSnapshot& now, const AcquisitionSnapshot& before, const RateSetting& setting,
                std::optional<double> expected_randoms) {
    const double seconds = std::chrono::duration<double>(now.taken - before.taken).count();
    const Ledger& a = now.total;
    const Ledger& b = before.total;
    const double received = rate(a.datagrams.received, b.datagrams.received, seconds);
    const double lost = rate(a.datagrams.lost, b.datagrams.lost, seconds);
    const double prompts = rate(a.singles.prompts, b.singles.prompts, seconds);
    const double delayeds = rate(a.singles.delayeds, b.singles.delayeds, seconds);
    const double multiples = rate(a.singles.in_dropped_multiples + a.singles.in_oversize_multiples,
                                  b.singles.in_dropped_multiples + b.singles.in_oversize_multiples, seconds);
    // Trues and scatters are what is left of the prompts; the trues among them count. What the delayeds take
    // off, they add as noise a second time: prompts + delayeds = trues + scatters + 2 randoms.
    const double net = prompts - delayeds;
    const double trues = std::max(0.0, net) * (1 - setting.scatter_fraction);
    const double noise = prompts + delayeds;
    return {
        {"interval_s", seconds},
        {"bytes_per_s", rate(now.bytes_received, before.bytes_received, seconds)},
        {"datagrams_per_s", received},
        {"lost_fraction", when(a.loss_known && received + lost > 0, lost / (received + lost))},
        {"frames_per_s", rate(a.frames.received, b.frames.received, seconds)},
        {"singles_raw_per_s", rate(raw_singles(a.frames), raw_singles(b.frames), seconds)},
        {"singles_per_s", rate(a.frames.accepted, b.frames.accepted, seconds)},
        {"multiples_per_s", multiples},
        {"prompts_per_s", prompts},
        {"delayeds_per_s", delayeds},
        {"net_trues_per_s", when(setting.delayeds, net)},
        {"randoms_fraction", when(setting.delayeds && prompts > 0, delayeds / prompts)},
        {"expected_randoms_per_s", when(expected_randoms.has_value(), expected_randoms.value_or(0))},
        {"necr_per_s", when(setting.delayeds, noise > 0 ? trues * trues / noise : 0)},
        {"necr_scatter_fraction", setting.scatter_fraction},
        {"busy_fraction", seconds > 0 ? std::clamp((now.busy_s - before.busy_s) / seconds, 0.0, 1.0) : 0}};
}

}  // namespace petacq::daemon
