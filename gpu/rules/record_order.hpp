// The total order of each kind of record.
#pragma once

#include <span>

#include "gpu/base/records.hpp"
#include "net/wire.hpp"

namespace petacq::gpu {

/// Order of singles: (time, crystal, energy). Total, since energies are never NaN or negative zero.
PETACQ_HD inline bool before(const Single& a, const Single& b) {
    if (a.time != b.time) return a.time < b.time;
    if (a.crystal != b.crystal) return a.crystal < b.crystal;
    return a.energy < b.energy;
}

/// Order of coincidences: (time, kind, crystal_a, dt, crystal_b, energy_a, energy_b).
PETACQ_HD inline bool before(const Coincidence& a, const Coincidence& b) {
    if (a.time != b.time) return a.time < b.time;
    if (a.kind != b.kind) return a.kind < b.kind;
    if (a.crystal_a != b.crystal_a) return a.crystal_a < b.crystal_a;
    if (a.dt != b.dt) return a.dt < b.dt;
    if (a.crystal_b != b.crystal_b) return a.crystal_b < b.crystal_b;
    if (a.energy_a != b.energy_a) return a.energy_a < b.energy_a;
    return a.energy_b < b.energy_b;
}

/// Order of tags: (time, source, channel, kind, value).
inline bool before(const Tag& a, const Tag& b) {
    if (a.time != b.time) return a.time < b.time;
    if (a.source != b.source) return a.source < b.source;
    if (a.channel != b.channel) return a.channel < b.channel;
    if (a.kind != b.kind) return a.kind < b.kind;
    return a.value < b.value;
}

/// Puts coincidences that are already ordered by time into their total order. Linear when few share a time.
void order_equal_times(std::span<Coincidence> records);

}  // namespace petacq::gpu
