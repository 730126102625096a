// The simulation of scatter against photons followed by the simulator, one by one and without weights.
#include "tools/petlm/reconstruction/corrections/scatter_simulation.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>

#include "tests/support/catch.hpp"
#include "tests/tools/petlm/support.hpp"
#include "tools/petlm/reconstruction/corrections/coarse_object.hpp"
#include "tools/petsim/simulation/events/tracking.hpp"

using namespace petacq;
using namespace petacq::test;
using corrections::Vector3;

namespace {

const Vector3 source = {6, -2, 2};  // of activity, the centre of a cube of this size
constexpr double source_mm = 4;
const sim::ScatteringObject water = {{{2, 1, 0}, 14, 30}};
constexpr const char* same_water = "2,1,0,14,30";

corrections::Activity activity() {
    corrections::Activity out{{{16, 16, 16}, source_mm}, {}};
    out.of_voxel.resize(out.grid.voxels());
    const std::array<std::size_t, 3> at = {9, 7, 8};
    for (std::size_t axis = 0; axis < 3; ++axis)
        REQUIRE(out.grid.centre(axis, at[axis]) == Approx(source[axis]));
    out.of_voxel[(at[2] * 16 + at[1]) * 16 + at[0]] = 3;
    return out;
}

bool accepted_pair(std::uint32_t a, std::uint32_t b) {
    return a % 50 != 7 && b % 50 != 7;
}

/// By the modules of the two crystals.
using ByModules = std::array<double, 12 * 12>;

struct Followed {
    ByModules scattered{};
    double all_scattered = 0;
    double of_several = 0;  ///< of these, with more than one scatter
    double trues = 0;
    double all = 0;
    double low = 0;  ///< of all, with energies below the photopeak
};

std::size_t modules_of(const config::Scanner& scanner, std::uint32_t a, std::uint32_t b) {
    const auto module_of = [&](std::uint32_t crystal) {
        return crystal % scanner.geometry.crystals_in_ring() / scanner.geometry.crystals_per_module_y();
    };
    const auto [low, high] = std::minmax({module_of(a), module_of(b)});
    return low * 12 + high;
}

struct Hit {
    std::uint32_t crystal;
    double energy;
    int object_scatters;  ///< of the photon of the largest deposit, before it
};

/// Each detector unit joins its deposits to one hit at their mean place.
std::vector<Hit> joined(const config::Scanner& scanner, const std::vector<sim::Deposit>& deposits) {
    struct Sum {
        double energy = 0;
        double ring = 0;
        double around = 0;
        double largest = 0;
        int object_scatters = 0;
    };
    const config::Geometry& g = scanner.geometry;
    std::map<std::pair<std::uint32_t, std::uint32_t>, Sum> units;
    for (const sim::Deposit& d : deposits) {
        const std::uint32_t ring = d.crystal / g.crystals_in_ring();
        const std::uint32_t around = d.crystal % g.crystals_in_ring();
        Sum& unit = units[{ring / g.crystals.z, around / g.crystals.y}];
        unit.energy += d.energy;
        unit.ring += d.energy * ring;
        unit.around += d.energy * around;
        if (!(d.energy > unit.largest)) continue;
        unit.largest = d.energy;
        unit.object_scatters = d.object_scatters;
    }
    std::vector<Hit> out;
    for (const auto& [place, unit] : units) {
        const auto ring = static_cast<std::uint32_t>(std::lround(unit.ring / unit.energy));
        const auto around = static_cast<std::uint32_t>(std::lround(unit.around / unit.energy));
        out.push_back({ring * g.crystals_in_ring() + around, unit.energy, unit.object_scatters});
    }
    return out;
}

Followed follow(const config::Scanner& scanner, sim::CrystalModel crystals,
                const corrections::EnergyWindow& window, std::size_t decays) {
    sim::Options options;
    options.object = water;
    options.crystals.model = crystals;
    const sim::Tracker tracker(scanner, options);
    sim::Random random(7, sim::Purpose::events, 0);
    Followed out;
    std::vector<sim::Deposit> deposits;
    for (std::size_t decay = 0; decay < decays; ++decay) {
        sim::Photon photon;
        photon.energy = 511;
        photon.ray.at = source;
        for (double& x : photon.ray.at)
            x += source_mm / 2 * random.symmetric();
        photon.ray.direction = sim::isotropic(random);
        sim::Photon other = photon;
        for (double& x : other.ray.direction)
            x = -x;
        deposits.clear();
        tracker.follow(photon, {}, random, deposits);
        if (deposits.empty()) continue;
        tracker.follow(other, {}, random, deposits);
        // Pairs that are all that the window accepts.
        const std::vector<Hit> hits = joined(scanner, deposits);
        for (std::size_t i = 0; i < hits.size(); ++i) {
            for (std::size_t j = 0; j < i; ++j) {
                if (!accepted_pair(hits[i].crystal, hits[j].crystal)) continue;
                double weight = 1;
                for (std::size_t k = 0; k < hits.size(); ++k) {
                    const double accepted = window.accepted(hits[k].energy);
                    weight *= k == i || k == j ? accepted : 1 - accepted;
                }
                const int scatters = hits[i].object_scatters + hits[j].object_scatters;
                out.all += weight;
                out.low +=
                    weight *
                    (window.accepted_low(hits[i].energy) / std::max(window.accepted(hits[i].energy), 1e-9) +
                     window.accepted_low(hits[j].energy) / std::max(window.accepted(hits[j].energy), 1e-9)) /
                    2;
                if (scatters == 0) {
                    out.trues += weight;
                    continue;
                }
                out.all_scattered += weight;
                if (scatters > 1) out.of_several += weight;
                out.scattered[modules_of(scanner, hits[i].crystal, hits[j].crystal)] += weight;
            }
        }
    }
    return out;
}

}  // namespace

TEST_CASE("corrections: simulated scatter is that of photons followed one by one", "[petlm][corrections]") {
    const config::Scanner scanner = export_scanner();
    const auto object = corrections::AttenuatingObject::of({same_water});
    const auto crystals =
        GENERATE(sim::CrystalModel::surface, sim::CrystalModel::depth, sim::CrystalModel::scatter);
    CAPTURE(config::name_of(crystals));
    corrections::Detection detection;
    detection.window = {300, 650, 0.15, {}};
    detection.found = [](std::uint32_t a, std::uint32_t b) { return accepted_pair(a, b) ? 1 : 0; };
    detection.crystals.deep = crystals != sim::CrystalModel::surface;
    detection.crystals.scatters = crystals == sim::CrystalModel::scatter;
    net::WorkerPool two(2);
    const auto simulate = [&](net::WorkerPool& pool) {
        return corrections::ScatterSimulation(scanner, object, activity(), detection, 200'000, pool);
    };
    const auto simulated = simulate(two);
    const Followed expected = follow(scanner, crystals, detection.window,
                                     crystals == sim::CrystalModel::surface ? 400'000 : 1'000'000);
    REQUIRE(expected.all_scattered > 5000);
    CHECK(expected.of_several > 0.05 * expected.all_scattered);
    const double scale = expected.trues / simulated.trues();
    CHECK(scale * simulated.scattered() == Approx(expected.all_scattered).epsilon(0.03));
    CHECK(simulated.low_share() == Approx(expected.low / expected.all).epsilon(0.05));

    ByModules found{};
    for (std::uint32_t a = 0; a < scanner.geometry.crystal_count(); ++a) {
        for (std::uint32_t b = 0; b < a; ++b)
            if (accepted_pair(a, b)) found[modules_of(scanner, a, b)] += scale * simulated.counts(a, b);
    }
    CHECK(std::accumulate(found.begin(), found.end(), 0.0) ==
          Approx(scale * simulated.scattered()).epsilon(0.01));
    for (std::size_t i = 0; i < found.size(); ++i) {
        if (expected.scattered[i] < 400) continue;
        CAPTURE(i);
        CHECK(found[i] == Approx(expected.scattered[i]).epsilon(0.2));
    }

    net::WorkerPool three(3);
    const auto again = simulate(three);
    CHECK(again.scattered() == simulated.scattered());
    for (std::uint32_t a = 0; a < scanner.geometry.crystal_count(); a += 17) {
        CHECK(again.counts(a, 900) == simulated.counts(a, 900));
        CHECK(simulated.counts(900, a) == simulated.counts(a, 900));
    }
}

TEST_CASE("corrections: scatter is simulated until it is known as well as asked", "[petlm][corrections]") {
    const config::Scanner scanner = export_scanner();
    const auto object = corrections::AttenuatingObject::of({same_water});
    corrections::Detection detection;
    detection.window = {300, 650, 0.15, {}};
    detection.found = [](std::uint32_t a, std::uint32_t b) { return accepted_pair(a, b) ? 1 : 0; };
    net::WorkerPool pool(2);
    const corrections::Activity of_source = activity();
    const auto simulate = [&](std::size_t annihilations, const corrections::ScatterPrecision& precision) {
        return corrections::ScatterSimulation(scanner, object, of_source, detection, annihilations, pool,
                                              precision);
    };
    std::vector<image::Pair> pairs;
    for (std::uint32_t a = 0; a < scanner.geometry.crystal_count(); a += 11)
        for (std::uint32_t b = a % 7; b < a; b += 7)
            if (accepted_pair(a, b)) pairs.push_back({a, b});
    // The differences from one of many more annihilations tell the variance.
    const auto reference = simulate(1'000'000, {pairs, 1, 1'000'000});
    const auto variance = [&](const corrections::ScatterSimulation& simulation) {
        const double scale = reference.trues() / simulation.trues();
        double difference = 0;
        double square = 0;
        for (const image::Pair p : pairs) {
            const double expected = reference.counts(p.a, p.b);
            difference += std::pow(scale * simulation.counts(p.a, p.b) - expected, 2);
            square += expected * expected;
        }
        return difference / square;
    };
    constexpr std::size_t few = 10'000;
    const double before = variance(simulate(few, {}));
    CHECK(before > 0.2);
    const auto asked = simulate(few, {pairs, 0.1, 10'000'000});
    CHECK(asked.variance() <= 0.1);
    CHECK(variance(asked) == Approx(asked.variance() + reference.variance()).epsilon(0.3));
    // As well as the most annihilations allow.
    const auto stopped = simulate(few, {pairs, 0.1, few});
    CHECK(stopped.variance() == Approx(before).epsilon(0.3));
}

TEST_CASE("corrections: an object in coarse voxels attenuates as it is", "[petlm][corrections]") {
    const auto object = corrections::AttenuatingObject::of({same_water, "-12,0,5,6,20,0.3"});
    const corrections::CoarseObject coarse(export_scanner(), object);
    sim::Random random(3, sim::Purpose::events, 0);
    corrections::CoarseObject::Way way;
    for (int i = 0; i < 100; ++i) {
        // From inside the box around the object, and from outside.
        const double far = i % 2 == 0 ? 5 : 40;
        const sim::Ray ray{{far * random.symmetric(), far * random.symmetric(), far * random.symmetric()},
                           sim::isotropic(random)};
        sim::Ray end = ray;
        end.advance(200);
        const double integral = object.integral(ray.at, end.at);
        coarse.trace(ray, way);
        CAPTURE(ray.at, ray.direction);
        CHECK(way.thickness() == Approx(integral).margin(0.06));
        if (!(way.thickness() > 0.1)) continue;
        sim::Ray middle = ray;
        middle.advance(way.distance(way.thickness() / 2));
        CHECK(object.integral(ray.at, middle.at) == Approx(integral / 2).margin(0.06));
    }
    CHECK(corrections::CoarseObject(export_scanner(), corrections::AttenuatingObject::of({"90,0,0,5,10"}))
              .empty());
}
