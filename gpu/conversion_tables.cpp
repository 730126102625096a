#include "gpu/conversion_tables.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <stdexcept>

namespace petacq::gpu {

std::uint32_t effective_bins(const std::vector<float>& factor, std::uint32_t bins) {
    std::uint32_t needed = 1;
    for (std::size_t row = 0; row < factor.size(); row += bins) {
        // Compare bits, not values: +0 and -0 are equal but yield different zeros when multiplied.
        const auto bits = [&](std::uint32_t bin) { return std::bit_cast<std::uint32_t>(factor[row + bin]); };
        const auto differs = [&](std::uint32_t bin) { return bits(bin) != bits(bins - 1); };
        for (std::uint32_t bin = bins - 1; bin >= needed; --bin) {
            if (differs(bin - 1)) {
                needed = std::max(needed, bin + 1);
                break;
            }
        }
    }
    return needed;
}

namespace {

/// ConversionTables::modules_of_source: row 0 has all modules, the last one has none.
std::vector<std::uint32_t> modules_of(const std::vector<net::Modules>& sources,
                                      config::FrameVersion version) {
    std::vector<std::uint32_t> rows;
    if (sources.empty()) return rows;
    const std::size_t words = config::max_bdm_count(version) / 32;
    rows.resize((sources.size() + 2) * words);
    std::fill_n(rows.begin(), words, UINT32_MAX);
    for (std::size_t i = 0; i < sources.size(); ++i)
        sources[i].each([&](std::uint32_t bdm) { rows[(i + 1) * words + bdm / 32] |= 1U << (bdm % 32); });
    return rows;
}

/// ConversionTables::position or wide_position.
template <class Entry>
void set_positions(const config::Geometry& g, const config::Calibration& calibration,
                   net::HugeVector<Entry>& out) {
    const std::size_t positions = std::size_t{g.position_size} * g.position_size;
    constexpr Entry none = std::numeric_limits<Entry>::max();
    out.resize(calibration.position_table.size());
    for (std::size_t i = 0; i < out.size(); ++i) {
        const std::uint32_t entry = calibration.position_table[i];
        const bool inside = entry < g.crystals_of_unit(static_cast<std::uint32_t>(i / positions));
        out[i] = inside ? static_cast<Entry>(g.local_of_origin(entry)) : none;
    }
}

}  // namespace

FrameTables::FrameTables(const PipelineOptions& options, const config::Calibration& calibration)
    : modules_of_source_(modules_of(options.sources, options.frame_version)) {
    const config::Geometry& g = options.geometry;
    if (config::has_wide_positions(g)) {
        set_positions(g, calibration, wide_position_);
        view_.wide_position = wide_position_.data();
    } else {
        set_positions(g, calibration, position_);
        view_.position = position_.data();
    }
    view_.modules_of_source = modules_of_source_.empty() ? nullptr : modules_of_source_.data();
    view_.bdm_count = g.bdm_count;
    view_.du_count = g.du_count;
    view_.position_size = g.position_size;
    view_.crystals_per_du = g.crystals_per_du();
    view_.version = options.frame_version;
    view_.bins = effective_bins(calibration.energy_factor, calibration.bins);
    view_.head_marker = options.head_marker;
    view_.tail_marker = options.tail_marker;
    view_.tag_marker = options.tag_marker;
    view_.lower = options.energy.filter ? std::max(options.energy.lower, 0.0F) : 0.0F;
    view_.upper = options.energy.filter ? options.energy.upper : std::numeric_limits<float>::infinity();
    if (const std::optional<GammaRules>& gammas = options.rules.gammas) {
        if (gammas->lower <= view_.upper && view_.lower <= gammas->upper) {
            throw std::invalid_argument(
                "gammas: expected an energy window that has no energy in common with that of the pairs");
        }
        view_.gammas = true;
        view_.gamma_lower = gammas->lower;
        view_.gamma_upper = gammas->upper;
        view_.singles_bins_per_keV = 1 / config::singles_bin_keV(gammas->upper);
    }
}

std::uint64_t FrameTables::bytes() const {
    return position_.size() + wide_position_.size() * sizeof(std::uint16_t) +
           modules_of_source_.size() * sizeof(std::uint32_t);
}

OwnedTables::OwnedTables(const PipelineOptions& options, const config::Calibration& calibration)
    : frames_(options, calibration), view_(frames_.view()) {
    const config::Geometry& g = options.geometry;
    const std::uint32_t local_count = g.crystals_per_du();
    const std::uint32_t units = g.bdm_count * g.du_count;
    crystals_.reserve(std::size_t{units} * local_count);
    factor_.reserve(crystals_.capacity() * view_.bins);
    for (std::uint32_t unit = 0; unit < units; ++unit) {
        for (std::uint32_t local = 0; local < local_count; ++local) {
            // A unit may have fewer crystals than another. No entry of the position table names the rest.
            const bool exists = local < g.crystals_of_unit(unit);
            const std::uint32_t crystal = exists ? g.crystal(unit / g.du_count, unit % g.du_count, local) : 0;
            for (std::uint32_t bin = 0; bin < view_.bins; ++bin)
                factor_.push_back(energy_factor(calibration, crystals_.size(), bin));
            crystals_.push_back(
                {crystal, time_offset(calibration, crystal), view_.bins == 1 ? factor_.back() : 0});
        }
    }
    view_.crystals = crystals_.data();
    view_.factor = factor_.data();
}

std::uint64_t OwnedTables::bytes() const {
    return frames_.bytes() + crystals_.size() * sizeof(CrystalEntry) + factor_.size() * sizeof(float);
}

std::int32_t time_offset(const config::Calibration& calibration, std::uint32_t crystal) {
    return calibration.time_offset.empty() ? 0 : calibration.time_offset[crystal];
}

float energy_factor(const config::Calibration& calibration, std::size_t slot, std::uint32_t bin) {
    return calibration.energy_factor[slot * calibration.bins + bin] + 0.0F;  // turns -0 into +0
}

}  // namespace petacq::gpu
