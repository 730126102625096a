// The simulation of single scatter against photons followed one by one.
#include "tools/petlm/reconstruction/corrections/single_scatter.hpp"

#include <cmath>
#include <map>
#include <numbers>

#include "config/geometry.hpp"
#include "tests/support/catch.hpp"
#include "tests/tools/petlm/support.hpp"
#include "tools/geometry/hit_finder.hpp"
#include "tools/petsim/physics/compton.hpp"
#include "tools/petsim/physics/ray.hpp"

using namespace petacq;
using namespace petacq::test;
using corrections::Vector3;

namespace {

const Vector3 source = {6, -2, 3};  // of activity, a cube of this size
constexpr double source_mm = 4;

corrections::Activity activity(double decays) {
    corrections::Activity out{{{16, 16, 16}, source_mm}, {}};
    out.per_mm3.resize(out.grid.voxels());
    const std::size_t voxel = (8 * 16 + 7) * 16 + 9;
    for (std::size_t axis = 0; axis < 3; ++axis) {
        const std::array<std::size_t, 3> at = {9, 7, 8};
        REQUIRE(std::abs(out.grid.centre(axis, at[axis]) - source[axis]) < 1.1);
    }
    out.per_mm3[voxel] = static_cast<float>(decays / std::pow(source_mm, 3));
    return out;
}

/// Pairs of which one photon was scattered once, by the modules of the two crystals.
using ByModules = std::map<std::pair<std::uint32_t, std::uint32_t>, double>;

/// Each photon 2 is made to scatter somewhere on its way through the object, with a weight.
ByModules followed(const config::Scanner& scanner, const corrections::AttenuatingObject& object,
                   const corrections::EnergyWindow& window, std::size_t decays) {
    const geometry::HitFinder finder(scanner);
    const corrections::Activity cube = activity(1);
    sim::Random random(7, sim::Purpose::events, 0);
    ByModules out;
    const auto module_of = [&](std::uint32_t crystal) {
        return crystal % scanner.geometry.crystals_in_ring() / scanner.geometry.crystals_per_module_y();
    };
    for (std::size_t decay = 0; decay < decays; ++decay) {
        Vector3 from = {cube.grid.centre(0, 9), cube.grid.centre(1, 7), cube.grid.centre(2, 8)};
        for (double& x : from)
            x += source_mm / 2 * random.symmetric();
        const Vector3 u = sim::isotropic(random);
        const auto first = finder.find(from, u);
        if (!first) continue;
        const auto along = [](const Vector3& p, const Vector3& d, double mm) {
            return Vector3{p[0] + mm * d[0], p[1] + mm * d[1], p[2] + mm * d[2]};
        };
        const Vector3 back = {-u[0], -u[1], -u[2]};
        const double way = 60 * random.uniform();
        const Vector3 at = along(from, back, way);
        const double here = object.per_cm(at) / 10;
        if (here == 0) continue;
        const double cosine = sim::draw_compton_cosine(511, random);
        const Vector3 d = sim::turned(back, cosine, sim::azimuth(random));
        const auto second = finder.find(at, d);
        if (!second) continue;
        const double energy = 511 * sim::compton_share(511, cosine);
        const double more = sim::klein_nishina_total(energy) / sim::klein_nishina_total(511);
        const double weight =
            60 * here *
            std::exp(-object.integral(from, along(from, u, first->distance_mm)) - object.integral(from, at) -
                     more * object.integral(at, along(at, d, second->distance_mm))) *
            window.accepted(energy) / window.accepted(511);
        // Either photon may be the one that is scattered.
        out[std::minmax(module_of(first->crystal), module_of(second->crystal))] += 2 * weight;
    }
    return out;
}

}  // namespace

TEST_CASE("corrections: single scatter is that of photons followed one by one", "[petlm][corrections]") {
    const config::Scanner scanner = export_scanner();
    const auto object = corrections::AttenuatingObject::of({"2,1,0,14,30"});
    const corrections::EnergyWindow window{400, 600, 0.15};
    constexpr std::size_t decays = 400'000;
    net::WorkerPool two(2);
    const corrections::SingleScatter simulated(scanner, object, activity(decays), window, two);
    ByModules found;
    const std::uint32_t crystals = scanner.geometry.crystal_count();
    const std::uint32_t columns = scanner.geometry.crystals_per_module_y();
    const std::uint32_t in_ring = scanner.geometry.crystals_in_ring();
    // Every second crystal in each direction stands for four.
    for (std::uint32_t a = 0; a < crystals; ++a) {
        if (a % 2 != 0 || a / in_ring % 2 != 0) continue;
        for (std::uint32_t b = 1; b < a; ++b) {
            if (b % 2 != 1 || b / in_ring % 2 != 1) continue;
            found[std::minmax(a % in_ring / columns, b % in_ring / columns)] += 16 * simulated.counts(a, b);
        }
    }
    const ByModules expected = followed(scanner, object, window, decays);
    double sum = 0;
    double sum_found = 0;
    for (const auto& [modules, counts] : expected) {
        const std::uint32_t apart = modules.second - modules.first;
        if (std::min(apart, 12 - apart) < 2) continue;
        sum += counts;
        sum_found += found[modules];
        if (counts < 300) continue;
        CAPTURE(modules.first, modules.second);
        CHECK(found[modules] == Approx(counts).epsilon(0.15));
    }
    CHECK(sum > 5000);
    CHECK(sum_found == Approx(sum).epsilon(0.03));

    net::WorkerPool three(3);
    const corrections::SingleScatter again(scanner, object, activity(decays), window, three);
    for (std::uint32_t a = 0; a < crystals; a += 17) {
        CHECK(again.counts(a, 900) == simulated.counts(a, 900));
        CHECK(simulated.counts(900, a) == Approx(simulated.counts(a, 900)));
    }
}

TEST_CASE("corrections: the width of the photopeak comes from the energies above it",
          "[petlm][corrections]") {
    sim::Random random(3, sim::Purpose::events, 0);
    corrections::PhotopeakWidth width;
    constexpr double resolution = 0.17;
    for (int i = 0; i < 20'000; ++i) {
        width.add(static_cast<float>(511 * (1 + resolution / 2.3548 * random.normal())));
        width.add(static_cast<float>(350 + 150 * random.uniform()));  // scattered
    }
    width.add(std::nanf(""));
    const auto window = width.window(config::Energy{true, 425, 640});
    CHECK(window.resolution == Approx(resolution).epsilon(0.03));
    CHECK(window.lower == 425);
    CHECK(window.upper == 640);
    CHECK(window.accepted(511) == Approx(0.995).margin(0.01));
    CHECK(window.accepted(425) == Approx(0.5).margin(0.01));
    // Without a filter all energies count.
    CHECK(width.window(config::Energy{false, 425, 640}).accepted(200) == Approx(1));
    // Nothing is known.
    const auto unknown = corrections::PhotopeakWidth().window(std::nullopt);
    CHECK(unknown.lower == 350);
    CHECK(unknown.resolution == 0.12);
}
