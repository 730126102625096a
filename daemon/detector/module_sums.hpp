// Sums over each module in one second or in several. The watch over the detector compares them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "config/geometry.hpp"
#include "daemon/seconds/second.hpp"

namespace petacq::daemon {

/// Sums over a module (BDM).
struct ModuleSums {
    double ends = 0;         ///< of prompts
    double trues = 0;        ///< of these, but for the randoms to be expected
    double dt = 0;           ///< ticks
    double dt_squared = 0;   ///< ticks^2
    double peak = 0;         ///< ends within 20 % of 511 keV
    double peak_energy = 0;  ///< of these, keV
    double singles = 0;

    ModuleSums& operator+=(const ModuleSums& o);

    /// Whether enough of the ends are true ones for a mean of their time differences.
    [[nodiscard]] bool has_trues() const { return trues > 0 && trues >= ends / 10; }
    /// Ticks by which the partners of its singles are later. Random prompts have a mean of 0, whatever the
    /// clocks, and count for nothing.
    [[nodiscard]] std::optional<double> mean_dt() const;
    [[nodiscard]] std::optional<double> photopeak_keV() const;
    /// Without random prompts.
    [[nodiscard]] std::optional<double> prompts_per_single() const;
};

/// By BDM.
using ModuleTable = std::vector<ModuleSums>;

/// Sums over a detector unit.
struct UnitSums {
    double trues = 0;  ///< as in ModuleSums
    double singles = 0;
};

struct DetectorSums {
    ModuleTable modules;
    std::vector<UnitSums> units;  ///< [bdm * du_count + du]; 0 for those that do not exist

    static DetectorSums none(const config::Geometry& geometry);
    DetectorSums& operator+=(const DetectorSums& more);
};

/// The crystals unit by unit, in the order of DetectorSums::units: of each unit as many as
/// Geometry::crystals_of_unit() says, of one that does not exist none.
std::vector<std::uint32_t> crystals_by_unit(const config::Geometry& geometry);
/// `crystals`: those by unit.
DetectorSums detector_sums(const Second& second, const config::Geometry& geometry,
                           const std::vector<std::uint32_t>& crystals);

/// A detector that is well: sums over the seconds at the start of a run.
struct DetectorBaseline {
    double length_s = 0;
    DetectorSums sums;
};

}  // namespace petacq::daemon
