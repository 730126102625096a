#include "config/make_calibration.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "config/base/error.hpp"
#include "config/flood_layout.hpp"

namespace petacq::config {

namespace {

/// Random numbers that are the same with every standard library: the distributions of <random> are not.
class Random {
  public:
    explicit Random(std::uint64_t seed) : engine_(seed) {}
    /// In [0, 1).
    double uniform() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
    double between(double low, double high) { return low + (high - low) * uniform(); }
    /// Mean 0, standard deviation 1, within +-6.
    double normal() {
        double sum = -6;
        for (int i = 0; i < 12; ++i)
            sum += uniform();
        return sum;
    }

  private:
    std::mt19937_64 engine_;
};

void check_range(const char* name, double low, double value, double high) {
    if (std::isfinite(value) && value >= low && value <= high) return;
    throw Error(std::string("calibration model: ") + name + ": expected " + std::to_string(low) + " to " +
                std::to_string(high) + ", found " + std::to_string(value));
}

void check_model(const CalibrationModel& m) {
    check_range("bins", 1, m.bins, max_bins);
    check_range("gain_keV_per_adc", 1e-6, m.gain_keV_per_adc, 1e6);
    check_range("energy_spread", 0, m.energy_spread, 0.3);
    check_range("nonlinearity", -0.5, m.nonlinearity, 1);
    check_range("time_offset_ticks", 0, m.time_offset_ticks, 1'000'000'000);
}

/// -1..1 inside the crystals, along one direction; `across` is the other position. `scale`: that of `d`.
double undistorted(const FloodDistortion& d, double scale, double along, double across) {
    return along * (1 + d.pincushion * (along * along + across * across)) / scale;
}

/// The gap is slightly more than one position where there is room, so that no two crystals touch.
double gap_between(std::uint32_t position_size, std::uint32_t regions) {
    const double positions = static_cast<double>(position_size) / regions;
    return positions < 6 ? 0 : 1.5 / positions;
}

void draw_flood_map(const Scanner& scanner, std::uint32_t unit, const FloodDistortion& d,
                    std::uint16_t* map) {
    const Geometry& g = scanner.geometry;
    const std::uint32_t size = g.position_size;
    const std::uint16_t none = outside_crystals(g);
    const bool all_inside = none < g.crystals_of_unit(unit);
    const FloodLayout layout(scanner, unit);
    std::vector<double> gaps;  // by the number of columns or rows
    for (const FloodLayout::Layer& layer : layout.layers()) {
        const std::uint32_t most =
            std::max(layout.fields_across() * layer.columns, layout.fields_down() * layer.rows);
        for (auto regions = static_cast<std::uint32_t>(gaps.size()); regions <= most; ++regions)
            gaps.push_back(all_inside ? 0 : gap_between(size, regions));
    }
    const auto gap = [&](std::uint32_t regions) { return gaps[regions]; };
    const double scale = d.scale();
    for (std::uint32_t y = 0; y < size; ++y) {
        for (std::uint32_t x = 0; x < size; ++x) {
            const double px = (2.0 * x + 1) / size - 1 - d.centre_x;
            const double py = (2.0 * y + 1) / size - 1 - d.centre_y;
            double u = undistorted(d, scale, px, py);
            double v = undistorted(d, scale, py, px);
            if (all_inside) {
                u = std::clamp(u, -1.0, std::nextafter(1.0, 0.0));
                v = std::clamp(v, -1.0, std::nextafter(1.0, 0.0));
            }
            const auto local = layout.crystal_at({u, v}, gap);
            // Turning the rows of a ring round is its own inverse: this is the entry that names the crystal.
            map[x + y * size] = local ? static_cast<std::uint16_t>(g.local_of_origin(*local)) : none;
        }
    }
}

std::vector<FloodDistortion> draw_distortions(const Geometry& g, Random& random) {
    std::vector<FloodDistortion> units(std::size_t{g.bdm_count} * g.du_count);
    for (FloodDistortion& d : units) {
        d.pincushion = random.between(0.05, 0.1);
        d.reach = random.between(0.91, 0.94);
        d.centre_x = random.between(-0.015, 0.015);
        d.centre_y = random.between(-0.015, 0.015);
    }
    return units;
}

void make_position_table(const Scanner& scanner, Random& random, Calibration& c) {
    const Geometry& g = scanner.geometry;
    const std::size_t positions = std::size_t{g.position_size} * g.position_size;
    const std::vector<FloodDistortion> units = draw_distortions(g, random);
    c.position_table.assign(units.size() * positions, outside_crystals(scanner.geometry));
    for (std::uint32_t unit = 0; unit < units.size(); ++unit) {
        if (g.crystals_of_unit(unit) > 0)
            draw_flood_map(scanner, unit, units[unit], &c.position_table[unit * positions]);
    }
}

void make_energy_factors(const Geometry& g, const CalibrationModel& m, Random& random, Calibration& c) {
    c.bins = m.bins;
    const std::size_t crystals = std::size_t{g.bdm_count} * g.du_count * g.crystals_per_du();
    c.energy_factor.resize(crystals * m.bins);
    const double last_bin = std::max<double>(1, m.bins - 1.0);
    for (std::size_t crystal = 0; crystal < crystals; ++crystal) {
        const double factor = m.gain_keV_per_adc * std::max(0.1, 1 + m.energy_spread * random.normal());
        for (std::uint32_t bin = 0; bin < m.bins; ++bin) {
            c.energy_factor[crystal * m.bins + bin] =
                static_cast<float>(factor * (1 + m.nonlinearity * bin / last_bin));
        }
    }
}

void make_time_offsets(const Geometry& g, std::int32_t most, Random& random, Calibration& c) {
    if (most == 0) return;
    c.time_offset.resize(g.crystal_count());
    for (std::int32_t& offset : c.time_offset)
        offset = static_cast<std::int32_t>(std::floor(random.uniform() * (2.0 * most + 1))) - most;
}

}  // namespace

std::vector<FloodDistortion> flood_distortions(const Geometry& geometry, std::uint64_t seed) {
    Random random(seed);
    return draw_distortions(geometry, random);
}

Calibration make_calibration(const Scanner& scanner, const CalibrationModel& model) {
    check_model(model);
    Random random(model.seed);
    Calibration c;
    make_position_table(scanner, random, c);
    make_energy_factors(scanner.geometry, model, random, c);
    make_time_offsets(scanner.geometry, model.time_offset_ticks, random, c);
    return c;
}

}  // namespace petacq::config
