// The arithmetic of conversion and pairing, shared by both back-ends: how a frame becomes a single, and when
// two singles form a good pair. All integers, except the energy: one f32 product.
#pragma once

#include <cstdint>

#include "config/energy_bins.hpp"
#include "config/geometry.hpp"
#include "gpu/coincidence_rules.hpp"
#include "gpu/counters.hpp"
#include "gpu/histograms.hpp"
#include "gpu/types.hpp"
#include "net/wire.hpp"

namespace petacq::gpu {

/// The outcome of converting a frame. Each frame has exactly one: the first that applies in this order.
enum class Fate : std::uint8_t {
#define PETACQ_FATE(section, name, ...) name,
    PETACQ_FATES(PETACQ_FATE)
#undef PETACQ_FATE
};
#define PETACQ_ONE(...) +1
inline constexpr std::uint32_t fate_count = PETACQ_FATES(PETACQ_ONE);
#undef PETACQ_ONE

/// One crystal of a detector unit.
struct alignas(16) CrystalEntry {
    std::uint32_t crystal;
    std::int32_t time_offset;  ///< ticks
    float factor;              ///< keV per ADC count, if ConversionTables::bins is 1
};

/// The conversion tables as both back-ends address them; a view that owns nothing. A unit is
/// bdm * du_count + du, a slot unit * crystals_per_du + local crystal.
struct ConversionTables {
    const std::uint8_t* position =
        nullptr;  ///< [unit][x + y * position_size] local crystal; >= crystals_per_du: outside any crystal
    const CrystalEntry* crystals = nullptr;  ///< [slot]
    const float* factor = nullptr;           ///< [slot][bins] keV per ADC count
    /// [FrameSpan::source][module_words] the modules of each source, bit by bit; the last row has none.
    /// nullptr: frames may have any module.
    const std::uint32_t* modules_of_source = nullptr;
    std::uint32_t bdm_count = 0;
    std::uint32_t du_count = 0;
    std::uint32_t position_size = 0;
    std::uint32_t crystals_per_du = 0;
    std::uint32_t bins = 1;  ///< >= 1; the last bin applies to all higher ADC values
    std::uint8_t head_marker = 0;
    std::uint8_t tail_marker = 0;
    std::uint8_t tag_marker = 0;
    float lower = 0;  ///< keV; -infinity when energies are not filtered
    float upper = 0;  ///< keV; +infinity when energies are not filtered
};

inline constexpr std::uint32_t no_cell = UINT32_MAX;
inline constexpr std::uint32_t module_words = 256 / 32;

PETACQ_HD inline std::uint32_t frame_du(net::FrameWords w) {
    return static_cast<std::uint32_t>(w.low & 0xF);
}
PETACQ_HD inline std::uint32_t frame_bdm(net::FrameWords w) {
    return static_cast<std::uint32_t>((w.low >> 8) & 0xFF);
}
PETACQ_HD inline std::uint64_t frame_raw_time(net::FrameWords w) {
    return net::swap_bytes((w.low >> 16) | (w.high << 48));
}
PETACQ_HD inline std::uint32_t frame_adc(net::FrameWords w) {
    return static_cast<std::uint32_t>(((w.high >> 32) & 0xFF) << 8 | ((w.high >> 40) & 0xFF));
}
PETACQ_HD inline std::int32_t frame_temperature_16ths(net::FrameWords w) {
    const auto whole = static_cast<std::int8_t>(static_cast<std::uint8_t>(w.high >> 48));
    return whole * 16 + static_cast<std::int32_t>(w.high >> 60);
}
PETACQ_HD inline bool markers_match(net::FrameWords w, const ConversionTables& t) {
    return ((w.low >> 4) & 0xF) == t.head_marker && ((w.high >> 56) & 0xF) == t.tail_marker;
}

/// Whether a frame whose markers do not match is a tag frame.
PETACQ_HD inline bool is_tag(net::FrameWords w, const ConversionTables& t) {
    return ((w.low >> 4) & 0xF) == t.tag_marker && ((w.high >> 56) & 0xF) == t.tail_marker;
}

/// Whether the frame has a module of its source. Only with a table of them.
PETACQ_HD inline bool module_of_source(net::FrameWords w, std::uint32_t source, const ConversionTables& t) {
    const std::uint32_t bdm = frame_bdm(w);
    return (t.modules_of_source[source * module_words + bdm / 32] >> (bdm % 32) & 1) != 0;
}

/// Index into ConversionTables::position, or no_cell when a field is out of range.
PETACQ_HD inline std::uint32_t frame_cell(net::FrameWords w, const ConversionTables& t) {
    const std::uint32_t du = frame_du(w);
    const std::uint32_t bdm = frame_bdm(w);
    const auto x = static_cast<std::uint32_t>((w.high >> 16) & 0xFF);
    const auto y = static_cast<std::uint32_t>((w.high >> 24) & 0xFF);
    const bool inside =
        (du < t.du_count) & (bdm < t.bdm_count) & (x < t.position_size) & (y < t.position_size);
    const std::uint32_t cell = ((bdm * t.du_count + du) * t.position_size + y) * t.position_size + x;
    return inside ? cell : no_cell;
}

PETACQ_HD inline float frame_energy(std::uint32_t adc, std::uint32_t slot, const ConversionTables& t) {
    const std::uint32_t bin = adc / config::adc_per_bin;
    const std::uint32_t last = t.bins - 1;
    return static_cast<float>(adc) *
           t.factor[slot * static_cast<std::uint64_t>(t.bins) + (bin < last ? bin : last)];
}

/// Bin of the energy spectrum: energies are not negative; infinity falls into the last bin.
PETACQ_HD inline std::uint32_t energy_bin(float energy) {
    constexpr auto last = static_cast<float>(config::energy_bins - 1);
    const float bin = energy * (1.0F / config::energy_bin_keV);
    return static_cast<std::uint32_t>(bin < last ? bin : last);
}

/// The raw times that a span accepts. A window with high below low accepts none.
struct TimeGuard {
    std::uint64_t low = 0;
    std::uint64_t width = UINT64_MAX;
    bool empty = false;

    PETACQ_HD static TimeGuard of(std::uint64_t low, std::uint64_t high) {
        return TimeGuard{low, high - low, high < low};
    }
    PETACQ_HD bool refuses(std::uint64_t raw) const { return (raw - low > width) | empty; }
};

/// Corrected time; `bad` when it would leave 0..2^64-1.
PETACQ_HD inline std::uint64_t corrected_time(std::uint64_t raw, std::int32_t offset, bool& bad) {
    const std::uint64_t time = raw + static_cast<std::uint64_t>(static_cast<std::int64_t>(offset));
    bad = (time < raw) != (offset < 0);
    return time;
}

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

/// The condition on two crystals to make a good pair.
struct PairRule {
    std::uint32_t crystals_in_ring = 1;
    std::uint32_t crystals_per_module = 1;  ///< around the ring
    std::uint32_t modules = 1;              ///< around the ring
    std::uint32_t min_module_difference = 0;
    std::uint32_t max_ring_difference = UINT32_MAX;

    static PairRule of(const config::Geometry& geometry, const CoincidenceRules& rules) {
        return PairRule{geometry.crystals_in_ring(), geometry.crystals_per_module_y(),
                        geometry.modules_in_ring(), rules.min_module_difference, rules.max_ring_difference};
    }

    /// The coordinates of a crystal that the condition uses, besides requiring two different crystals.
    struct Coordinates {
        std::uint32_t ring = 0;
        std::uint32_t module = 0;  ///< around the ring
    };
    PETACQ_HD Coordinates coordinates_of(std::uint32_t crystal) const {
        const std::uint32_t ring = crystal / crystals_in_ring;
        return {ring, (crystal - ring * crystals_in_ring) / crystals_per_module};
    }
    /// The difference of two modules, the shorter way around the ring.
    PETACQ_HD std::uint32_t modules_apart(std::uint32_t a, std::uint32_t b) const {
        const std::uint32_t straight = a > b ? a - b : b - a;
        const std::uint32_t around = modules - straight;
        return straight < around ? straight : around;
    }
    PETACQ_HD bool geometry_good(Coordinates a, Coordinates b) const {
        const std::uint32_t rings = a.ring > b.ring ? a.ring - b.ring : b.ring - a.ring;
        return modules_apart(a.module, b.module) >= min_module_difference && rings <= max_ring_difference;
    }
    /// The geometric part alone; the crystals may be the same.
    PETACQ_HD bool geometry_good(std::uint32_t a, std::uint32_t b) const {
        return geometry_good(coordinates_of(a), coordinates_of(b));
    }
    PETACQ_HD bool good(std::uint32_t a, std::uint32_t b) const { return a != b && geometry_good(a, b); }
};

}  // namespace petacq::gpu
