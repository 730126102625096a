#include "tests/tools/petcal/estimate/simulated_scan.hpp"

#include <algorithm>
#include <vector>

#include "config/make_calibration.hpp"
#include "tools/petsim/simulation/events/event_generator.hpp"

namespace petacq::test {

namespace {

/// The crystal to which the best calibration gives the position of a hit.
class Assignment {
  public:
    Assignment(const config::Scanner& scanner, const sim::Detector& detector)
        : geometry_(scanner.geometry), table_(sim::calibration_of(scanner, detector).position_table) {}
    /// Whether there is one; it replaces that of the hit.
    bool assign(sim::Hit& hit) const {
        const std::size_t size = geometry_.position_size;
        const std::uint32_t origin = table_[(hit.unit * size + hit.y) * size + hit.x];
        if (origin >= geometry_.crystals_per_du()) return false;
        hit.crystal = geometry_.crystal(hit.unit / geometry_.du_count, hit.unit % geometry_.du_count,
                                        geometry_.local_of_origin(origin));
        return true;
    }

  private:
    const config::Geometry& geometry_;
    std::vector<std::uint16_t> table_;
};

}  // namespace

sim::Options cylinder_scan(double radius_mm, double length_mm, double mbq, double duration_s,
                           double efficiency) {
    sim::Options o;
    o.seed = 5;
    o.duration_s = duration_s;
    o.physics.efficiency = efficiency;
    sim::ActivitySource cylinder;
    cylinder.shape = sim::Shape::cylinder;
    cylinder.radius_mm = radius_mm;
    cylinder.length_mm = length_mm;
    cylinder.activity_mbq = mbq;
    o.activity = {cylinder};
    return o;
}

std::vector<SimulatedPair> simulate_pairs(const config::Scanner& scanner, const sim::Options& options,
                                          const sim::Detector& detector, std::uint64_t window) {
    const config::Calibration calibration = config::make_calibration(scanner, {});
    const sim::InverseCalibration inverse(scanner, calibration);
    const sim::EventGenerator events(scanner, inverse, options, &detector);
    std::vector<sim::Hit> hits;
    const Assignment assignment(scanner, detector);
    sim::Chunk chunk;
    for (std::uint64_t i = 0; i < events.chunk_count(); ++i) {
        events.generate(i, chunk);
        for (sim::Hit& hit : chunk.hits) {
            if (hit.energy >= 350 && hit.energy <= 650 && assignment.assign(hit)) hits.push_back(hit);
        }
    }
    std::sort(hits.begin(), hits.end(),
              [](const sim::Hit& x, const sim::Hit& y) { return x.raw_time < y.raw_time; });
    std::vector<SimulatedPair> pairs;
    for (std::size_t i = 0; i < hits.size();) {
        std::size_t end = i + 1;
        while (end < hits.size() && hits[end].raw_time - hits[i].raw_time <= window)
            ++end;
        const sim::Hit& a = hits[i];
        if (end - i == 2 && hits[i + 1].crystal != a.crystal) {
            const sim::Hit& b = hits[i + 1];
            pairs.push_back({a.crystal, b.crystal, static_cast<float>(b.raw_time - a.raw_time),
                             a.annihilation != b.annihilation || a.annihilation == 0,
                             ((a.kind | b.kind) & sim::hit_scattered) != 0});
        }
        i = end;
    }
    return pairs;
}

}  // namespace petacq::test
