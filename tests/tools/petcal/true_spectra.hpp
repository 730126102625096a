// Spectra as a true detector would give them: the truth against which derived calibrations are judged.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "config/calibration.hpp"
#include "config/scanner/scanner.hpp"
#include "config/spectra.hpp"
#include "tools/petsim/detector/detector.hpp"

namespace petacq::test {

/// A frame of a detector unit.
struct FloodFrame {
    std::uint32_t at;      ///< x + y * position_size
    std::uint32_t origin;  ///< the true crystal, as in the position table
};

inline const sim::TrueCrystal& true_crystal(const config::Geometry& g, const sim::Detector& d,
                                            std::size_t unit, std::uint32_t origin) {
    const auto number = static_cast<std::uint32_t>(unit);
    return d.crystals[g.crystal(number / g.du_count, number % g.du_count, g.local_of_origin(origin))];
}

/// Gaussian spots of so many frames for each crystal of efficiency 1, rounded to positions.
inline std::vector<FloodFrame> flood_frames(const config::Geometry& g, const sim::Detector& d,
                                            std::size_t unit, double counts) {
    std::mt19937_64 random(unit + 1);
    std::normal_distribution<> normal;
    std::vector<FloodFrame> frames;
    const double last = g.position_size - 1.0;
    for (std::uint32_t origin = 0; origin < g.crystals_per_du(); ++origin) {
        const sim::TrueCrystal& c = true_crystal(g, d, unit, origin);
        if (c.state == sim::CrystalState::dead) continue;
        const auto count = static_cast<std::uint32_t>(std::ceil(counts * c.efficiency));
        for (std::uint32_t i = 0; i < count; ++i) {
            const double x = std::clamp(std::round(c.spot_x + c.spot_sigma_x * normal(random)), 0.0, last);
            const double y = std::clamp(std::round(c.spot_y + c.spot_sigma_y * normal(random)), 0.0, last);
            const auto at = static_cast<std::uint32_t>(x + y * g.position_size);
            frames.push_back({at, origin});
        }
    }
    return frames;
}

inline std::vector<std::uint32_t> flood_of(const config::Geometry& g, const std::vector<FloodFrame>& frames) {
    std::vector<std::uint32_t> flood(std::size_t{g.position_size} * g.position_size);
    for (const FloodFrame& frame : frames)
        ++flood[frame.at];
    return flood;
}

/// The share of frames that a position table gives to their true crystal.
inline double share_right(const std::vector<FloodFrame>& frames, const std::uint16_t* table) {
    double right = 0;
    for (const FloodFrame& frame : frames)
        if (table[frame.at] == frame.origin) right += 1;
    return right / static_cast<double>(frames.size());
}

/// Spectra of a line, of scattered photons below it and of a Compton continuum, as the daemon takes them with
/// this calibration.
inline config::Spectra true_spectra(const config::Geometry& g, const sim::Detector& d,
                                    const config::Calibration& in_use, double counts,
                                    double line_keV = 511) {  // NOLINT(readability-identifier-naming)
    const double edge = line_keV * (1 - 1 / (1 + 2 * line_keV / 511));
    config::Spectra s = config::Spectra::none(g);
    s.calibration_sha256 = in_use.sha256;
    std::mt19937_64 random(7);
    std::normal_distribution<> normal;
    std::uniform_real_distribution<> uniform;
    const std::size_t positions = std::size_t{g.position_size} * g.position_size;
    for (std::uint32_t unit = 0; unit < g.bdm_count * g.du_count; ++unit) {
        for (const FloodFrame& frame : flood_frames(g, d, unit, counts)) {
            ++s.floods[unit * positions + frame.at];
            const std::uint32_t origin = in_use.position_table[unit * positions + frame.at];
            if (origin >= g.crystals_per_du()) continue;
            const sim::TrueCrystal& c = true_crystal(g, d, unit, frame.origin);
            double keV = line_keV;  // NOLINT(readability-identifier-naming)
            if (const double kind = uniform(random); kind > 0.5)
                keV = kind > 0.85 ? 250 + (line_keV - 250) * uniform(random)
                                  : edge * std::sqrt(uniform(random));
            keV += c.energy_resolution / 2.3548 * std::sqrt(511 * keV) * normal(random);
            const double adc = std::clamp(std::round(sim::adc_of(c, std::max(0.0, keV))), 0.0, 65535.0);
            const std::uint32_t local = g.local_of_origin(origin);
            const std::uint32_t bin = std::min(static_cast<std::uint32_t>(adc) / 10, in_use.bins - 1);
            const double factor =
                in_use.energy_factor[(std::size_t{unit} * g.crystals_per_du() + local) * in_use.bins + bin];
            const auto energy = static_cast<std::size_t>(
                std::min(adc * factor / config::energy_bin_keV, config::energy_bins - 1.0));
            const std::size_t crystal = g.crystal(unit / g.du_count, unit % g.du_count, local);
            ++s.energies[crystal * config::energy_bins + energy];
        }
    }
    return s;
}

}  // namespace petacq::test
