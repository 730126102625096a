// Scanners of the long form: transport through layers and modules, materials, resolutions, addresses.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "config/scanner/arrangement.hpp"
#include "config/scanner/crystal_material.hpp"
#include "tests/config/helpers.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/odd_scanner.hpp"
#include "tests/support/scanner_with_gaps.hpp"
#include "tests/tools/petsim/simulation/followed.hpp"
#include "tools/petsim/detector/make_detector.hpp"

using namespace petacq;

namespace {

using sim::CrystalModel;

config::Calibration calibration_for(const config::Scanner& scanner) {
    config::CalibrationModel model;
    model.seed = 3;
    model.nonlinearity = 0.1;
    model.time_offset_ticks = 30;
    return config::make_calibration(scanner, model);
}

test::Recorded record(const config::Scanner& scanner, const sim::Options& options,
                      const sim::Detector* detector = nullptr) {
    return test::record(scanner, calibration_for(scanner), options, detector);
}

const config::ModuleType& type_of(const config::Scanner& scanner, std::uint32_t crystal) {
    const config::Arrangement& a = *scanner.arrangement;
    return a.type_of(a.modules()[a.address(crystal).module]);
}

/// small_scanner() in the long form.
config::Scanner small_ring() {
    return config::scanner_from_json(nlohmann::json::parse(R"({
        "name": "ring", "tick_ps": 15.625, "position_size": 64,
        "module_types": [{"name": "module", "layers": [{
            "y": {"count": 10, "pitch_mm": 1.6, "gaps": [{"after": 5, "mm": 0.4}]},
            "z": {"count": 12, "pitch_mm": 1.7, "gaps": [{"after": 4, "mm": 0.5}, {"after": 8, "mm": 0.5}]},
            "length_mm": 12}],
            "units": [{"y": [0, 4], "z": [0, 3]}, {"y": [0, 4], "z": [4, 7]}, {"y": [0, 4], "z": [8, 11]},
                      {"y": [5, 9], "z": [0, 3]}, {"y": [5, 9], "z": [4, 7]}, {"y": [5, 9], "z": [8, 11]}]}],
        "modules": [{"type": "module", "ring": {"count": 12, "radius_mm": 32}, "along_z": {"count": 2, "pitch_mm": 22.4}}]})"));
}

/// Counts of two independent runs that have the same mean.
template <class Count>
bool alike(Count first, Count second) {
    const auto a = static_cast<double>(first);
    const auto b = static_cast<double>(second);
    return std::abs(a - b) < 5 * std::sqrt(a + b + 1);
}

std::string refusal(const config::Scanner& scanner, const sim::Options& options) {
    try {
        sim::check(options, scanner);
    } catch (const std::invalid_argument& e) {
        return e.what();
    }
    return "";
}

}  // namespace

TEST_CASE("any arrangement: a ring gives what it gives in the short form", "[petsim][photons]") {
    const auto ring = small_ring();
    const auto short_form = test::small_scanner();
    REQUIRE(ring.geometry.crystal_count() == short_form.geometry.crystal_count());
    auto options = test::point_options(3, 0.05);
    options.activity[0].at = {6, -4, 9};
    options.physics.intrinsic_hz = 40;
    options.crystals.cascade = true;
    options.crystals.model = CrystalModel::scatter;
    options.object = test::water(20, 50);
    const auto a = test::record(short_form, test::small_calibration(), options);
    options.seed += 1;
    const auto b = record(ring, options);
    CHECK(alike(a.statistics.events.photons_detected, b.statistics.events.photons_detected));
    CHECK(alike(a.statistics.events.pairs_detected, b.statistics.events.pairs_detected));
    CHECK(alike(a.statistics.events.scattered, b.statistics.events.scattered));
    CHECK(alike(a.statistics.events.intrinsic, b.statistics.events.intrinsic));
    const auto short_arrangement = config::arrangement_of(short_form);
    // By module, and by crystal in the module: where along the rows, where along the columns.
    const auto profile = [](const test::Recorded& run, const config::Arrangement& arrangement) {
        std::vector<double> counts(24 + 10 + 12);
        test::Moments energy;
        for (const sim::TruthRecord& t : run.truth) {
            const config::CrystalAddress at = arrangement.address(t.true_crystal);
            ++counts[at.module];
            ++counts[24 + at.column];
            ++counts[34 + at.row];
            energy.add(t.energy);
        }
        return std::pair(counts, energy);
    };
    const auto [found_a, energy_a] = profile(a, *short_arrangement);
    const auto [found_b, energy_b] = profile(b, *ring.arrangement);
    for (std::size_t i = 0; i < found_a.size(); ++i) {
        INFO(i);
        CHECK(alike(found_a[i], found_b[i]));
    }
    CHECK(energy_a.mean() ==
          Approx(energy_b.mean()).margin(5 * energy_a.sigma() * std::sqrt(2 / energy_a.n)));
}

TEST_CASE("any arrangement: photons are absorbed by what is on their way", "[petsim][photons]") {
    const auto scanner = test::odd_scanner();
    const config::Arrangement& arrangement = *scanner.arrangement;
    const geometry::HitFinder finder(scanner);
    const sim::Tracker tracker(scanner, test::ideal(1, 1, CrystalModel::depth));
    sim::Random random(31, sim::Purpose::check, 0);
    constexpr int rays = 150;
    constexpr int photons = 600;
    double expected = 0;
    double variance = 0;
    double found = 0;
    std::map<std::string, double> expected_in;
    std::map<std::string, double> found_in;
    for (int i = 0; i < rays; ++i) {
        const sim::Ray ray{{8 * random.symmetric(), 8 * random.symmetric(), 10 * random.symmetric()},
                           sim::isotropic(random)};
        // In small steps through all materials.
        constexpr double step = 0.02;
        double left = 1;
        sim::Ray there = ray;
        there.advance(step / 2);
        for (double way = 0; way < 80; way += step, there.advance(step)) {
            const auto crystal = finder.crystal_at(there.at);
            if (!crystal) continue;
            const config::CrystalLayer& layer = arrangement.layer_of(*crystal);
            const double absorbed =
                left * (1 - std::exp(-step / 10 * config::crystal_material(layer).attenuation_per_cm));
            expected_in[layer.material] += photons * absorbed;
            left -= absorbed;
        }
        expected += photons * (1 - left);
        variance += photons * left * (1 - left);
        for (int k = 0; k < photons; ++k) {
            std::vector<sim::Deposit> deposits;
            sim::Photon photon{ray, 511};
            tracker.follow(photon, {}, random, deposits);
            REQUIRE(deposits.size() <= 1);
            if (deposits.empty()) continue;
            ++found;
            ++found_in[arrangement.layer_of(deposits[0].crystal).material];
            sim::Ray to = ray;
            to.advance(deposits[0].path_mm);
            const auto crystal = finder.crystal_at(to.at);
            if (crystal) REQUIRE(*crystal == deposits[0].crystal);  // rounding may decide at an edge
        }
    }
    CHECK(found == Approx(expected).margin(4 * std::sqrt(variance) + 0.002 * expected));
    REQUIRE(found_in.size() == 3);
    for (const auto& [material, count] : expected_in) {
        INFO(material);
        CHECK(found_in[material] == Approx(count).margin(4.5 * std::sqrt(count) + 0.005 * count));
    }
}

TEST_CASE("any arrangement: an object lies in front of a module that closes the bore", "[petsim][photons]") {
    const auto scanner = test::odd_scanner();
    auto options = test::ideal(1, 1, CrystalModel::depth);
    options.object = test::water(5, 40);
    const sim::Tracker tracker(scanner, options);
    sim::Random random(32, sim::Purpose::check, 0);
    constexpr int n = 20'000;
    int straight = 0;
    for (int i = 0; i < n; ++i) {
        std::vector<sim::Deposit> deposits;
        sim::Photon photon{{{0.5, -1, 0}, {0, 0, 1}}, 511};
        tracker.follow(photon, {}, random, deposits);
        if (!deposits.empty() && deposits[0].object_scatters == 0) {
            ++straight;
            REQUIRE(deposits[0].path_mm >= 25);
        }
    }
    const double share = std::exp(-0.0096 * 20) * (1 - std::exp(-0.06 * 10));
    CHECK(straight == Approx(n * share).margin(4 * std::sqrt(n * share * (1 - share))));
}

TEST_CASE("any arrangement: Lu-176 decays in crystals with lutetium, by their volume", "[petsim][photons]") {
    const auto scanner = test::odd_scanner();
    const config::Arrangement& arrangement = *scanner.arrangement;
    auto options = test::ideal(0, 0.1);
    options.activity.clear();
    options.physics.intrinsic_hz = 2000;
    const bool cascade = GENERATE(false, true);
    options.crystals.cascade = cascade;
    if (cascade) options.crystals.model = CrystalModel::depth;
    const auto run = record(scanner, options);
    double volume = 0;
    double crystals = 0;
    std::vector<double> volumes;
    for (std::uint32_t c = 0; c < arrangement.crystal_count(); ++c) {
        const config::CrystalAddress at = arrangement.address(c);
        const config::CrystalLayer& layer = arrangement.layer_of(c);
        const bool lutetium = layer.material != "GSO";
        volumes.push_back(lutetium ? layer.y.sizes[at.column] * layer.z.sizes[at.row] * layer.length_mm : 0);
        volume += volumes.back();
        crystals += lutetium ? 1 : 0;
    }
    const double expected = options.physics.intrinsic_hz * options.duration_s * crystals;
    const auto decays = static_cast<double>(run.statistics.events.intrinsic);
    CHECK(decays == Approx(expected).margin(5 * std::sqrt(expected)));
    if (cascade) return;              // its gammas reach other crystals
    std::map<double, double> counts;  // by volume
    std::map<double, double> share;
    for (const sim::TruthRecord& t : run.truth)
        ++counts[volumes.at(t.crystal)];
    for (const double v : volumes)
        share[v] += v / volume;
    REQUIRE(counts.count(0) == 0);
    for (const auto& [v, part] : share)
        CHECK(counts[v] == Approx(decays * part).margin(5 * std::sqrt(decays * part) + 1));
}

TEST_CASE("any arrangement: a module type has its own time and energy resolution", "[petsim]") {
    const auto scanner = test::odd_scanner();
    auto options = test::ideal(4, 0.05);
    options.activity[0].at = {0.5, -1, 0};
    options.physics.time_resolution_ps = 300;
    options.physics.energy_resolution = 0.2;
    auto calibration = calibration_for(scanner);
    const auto run = test::record(scanner, calibration, options);
    std::map<std::string, test::Moments> energy;
    std::map<std::set<std::string>, test::Moments> difference;
    for (const sim::TruthRecord& t : run.truth)
        energy[type_of(scanner, t.crystal).name].add(t.energy);
    for (const auto& [annihilation, hits] : test::by_annihilation(run)) {
        if (hits.size() != 2) continue;
        std::set<std::string> types;
        double ticks = 0;
        for (const sim::TruthRecord& t : hits) {
            types.insert(type_of(scanner, t.crystal).name);
            const auto place = config::crystal_place(scanner, t.crystal).front_centre_mm;
            const double way = std::hypot(place[0] - 0.5, place[1] + 1, place[2]);
            ticks += (&t == &hits[0] ? 1 : -1) * (static_cast<double>(t.time) - way / 0.299792458 / 10);
        }
        difference[types].add(ticks * 10);
    }
    constexpr double sigmas = 2.35482;
    CHECK(energy["phoswich"].sigma() == Approx(0.1 * 511 / sigmas).epsilon(0.03));
    CHECK(energy["cap"].sigma() == Approx(0.2 * 511 / sigmas).epsilon(0.05));
    REQUIRE(difference[{"phoswich"}].n > 2000);
    CHECK(difference[{"phoswich"}].sigma() == Approx(800 * std::sqrt(2) / sigmas).epsilon(0.05));
    // A true detector has the energy resolution, too.
    sim::DetectorModel model;
    model.resolution = 0.2;
    const auto detector = sim::make_detector(scanner, model);
    for (std::uint32_t c = 0; c < scanner.geometry.crystal_count(); ++c) {
        const float stated = type_of(scanner, c).name == "phoswich" ? 0.1F : 0.2F;
        REQUIRE(detector.crystals[c].energy_resolution == Approx(stated));
    }
}

TEST_CASE("any arrangement: without a list each BDM that exists is a source", "[petsim]") {
    nlohmann::json document = test::description_with_gaps();
    document.erase("sources");
    const auto scanner = config::scanner_from_json(document);
    auto options = test::point_options(3, 0.05);
    options.wire.sources = 0;
    const auto sources = sim::wire_sources(options, scanner);
    REQUIRE(sources.size() == 12);
    for (std::uint32_t i = 0; i < 12; ++i) {
        CHECK(sources[i].id == 3 + 2 * i);
        CHECK(sources[i].bdms == std::vector<std::uint32_t>{3 + 2 * i});
    }
    options.wire.sources = 5;
    std::vector<std::uint32_t> all;
    for (const config::Source& source : sim::wire_sources(options, scanner)) {
        CHECK_FALSE(source.bdms.empty());
        all.insert(all.end(), source.bdms.begin(), source.bdms.end());
    }
    CHECK(all == std::vector<std::uint32_t>{3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25});
    options.wire.sources = 13;
    CHECK_THROWS_AS(sim::check(options, scanner), std::invalid_argument);
    options.wire.sources = 0;
    options.faults.gain_steps = {{4, 1, 10}};
    CHECK_THROWS_AS(sim::check(options, scanner), std::invalid_argument);
}

TEST_CASE("any arrangement: frames carry the addresses of the channel map", "[petsim]") {
    const auto scanner = test::odd_scanner();
    const config::Geometry& g = scanner.geometry;
    REQUIRE(g.bdm_count == 8);
    REQUIRE(g.du_count == 4);
    auto options = test::point_options(3, 0.05);
    options.physics.dark_hz = 5000;
    options.physics.intrinsic_hz = 100;
    options.crystals.model = CrystalModel::depth;
    SECTION("the inverse of the calibration") {
        const auto run = record(scanner, options);
        const auto frames = test::frames_of(run);
        std::vector<double> darks(g.unit_count());
        for (std::size_t i = 0; i < frames.size(); ++i) {
            const sim::TruthRecord& t = run.truth[i];
            const std::uint32_t unit = frames[i].bdm * g.du_count + frames[i].du;
            REQUIRE(g.crystals_of_unit(unit) > 0);
            REQUIRE(t.crystal == t.true_crystal);
            bool of_unit = false;
            for (std::uint32_t local = 0; local < g.crystals_of_unit(unit); ++local)
                of_unit = of_unit || g.crystal(frames[i].bdm, frames[i].du, local) == t.crystal;
            REQUIRE(of_unit);
            if ((t.flags & sim::truth_dark) != 0) ++darks[unit];
        }
        CHECK(run.statistics.total().expected.outside_crystal == 0);
        for (std::uint32_t unit = 0; unit < g.unit_count(); ++unit) {
            const double expected = g.crystals_of_unit(unit) > 0 ? 5000 * 0.05 : 0;
            CHECK(darks[unit] == Approx(expected).margin(5 * std::sqrt(expected)));
        }
    }
    SECTION("a true detector whose light goes to a neighbour") {
        sim::DetectorModel model;
        model.spot_sigma = 0;
        model.spot_jitter = 0;
        model.crosstalk = GENERATE(0.0, 1.0);
        const auto detector = sim::make_detector(scanner, model);
        const auto run = test::record(scanner, sim::calibration_of(scanner, detector), options, &detector);
        int moved = 0;
        for (const sim::TruthRecord& t : run.truth) {
            REQUIRE(t.crystal != sim::no_crystal);
            if (t.crystal == t.true_crystal) continue;
            ++moved;
            const auto a = scanner.arrangement->address(t.crystal);
            const auto b = scanner.arrangement->address(t.true_crystal);
            REQUIRE(a.module == b.module);
            REQUIRE(a.layer == b.layer);
            const auto apart = [](std::uint32_t x, std::uint32_t y) { return x > y ? x - y : y - x; };
            REQUIRE(apart(a.column, b.column) + apart(a.row, b.row) == 1);
        }
        CHECK((moved > 0) == (model.crosstalk > 0));
    }
}

TEST_CASE("any arrangement: crystals without a neighbour keep their light", "[petsim]") {
    auto description = test::odd_description();
    description["module_types"][0]["layers"][1]["y"] = {{"count", 1}, {"pitch_mm", 6}};
    description["module_types"][0]["layers"][1]["z"] = {{"count", 1}, {"pitch_mm", 9}};
    const auto scanner = config::scanner_from_json(description);
    sim::DetectorModel model;
    model.crosstalk = 1;
    const auto detector = sim::make_detector(scanner, model);
    auto options = test::point_options(2, 0.02);
    options.crystals.model = CrystalModel::depth;
    const auto run = test::record(scanner, sim::calibration_of(scanner, detector), options, &detector);
    const auto single = std::count_if(run.truth.begin(), run.truth.end(), [&](const sim::TruthRecord& t) {
        return scanner.arrangement->layer_of(t.true_crystal).crystal_count() == 1;
    });
    CHECK(single > 0);
}

TEST_CASE("any arrangement: what the scanner cannot have is refused", "[petsim]") {
    const auto scanner = test::odd_scanner();
    auto options = test::point_options();
    CHECK(refusal(scanner, options).empty());
    SECTION("a silent unit that does not exist") {
        options.faults.silent_units = {{7, 1, 0, 1}};
        CHECK(refusal(scanner, options).empty());
        options.faults.silent_units = {{7, 2, 0, 1}};
        CHECK_THAT(refusal(scanner, options),
                   test::contains("--silent-unit is 7.2; expected a DU that the scanner has"));
    }
    SECTION("Lu-176 without lutetium") {
        options.physics.intrinsic_hz = 1;
        CHECK(refusal(scanner, options).empty());
        const auto heads = config::load_scanner(test::example("scanners/two-heads.scanner.json"));
        CHECK_THAT(refusal(heads, options), test::contains("no crystal of the scanner contains lutetium"));
    }
    SECTION("a source or an object in the crystals") {
        options.activity[0].at = {0, 0, 30};
        CHECK_THAT(refusal(scanner, options),
                   test::contains("the distance of a source from the axis is 0.0 mm"));
        options.activity[0].at = {0, 0, 20};
        CHECK(refusal(scanner, options).empty());
        options.object = test::water(10, 60);
        CHECK_THAT(refusal(scanner, options), test::contains("the distance of --object from the axis"));
    }
}
