#include "tools/petsim/detector/detector.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "config/energy_bins.hpp"
#include "config/flood_layout.hpp"

namespace petacq::sim {

namespace {

constexpr double peak_keV = 511;  // NOLINT(readability-identifier-naming)

/// Each position belongs to the nearest spot, if that is within one pitch in both directions.
void draw_positions(const config::Scanner& scanner, const Detector& detector, std::uint32_t unit,
                    std::uint8_t* table) {
    const config::Geometry& g = scanner.geometry;
    const config::FloodLayout layout(scanner, unit);
    const std::uint32_t size = g.position_size;
    const std::uint32_t locals = g.crystals_of_unit(unit);
    // With 256 crystals every byte value names a crystal: no position can be outside.
    const bool all_inside = locals > 255;
    std::vector<double> nearest(std::size_t{size} * size, std::numeric_limits<double>::infinity());
    const auto first = [](double v) { return static_cast<std::uint32_t>(std::max(std::ceil(v), 0.0)); };
    for (std::uint32_t origin = 0; origin < locals; ++origin) {
        const std::uint32_t local = g.local_of_origin(origin);
        const double reach_x = all_inside ? size : static_cast<double>(size) / layout.columns(local);
        const double reach_y = all_inside ? size : static_cast<double>(size) / layout.rows(local);
        const TrueCrystal& c = detector.crystals[g.crystal(unit / g.du_count, unit % g.du_count, local)];
        for (std::uint32_t y = first(c.spot_y - reach_y); y < size && y <= c.spot_y + reach_y; ++y) {
            for (std::uint32_t x = first(c.spot_x - reach_x); x < size && x <= c.spot_x + reach_x; ++x) {
                const double dx = x - double{c.spot_x};
                const double dy = y - double{c.spot_y};
                double& best = nearest[x + std::size_t{y} * size];
                if (dx * dx + dy * dy >= best) continue;
                best = dx * dx + dy * dy;
                table[x + std::size_t{y} * size] = static_cast<std::uint8_t>(origin);
            }
        }
    }
}

/// Energy per ADC count in the middle of each bin; beyond what the crystal reaches the last one that it does.
void fill_factors(const TrueCrystal& crystal, std::uint32_t bins, float* factors) {
    double factor = 1 / crystal.gain;
    for (std::uint32_t bin = 0; bin < bins; ++bin) {
        const double adc = bin * config::adc_per_bin + (config::adc_per_bin - 1) * 0.5;
        const double energy = energy_of(crystal, adc);
        if (std::isfinite(energy)) factor = energy / adc;
        factors[bin] = static_cast<float>(factor);
    }
}

}  // namespace

double adc_of(const TrueCrystal& crystal, double energy) {
    const double n = crystal.nonlinearity;
    return crystal.gain * energy * (1 + n) / (1 + n * energy / peak_keV);
}

double energy_of(const TrueCrystal& crystal, double adc) {
    const double n = crystal.nonlinearity;
    const double rest = crystal.gain * (1 + n) - n * adc / peak_keV;
    return rest > 0 ? adc / rest : std::numeric_limits<double>::infinity();
}

config::Calibration calibration_of(const config::Scanner& scanner, const Detector& detector) {
    const config::Geometry& g = scanner.geometry;
    const std::uint32_t units = g.unit_count();
    const std::uint32_t locals = g.crystals_per_du();
    const std::size_t positions = std::size_t{g.position_size} * g.position_size;
    config::Calibration out;
    const bool linear = std::all_of(detector.crystals.begin(), detector.crystals.end(),
                                    [](const TrueCrystal& c) { return c.nonlinearity == 0; });
    constexpr std::uint32_t usual_bins = 512;
    out.bins = linear ? 1 : usual_bins;
    out.position_table.assign(units * positions, 255);
    out.energy_factor.resize(std::size_t{units} * locals * out.bins);
    for (std::uint32_t unit = 0; unit < units; ++unit) {
        if (g.crystals_of_unit(unit) > 0)
            draw_positions(scanner, detector, unit, &out.position_table[unit * positions]);
        for (std::uint32_t local = 0; local < g.crystals_of_unit(unit); ++local) {
            const std::uint32_t crystal = g.crystal(unit / g.du_count, unit % g.du_count, local);
            fill_factors(detector.crystals[crystal], out.bins,
                         &out.energy_factor[(std::size_t{unit} * locals + local) * out.bins]);
        }
    }
    constexpr double most = std::numeric_limits<std::int32_t>::max();
    for (const TrueCrystal& c : detector.crystals) {
        const double ticks = std::round(c.time_offset_ps / scanner.tick_ps);
        out.time_offset.push_back(static_cast<std::int32_t>(std::clamp(ticks, -most, most)));
    }
    return out;
}

}  // namespace petacq::sim
