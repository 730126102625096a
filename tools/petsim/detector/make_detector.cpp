#include "tools/petsim/detector/make_detector.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "config/arrangement.hpp"
#include "config/base/error.hpp"
#include "config/flood_layout.hpp"
#include "config/make_calibration.hpp"
#include "tools/petsim/random/random.hpp"

namespace petacq::sim {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DetectorModel, seed, spot_sigma, spot_jitter, crosstalk, gain, gain_spread,
                                   nonlinearity, time_spread_ps, resolution, resolution_spread,
                                   efficiency_spread, dead, noisy, noise_hz)

namespace {

void check_range(const char* name, double value, double low, double high) {
    if (value >= low && value <= high) return;
    throw config::Error(std::string("detector model: ") + name + ": expected " + std::to_string(low) +
                        " to " + std::to_string(high) + ", found " + std::to_string(value));
}

void check_model(const DetectorModel& m) {
    check_range("spot_sigma", m.spot_sigma, 0, 1);
    check_range("spot_jitter", m.spot_jitter, 0, 0.2);
    check_range("crosstalk", m.crosstalk, 0, 1);
    check_range("gain", m.gain, 0.01, 100);
    check_range("gain_spread", m.gain_spread, 0, 0.2);
    check_range("nonlinearity", m.nonlinearity, 0, 1);
    check_range("time_spread_ps", m.time_spread_ps, 0, 1e6);
    check_range("resolution", m.resolution, 0, 0.5);
    check_range("resolution_spread", m.resolution_spread, 0, 0.2);
    check_range("efficiency_spread", m.efficiency_spread, 0, 0.2);
    check_range("dead", m.dead, 0, 1);
    check_range("noisy", m.noisy, 0, 1 - m.dead);
    check_range("noise_hz", m.noise_hz, 0, 1e7);
}

struct Spot {
    double x;
    double y;
};

/// The position of a point of the block; u and v run over -1..1 inside the crystals.
Spot distorted(const config::FloodDistortion& d, std::uint32_t size, double u, double v) {
    // Solves r (1 + pincushion r^2) = wanted for the distance r from the centre.
    const double wanted = d.scale() * std::hypot(u, v);
    double r = wanted;
    for (int step = 0; step < 20; ++step)
        r -= (r * (1 + d.pincushion * r * r) - wanted) / (1 + 3 * d.pincushion * r * r);
    const double scale = wanted > 0 ? d.scale() * r / wanted : d.scale();
    const auto position = [&](double p) { return ((p + 1) * size - 1) / 2; };
    return {position(u * scale + d.centre_x), position(v * scale + d.centre_y)};
}

double cut_normal(Random& random) {
    return std::clamp(random.normal(), -4.0, 4.0);
}

void place_spot(const config::FloodLayout& layout, std::uint32_t position_size,
                const config::FloodDistortion& d, const DetectorModel& m, std::uint32_t local, Random& random,
                TrueCrystal& c) {
    const auto at = [&](double right, double below) {
        const config::FloodLayout::FloodPoint point = layout.point(local, right, below);
        return distorted(d, position_size, point.u, point.v);
    };
    const double pitch_x = at(0.5, 0).x - at(-0.5, 0).x;
    const double pitch_y = at(0, 0.5).y - at(0, -0.5).y;
    const Spot centre = at(0, 0);
    const double last = position_size - 1.0;
    c.spot_x =
        static_cast<float>(std::clamp(centre.x + m.spot_jitter * pitch_x * cut_normal(random), 0.0, last));
    c.spot_y =
        static_cast<float>(std::clamp(centre.y + m.spot_jitter * pitch_y * cut_normal(random), 0.0, last));
    c.spot_sigma_x = static_cast<float>(m.spot_sigma * pitch_x);
    c.spot_sigma_y = static_cast<float>(m.spot_sigma * pitch_y);
}

/// Exactly the wanted shares, rounded; which crystals they are is drawn.
void choose_states(const DetectorModel& m, std::vector<TrueCrystal>& crystals) {
    const auto count = static_cast<std::uint32_t>(crystals.size());
    const auto share = [&](double part) { return static_cast<std::uint32_t>(std::lround(part * count)); };
    std::vector<std::uint32_t> order(count);
    for (std::uint32_t i = 0; i < count; ++i)
        order[i] = i;
    Random random(m.seed, Purpose::detector, count);
    const std::uint32_t dead = share(m.dead);
    const std::uint32_t chosen = std::min(count, dead + share(m.noisy));
    for (std::uint32_t i = 0; i < chosen; ++i) {
        std::swap(order[i], order[i + random.below(count - i)]);
        crystals[order[i]].state = i < dead ? CrystalState::dead : CrystalState::noisy;
    }
}

}  // namespace

Detector make_detector(const config::Scanner& scanner, const DetectorModel& m) {
    check_model(m);
    const config::Geometry& g = scanner.geometry;
    const std::vector<config::FloodDistortion> units = config::flood_distortions(g, m.seed);
    Detector out;
    out.crystals.resize(g.crystal_count());
    out.crosstalk = m.crosstalk;
    out.noise_hz = m.noise_hz;
    out.made_with = nlohmann::json(m).dump();
    // What the type of its module states, else the model.
    const auto resolution_of = [&](std::uint32_t crystal) {
        if (scanner.is_ring()) return m.resolution;
        const config::Arrangement& a = *scanner.arrangement;
        return a.type_of(a.modules()[a.address(crystal).module]).energy_resolution.value_or(m.resolution);
    };
    for (std::uint32_t unit = 0; unit < units.size(); ++unit) {
        if (g.crystals_of_unit(unit) == 0) continue;
        const config::FloodLayout layout(scanner, unit);
        for (std::uint32_t local = 0; local < g.crystals_of_unit(unit); ++local) {
            const std::uint32_t number = g.crystal(unit / g.du_count, unit % g.du_count, local);
            TrueCrystal& c = out.crystals[number];
            Random random(m.seed, Purpose::detector, number);
            place_spot(layout, g.position_size, units[unit], m, local, random, c);
            c.gain = static_cast<float>(m.gain * (1 + m.gain_spread * cut_normal(random)));
            c.nonlinearity = static_cast<float>(m.nonlinearity * (0.5 + random.uniform()));
            c.time_offset_ps = static_cast<float>(m.time_spread_ps * cut_normal(random));
            c.energy_resolution =
                static_cast<float>(resolution_of(number) * (1 + m.resolution_spread * cut_normal(random)));
            c.efficiency = static_cast<float>(1 + m.efficiency_spread * cut_normal(random));
        }
    }
    choose_states(m, out.crystals);
    return out;
}

}  // namespace petacq::sim
