// How a frame becomes a single. All integers, except the energy: one f32 product. What depends on the version
// of the frames is a template, so that no frame pays for the choice.
#pragma once

#include <cstdint>
#include <initializer_list>

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
#define PETACQ_ONE(...) 1,
inline constexpr std::uint32_t fate_count = std::initializer_list<int>{PETACQ_FATES(PETACQ_ONE)}.size();
#undef PETACQ_ONE

/// One crystal of a detector unit.
struct alignas(16) CrystalEntry {
    std::uint32_t crystal;
    std::int32_t time_offset;  ///< ticks
    float factor;              ///< keV per ADC count, if ConversionTables::bins is 1
};

/// The bins of config::Spectra are this many for each keV.
inline constexpr float spectra_bins_per_keV = 1 / config::energy_bin_keV;

/// The conversion tables as both back-ends address them; a view that owns nothing. A unit is
/// bdm * du_count + du, a slot unit * crystals_per_du + local crystal.
struct ConversionTables {
    /// [unit][x + y * position_size] local crystal; >= crystals_per_du: outside any crystal. One of the two
    /// tables exists: `position` if an entry fits one byte, since it is read at random and no cache holds it;
    /// else `wide_position`.
    const std::uint8_t* position = nullptr;
    const std::uint16_t* wide_position = nullptr;
    const CrystalEntry* crystals = nullptr;  ///< [slot]
    const float* factor = nullptr;           ///< [slot][bins] keV per ADC count
    /// [FrameSpan::source][module_words] the modules of each source, bit by bit; the last row has none.
    /// nullptr: frames may have any module.
    const std::uint32_t* modules_of_source = nullptr;
    net::FrameVersion version = net::FrameVersion::one;
    std::uint32_t bdm_count = 0;
    std::uint32_t du_count = 0;
    std::uint32_t position_size = 0;
    std::uint32_t crystals_per_du = 0;
    std::uint32_t bins = 1;  ///< >= 1; the last bin applies to all higher ADC values
    std::uint8_t head_marker = 0;
    std::uint8_t tail_marker = 0;
    std::uint8_t tag_marker = 0;
    float lower = 0;        ///< keV; -infinity when energies are not filtered
    float upper = 0;        ///< keV; +infinity when energies are not filtered
    bool gammas = false;    ///< whether singles of the gamma window are accepted, too
    float gamma_lower = 0;  ///< keV
    float gamma_upper = 0;  ///< keV
    /// The bins of SinglesHistograms::energy are this many for each keV.
    float singles_bins_per_keV = spectra_bins_per_keV;

    /// The reciprocal, which is exact: SinglesHistograms::energy_bin_keV.
    [[nodiscard]] float singles_bin_keV() const { return 1 / singles_bins_per_keV; }
};

inline constexpr std::uint32_t no_cell = UINT32_MAX;
/// Words with a bit for each module that a frame can name.
template <net::FrameVersion version>
inline constexpr std::uint32_t module_words = config::max_bdm_count(version) / 32;

template <net::FrameVersion version>
PETACQ_HD bool markers_match(net::FrameWords w, const ConversionTables& t) {
    return net::marker_of<version>(w) == t.head_marker && net::has_tail<version>(w, t.tail_marker);
}

/// Whether a frame whose markers do not match is a tag frame.
template <net::FrameVersion version>
PETACQ_HD bool is_tag(net::FrameWords w, const ConversionTables& t) {
    return net::marker_of<version>(w) == t.tag_marker && net::has_tail<version>(w, t.tail_marker);
}

/// Whether the frame has a module of its source. Only with a table of them.
template <net::FrameVersion version>
PETACQ_HD bool module_of_source(net::FrameWords w, std::uint32_t source, const ConversionTables& t) {
    const std::uint32_t bdm = net::bdm_of<version>(w);
    return (t.modules_of_source[source * module_words<version> + bdm / 32] >> (bdm % 32) & 1) != 0;
}

/// bdm * du_count + du.
template <net::FrameVersion version>
PETACQ_HD std::uint32_t frame_unit(net::FrameWords w, const ConversionTables& t) {
    return net::bdm_of<version>(w) * t.du_count + net::du_of<version>(w);
}

/// Index into the position table, or no_cell when a field is out of range.
template <net::FrameVersion version>
PETACQ_HD std::uint32_t frame_cell(net::FrameWords w, const ConversionTables& t) {
    const std::uint32_t du = net::du_of<version>(w);
    const std::uint32_t bdm = net::bdm_of<version>(w);
    const std::uint32_t x = net::x_of(w);
    const std::uint32_t y = net::y_of(w);
    const bool inside =
        (du < t.du_count) & (bdm < t.bdm_count) & (x < t.position_size) & (y < t.position_size);
    const std::uint32_t cell = ((bdm * t.du_count + du) * t.position_size + y) * t.position_size + x;
    return inside ? cell : no_cell;
}

/// The local crystal of a cell.
PETACQ_HD inline std::uint32_t local_of(std::uint32_t cell, const ConversionTables& t) {
#ifdef __CUDA_ARCH__
    if (t.position != nullptr) return __ldg(t.position + cell);
    return __ldg(t.wide_position + cell);
#else
    return t.position != nullptr ? t.position[cell] : t.wide_position[cell];
#endif
}

PETACQ_HD inline float frame_energy(std::uint32_t adc, std::uint32_t slot, const ConversionTables& t) {
    const std::uint32_t bin = adc / config::adc_per_bin;
    const std::uint32_t last = t.bins - 1;
    return static_cast<float>(adc) *
           t.factor[slot * static_cast<std::uint64_t>(t.bins) + (bin < last ? bin : last)];
}

/// Bin of an energy spectrum: energies are not negative; infinity falls into the last bin.
PETACQ_HD inline std::uint32_t energy_bin(float energy, float bins_per_keV) {
    constexpr auto last = static_cast<float>(config::energy_bins - 1);
    const float bin = energy * bins_per_keV;
    return static_cast<std::uint32_t>(bin < last ? bin : last);
}
/// The bins of SinglesHistograms::energy for each keV. Without gammas the compiler knows their number.
template <bool with_gammas>
PETACQ_HD float singles_bins_per_keV(const ConversionTables& t) {
    return with_gammas ? t.singles_bins_per_keV : spectra_bins_per_keV;
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
