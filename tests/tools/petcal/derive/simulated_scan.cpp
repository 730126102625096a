#include "tests/tools/petcal/derive/simulated_scan.hpp"

#include <algorithm>
#include <iterator>

#include "config/make_calibration.hpp"
#include "tools/petsim/simulation/events.hpp"

namespace petacq::test {

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
    sim::Chunk chunk;
    for (std::uint64_t i = 0; i < events.chunk_count(); ++i) {
        events.generate(i, chunk);
        std::copy_if(chunk.hits.begin(), chunk.hits.end(), std::back_inserter(hits),
                     [](const sim::Hit& h) { return h.energy >= 350 && h.energy <= 650; });
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
                             a.annihilation != b.annihilation || a.annihilation == 0});
        }
        i = end;
    }
    return pairs;
}

}  // namespace petacq::test
