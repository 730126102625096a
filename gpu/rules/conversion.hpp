// How a frame becomes a single. All integers, except the energy: one f32 product.
#pragma once

#include <cstdint>

#include "config/energy_bins.hpp"
#include "gpu/base/counters.hpp"
#include "gpu/base/records.hpp"
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

}  // namespace petacq::gpu
