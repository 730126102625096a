#include "gpu/conversion_tables.hpp"

#include <algorithm>
#include <bit>
#include <iterator>
#include <limits>

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
std::vector<std::uint32_t> modules_of(const std::vector<ModuleSet>& sources) {
    std::vector<std::uint32_t> rows;
    if (sources.empty()) return rows;
    rows.resize((sources.size() + 2) * module_words);
    std::fill_n(rows.begin(), module_words, UINT32_MAX);
    for (std::size_t i = 0; i < sources.size(); ++i) {
        for (std::uint32_t bdm = 0; bdm < sources[i].size(); ++bdm) {
            if (sources[i][bdm]) rows[(i + 1) * module_words + bdm / 32] |= 1U << (bdm % 32);
        }
    }
    return rows;
}

}  // namespace

OwnedTables::OwnedTables(const PipelineOptions& options, const config::Calibration& calibration)
    : position_(calibration.position_table.begin(), calibration.position_table.end()),
      modules_of_source_(modules_of(options.sources)) {
    const config::Geometry& g = options.geometry;
    const std::uint32_t local_count = g.crystals_per_du();
    for (std::uint8_t& entry : position_) {
        if (entry < local_count) entry = static_cast<std::uint8_t>(g.local_of_origin(entry));
    }
    const std::uint32_t units = g.bdm_count * g.du_count;
    crystals_.reserve(std::size_t{units} * local_count);
    for (std::uint32_t unit = 0; unit < units; ++unit) {
        for (std::uint32_t local = 0; local < local_count; ++local) {
            const std::uint32_t crystal = g.crystal(unit / g.du_count, unit % g.du_count, local);
            const std::int32_t offset =
                calibration.time_offset.empty() ? 0 : calibration.time_offset[crystal];
            crystals_.push_back({crystal, offset, 0});
        }
    }
    const std::uint32_t bins = effective_bins(calibration.energy_factor, calibration.bins);
    factor_.reserve(crystals_.size() * bins);
    for (std::size_t slot = 0; slot < crystals_.size(); ++slot) {
        const auto row =
            calibration.energy_factor.begin() + static_cast<std::ptrdiff_t>(slot * calibration.bins);
        // Adding 0 turns -0 into +0. Energies that compare equal must have equal bytes.
        std::transform(row, row + bins, std::back_inserter(factor_), [](float f) { return f + 0.0F; });
        if (bins == 1) crystals_[slot].factor = factor_.back();
    }
    view_.position = position_.data();
    view_.crystals = crystals_.data();
    view_.factor = factor_.data();
    view_.modules_of_source = modules_of_source_.empty() ? nullptr : modules_of_source_.data();
    view_.bdm_count = g.bdm_count;
    view_.du_count = g.du_count;
    view_.position_size = g.position_size;
    view_.crystals_per_du = local_count;
    view_.bins = bins;
    view_.head_marker = options.head_marker;
    view_.tail_marker = options.tail_marker;
    view_.lower = options.energy.filter ? std::max(options.energy.lower, 0.0F) : 0.0F;
    view_.upper = options.energy.filter ? options.energy.upper : std::numeric_limits<float>::infinity();
}

std::uint64_t OwnedTables::bytes() const {
    return position_.size() + crystals_.size() * sizeof(CrystalEntry) + factor_.size() * sizeof(float) +
           modules_of_source_.size() * sizeof(std::uint32_t);
}

}  // namespace petacq::gpu
