// The conversion tables of the CPU back-end.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "config/energy_bins.hpp"
#include "gpu/conversion_tables.hpp"
#include "gpu/rules/conversion.hpp"
#include "net/base/huge_pages.hpp"
#include "net/wire.hpp"

namespace petacq::gpu {

/// For each frame, the position table and the row of its crystal are read at random. Read-only once built, so
/// threads may share it.
struct HostTables {
    /// The calibration must have passed config::check_calibration.
    HostTables(const PipelineOptions& options, const config::Calibration& calibration);
    [[nodiscard]] std::uint64_t bytes() const;

    FrameTables frames;
    /// How the crystals of a unit are numbered: that of `local` is first + crystal_in_unit[pattern + local].
    /// Units of one type have one pattern, so that the patterns stay in the first cache.
    struct UnitNumbers {
        std::uint32_t first = 0;
        std::uint32_t pattern = 0;
    };
    std::vector<UnitNumbers> units;
    std::vector<std::uint32_t> crystal_in_unit;  ///< with room for every value of the position table
    /// [crystal][1 + bins] the bits of the time offset (std::int32_t) and of the energy factors (float).
    net::HugeVector<std::uint32_t> rows;
};

/// The word of a row that has the energy factor. `one_bin`: it does not depend on the energy.
template <bool one_bin>
std::uint32_t factor_word(net::FrameWords w, std::uint32_t bins) {
    return one_bin ? 1 : 1 + std::min(frame_adc(w) / config::adc_per_bin, bins - 1);
}

}  // namespace petacq::gpu
