// Photons in crystals: depth, scatter from crystal to crystal, and Lu-176 with its gammas.
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/tools/petsim/simulation/followed.hpp"
#include "tools/petsim/detector/make_detector.hpp"

using namespace petacq;

namespace {

std::size_t unit_of(const config::Geometry& g, std::uint32_t crystal) {
    const std::uint32_t in_ring = crystal % g.crystals_in_ring();
    const std::uint32_t ring = crystal / g.crystals_in_ring();
    return std::size_t{ring / g.crystals.z} * (g.crystals_in_ring() / g.crystals.y) + in_ring / g.crystals.y;
}

std::vector<sim::Deposit> follow(const sim::Tracker& tracker, const sim::Ray& ray, sim::Random& random) {
    std::vector<sim::Deposit> deposits;
    sim::Photon photon{ray, 511};
    tracker.follow(photon, {}, random, deposits);
    return deposits;
}

/// From the axis straight into the middle of a crystal, so that gaps are far.
sim::Ray towards(const config::Scanner& scanner, std::uint32_t crystal) {
    const auto place = config::crystal_place(scanner, crystal);
    return {config::point_at_depth(place, -0.5 * scanner.dimensions.ring_radius_mm), place.outward};
}

}  // namespace

TEST_CASE("with depth, the share of photons detected is that of their way in crystals", "[petsim][photons]") {
    auto scanner = test::small_scanner();
    scanner.dimensions.crystal_length_mm = GENERATE(5.0, 15.0);
    sim::Random random(22, sim::Purpose::check, 0);
    const sim::Tracker tracker(scanner, test::ideal(1, 1, sim::CrystalModel::depth));
    constexpr int n = 20'000;
    int found = 0;
    for (int i = 0; i < n; ++i) {
        const auto deposits = follow(tracker, towards(scanner, 2), random);
        REQUIRE(deposits.size() <= 1);
        if (deposits.empty()) continue;
        ++found;
        REQUIRE(deposits[0].energy == 511);
        REQUIRE(deposits[0].crystal == 2);
        REQUIRE(deposits[0].path_mm > 0.5 * scanner.dimensions.ring_radius_mm);
    }
    const double share = 1 - std::exp(-0.083 * scanner.dimensions.crystal_length_mm);
    CHECK(found == Approx(n * share).margin(3 * std::sqrt(n * share * (1 - share))));
}

TEST_CASE("with depth, oblique photons hit crystals behind the one that they enter", "[petsim][photons]") {
    const auto scanner = test::small_scanner();
    const auto calibration = test::small_calibration();
    const geometry::HitFinder finder(scanner);
    // Towards the end of the scanner parallax shifts hits outwards: compare with the front faces.
    const auto mean_z = [&](sim::CrystalModel model) {
        auto options = test::ideal(4, 0.05, model);
        options.activity[0].at = {0, 0, finder.axial_low_mm()};
        test::Moments z;
        for (const auto& t : test::record(scanner, calibration, options).truth)
            z.add(config::crystal_place(scanner, t.crystal).front_centre_mm[2] - finder.axial_low_mm());
        return z;
    };
    const auto surface = mean_z(sim::CrystalModel::surface);
    const auto depth = mean_z(sim::CrystalModel::depth);
    CHECK(depth.n < 0.8 * surface.n);
    CHECK(depth.mean() > surface.mean() + 10 * depth.sigma() / std::sqrt(depth.n));
    // A photon at 45 degrees that gets in deep: its crystal is not the one that it enters.
    const sim::Tracker tracker(scanner, test::ideal(1, 1, sim::CrystalModel::depth));
    sim::Random random(23, sim::Purpose::check, 0);
    int behind = 0;
    int found = 0;
    for (int i = 0; i < 2000; ++i) {
        const double s = std::sqrt(0.5);
        const auto start = config::crystal_place(scanner, 2).front_centre_mm;
        const sim::Ray ray{{start[0] - 20, start[1], start[2] - 20}, {s, 0, s}};
        const auto entry = finder.find(ray.at, ray.direction);
        REQUIRE(entry);
        for (const sim::Deposit& d : follow(tracker, ray, random)) {
            const auto ring = [&](std::uint32_t c) { return c / scanner.geometry.crystals_in_ring(); };
            const auto steps = static_cast<double>(ring(d.crystal) - ring(entry->crystal));
            const double along = (d.path_mm - entry->distance_mm) * s;     // in z as in depth
            REQUIRE(std::abs(steps * 1.7 - along) < 1.7 + 4 * (0.5 + 1));  // pitch, and gaps
            behind += d.crystal != entry->crystal ? 1 : 0;
            ++found;
        }
    }
    CHECK(behind > found / 2);
}

TEST_CASE("scattering photons leave all their energy, or escape with the rest", "[petsim][photons]") {
    const auto scanner = test::small_scanner();
    auto options = test::ideal(1, 1, sim::CrystalModel::scatter);
    sim::Random random(24, sim::Purpose::check, 0);
    options.crystals.attenuation_per_cm = GENERATE(0.83, 20.0);
    const sim::Tracker tracker(scanner, options);
    const bool thick = options.crystals.attenuation_per_cm > 1;
    constexpr int n = 10'000;
    int several = 0;
    int whole = 0;
    int found = 0;
    for (int i = 0; i < n; ++i) {
        const auto deposits = follow(tracker, {{0, 0, 0}, sim::isotropic(random)}, random);
        if (deposits.empty()) continue;
        ++found;
        double sum = 0;
        for (std::size_t a = 0; a < deposits.size(); ++a) {
            REQUIRE(deposits[a].energy > 0);
            sum += deposits[a].energy;
            for (std::size_t b = 0; b < a; ++b)
                REQUIRE(deposits[a].crystal != deposits[b].crystal);
        }
        REQUIRE(sum < 511 + 1e-9);
        whole += sum > 511 - 1e-9 ? 1 : 0;
        several += deposits.size() > 1 ? 1 : 0;
        // What escapes is a photon, not less than is followed.
        if (sum < 511 - 1e-9) REQUIRE(sum < 511 - 20);
    }
    CHECK(found > n / 10);
    CHECK(several > found / 20);
    if (thick) {
        CHECK(whole > found * 0.8);
    } else {
        CHECK(whole > found * 0.32);
        CHECK(whole < found * 0.8);
    }
    options.crystals.photo_share = 1;
    const sim::Tracker absorbing(scanner, options);
    for (int i = 0; i < 1000; ++i) {
        for (const sim::Deposit& d : follow(absorbing, {{0, 0, 0}, sim::isotropic(random)}, random))
            REQUIRE(d.energy == 511);
    }
}

TEST_CASE("a photon that flies back through the bore scatters in the object", "[petsim][photons]") {
    const auto scanner = test::small_scanner();
    auto options = test::ideal(1, 1, sim::CrystalModel::depth);
    options.object = {{{0, 0, 0}, 20, 60}, 10};  // dense: nothing passes
    const sim::Tracker tracker(scanner, options);
    sim::Random random(26, sim::Purpose::check, 0);
    const auto place = config::crystal_place(scanner, 2);
    int scattered = 0;
    for (int i = 0; i < 1000; ++i) {
        std::vector<sim::Deposit> deposits;
        sim::Photon photon{{config::point_at_depth(place, 0.01), {-place.outward[0], -place.outward[1], 0}},
                           511};
        tracker.follow(photon, {}, random, deposits);
        scattered += photon.object_scatters > 0 ? 1 : 0;
    }
    CHECK(scattered > 980);
}

TEST_CASE("what a photon leaves before it flies back into the object is not scattered", "[petsim][photons]") {
    const auto scanner = test::small_scanner();
    auto options = test::ideal(1, 1, sim::CrystalModel::scatter);
    options.object = {{{0, 0, 0}, 20, 60}, 10};  // dense: nothing passes
    const sim::Tracker tracker(scanner, options);
    sim::Random random(27, sim::Purpose::check, 0);
    const auto place = config::crystal_place(scanner, 2);
    int came_back = 0;
    for (int i = 0; i < 5000; ++i) {
        std::vector<sim::Deposit> deposits;
        sim::Photon photon{{config::point_at_depth(place, -1), place.outward}, 511};
        tracker.follow(photon, {}, random, deposits);
        if (deposits.empty()) continue;
        REQUIRE(deposits.front().object_scatters == 0);
        REQUIRE(deposits.back().object_scatters <= photon.object_scatters);
        came_back += photon.object_scatters > 0 ? 1 : 0;
    }
    CHECK(came_back > 50);
}

TEST_CASE("crystals that find fewer photons find all of their energy", "[petsim][photons]") {
    const auto scanner = test::small_scanner();
    const auto calibration = test::small_calibration();
    auto options = test::ideal(4, 0.02, sim::CrystalModel::scatter);
    options.crystals.attenuation_per_cm = 2;
    const auto share_of_full = [&](float weak) {
        auto detector = sim::make_detector(scanner, {});
        for (std::size_t i = 0; i < detector.crystals.size(); ++i) {
            detector.crystals[i].energy_resolution = 0.001F;
            detector.crystals[i].efficiency = i % 2 == 0 ? weak : 1;
        }
        std::map<std::pair<std::uint64_t, int>, double> photons;
        for (const auto& [id, records] :
             test::by_annihilation(test::record(scanner, calibration, options, &detector))) {
            for (const auto& t : records)
                photons[{id, t.photon & (sim::truth_first_photon | sim::truth_second_photon)}] +=
                    static_cast<double>(t.true_energy);
        }
        const auto full = std::count_if(photons.begin(), photons.end(),
                                        [](const auto& p) { return std::abs(p.second - 511) < 5; });
        return static_cast<double>(full) / static_cast<double>(photons.size());
    };
    CHECK(share_of_full(0.3F) == Approx(share_of_full(1)).margin(0.02));
}

TEST_CASE("a photon gives at most one frame per block, and singles in other blocks", "[petsim][photons]") {
    const auto scanner = test::small_scanner();
    const auto calibration = test::small_calibration();
    const auto detector = sim::make_detector(scanner, {});
    const sim::Detector* const with = GENERATE(false, true) ? &detector : nullptr;
    auto options = test::ideal(4, 0.02, sim::CrystalModel::scatter);
    options.crystals.attenuation_per_cm = 2;
    const auto run = test::record(scanner, calibration, options, with);
    int shared = 0;
    int full = 0;
    int hits = 0;
    for (const auto& [id, records] : test::by_annihilation(run)) {
        std::map<int, double> energy;  // by photon
        for (std::size_t a = 0; a < records.size(); ++a) {
            const auto& t = records[a];
            const int photon = t.photon & (sim::truth_first_photon | sim::truth_second_photon);
            REQUIRE((photon == 1 || photon == 2));
            energy[photon] += static_cast<double>(t.true_energy);
            for (std::size_t b = 0; b < a; ++b) {
                REQUIRE(unit_of(scanner.geometry, t.true_crystal) !=
                        unit_of(scanner.geometry, records[b].true_crystal));
            }
            ++hits;
            shared += (t.photon & sim::truth_later) != 0 ? 1 : 0;
        }
        double sum = 0;
        for (const auto& [photon, its] : energy) {
            sum += its;
            full += its > 508 && its < 514 ? 1 : 0;  // whole ADC counts
        }
        if (with == nullptr) REQUIRE(sum < 1024);
    }
    CHECK(shared > hits / 50);
    CHECK(shared < hits / 2);
    CHECK((with != nullptr || full > hits / 3));
    CHECK(run.statistics.total().hits == run.truth.size());
}

TEST_CASE("a decay of Lu-176 is seen in several blocks, by its beta and its gammas", "[petsim][photons]") {
    const auto scanner = test::small_scanner();
    const auto calibration = test::small_calibration();
    auto options = test::ideal(0, 0.5, GENERATE(sim::CrystalModel::depth, sim::CrystalModel::scatter));
    options.physics.intrinsic_hz = 20;
    options.crystals.cascade = true;
    const auto run = test::record(scanner, calibration, options);
    CHECK(run.statistics.events.annihilations == 0);
    int coincidences = 0;
    int upper = 0;
    int lower = 0;
    const auto decays = test::by_annihilation(run);
    CHECK(decays.size() == run.statistics.events.intrinsic);
    for (const auto& [id, hits] : decays) {
        REQUIRE(id > sim::first_decay_number);
        double sum = 0;
        for (const auto& t : hits) {
            REQUIRE((t.flags & (sim::truth_intrinsic | sim::truth_photon)) == sim::truth_intrinsic);
            sum += static_cast<double>(t.true_energy);
        }
        REQUIRE(sum < 593 + 307 + 202 + 89 + 2);
        coincidences += hits.size() > 1 ? 1 : 0;
        for (const auto& t : hits) {
            if ((t.photon & sim::truth_later) == 0) continue;
            upper += std::abs(static_cast<double>(t.true_energy) - 306.8) < 1 ? 1 : 0;
            lower += std::abs(static_cast<double>(t.true_energy) - 201.8) < 1 ? 1 : 0;
        }
    }
    const auto n = static_cast<int>(decays.size());
    CHECK(coincidences > n / 5);
    CHECK(coincidences < n);
    CHECK(upper > n / 20);
    CHECK(lower > n / 20);
}

TEST_CASE("followed photons give the same on any number of threads", "[petsim][photons]") {
    auto options = test::ideal(4, 0.02, sim::CrystalModel::scatter);
    options.physics.efficiency = 0.7;
    options.physics.intrinsic_hz = 20;
    options.crystals.cascade = true;
    options.object = test::water(20);
    const auto one = test::record(options);
    options.threads = 3;
    const auto three = test::record(options);
    CHECK(one.datagrams == three.datagrams);
    CHECK(one.statistics.events == three.statistics.events);
}

TEST_CASE("parameters of what is switched off change nothing", "[petsim][photons]") {
    auto options = test::point_options();
    options.physics.intrinsic_hz = 20;
    const auto plain = test::record(options);
    options.crystals.attenuation_per_cm = 3;
    options.crystals.photo_share = 0.9;
    const auto other = test::record(options);
    CHECK(plain.datagrams == other.datagrams);
    for (const auto& t : plain.truth)
        REQUIRE((t.photon == 0 && t.object_scatters == 0));
}
