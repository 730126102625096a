// From photopeaks to energy factors.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config/calibration.hpp"
#include "config/scanner/geometry.hpp"
#include "tools/petcal/estimate/unit_energies.hpp"
#include "tools/petcal/results/results.hpp"

namespace petacq::petcal {

inline constexpr double first_line_keV = 511;  // NOLINT(readability-identifier-naming)

/// What is known of a detector unit.
struct UnitLines {
    UnitEnergies first;   ///< of 511 keV
    UnitEnergies second;  ///< without crystals if there is no second line

    /// Of either line; empty: the unit can be used.
    [[nodiscard]] const std::string& refused() const {
        return first.refused.empty() ? second.refused : first.refused;
    }
};

/// Of a crystal whose two lines were fitted: ADC counts per keV at the second line / those at 511 keV - 1.
/// Below 0 above 511 keV for a crystal that saturates.
struct Nonlinearity {
    double deviation = 0;
    double error = 0;  ///< by the counts
};
/// `factors`: those in use of that crystal. None unless both peaks were fitted.
std::optional<Nonlinearity> nonlinearity_of(std::span<const float> factors, const UnitLines& unit,
                                            std::size_t local,
                                            double second_keV);  // NOLINT(readability-identifier-naming)

/// The factors in use of a local crystal of a unit.
std::span<const float> factors_of(const config::Geometry& geometry, const config::Calibration& calibration,
                                  std::size_t unit, std::size_t local);

/// `second_keV` is 0 without a second line.
EnergyResult energy_result(const config::Geometry& geometry, const config::Calibration& old,
                           const std::vector<UnitLines>& units,
                           double second_keV);  // NOLINT(readability-identifier-naming)

}  // namespace petacq::petcal
