// Sources of single photons, as Cs-137, beside those of positrons.
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numbers>
#include <string>

#include "tests/support/catch.hpp"
#include "tests/tools/petsim/common.hpp"
#include "tools/geometry/hit_finder.hpp"
#include "tools/petsim/simulation/events/tracking.hpp"

using namespace petacq;

namespace {

constexpr double caesium = 661.7;  // keV

sim::Options caesium_options() {
    sim::Options o = test::point_options(5, 0.05);
    o.activity[0].at = {8, 3, 2};
    o.activity[0].photon_kev = caesium;
    return o;
}

/// The share of photons from a point that enter a crystal.
double share_entering(const config::Scanner& scanner, const sim::Vector3& from) {
    constexpr int n = 200'000;
    const geometry::HitFinder finder(scanner);
    sim::Random random(99, sim::Purpose::check, 0);
    int entering = 0;
    for (int i = 0; i < n; ++i) {
        const double cosine = random.symmetric();
        const double sine = std::sqrt(1 - cosine * cosine);
        const double phi = std::numbers::pi * random.symmetric();
        entering += finder.find(from, {sine * std::cos(phi), sine * std::sin(phi), cosine}) ? 1 : 0;
    }
    return static_cast<double>(entering) / n;
}

}  // namespace

TEST_CASE("a source of single photons gives one hit of its energy for each that is detected", "[petsim]") {
    const sim::Options options = caesium_options();
    const auto run = test::record(options);
    const auto& events = run.statistics.events;
    const double share = share_entering(test::small_scanner(), options.activity[0].at);
    const double expected = 5e6 * 0.05 * share * options.physics.efficiency;
    CHECK(static_cast<double>(run.truth.size()) ==
          Approx(expected).margin(5 * std::sqrt(expected)).epsilon(0.01));
    CHECK(run.statistics.decays == Approx(5e6 * 0.05));
    CHECK(events.photons_detected == run.truth.size());
    CHECK(events.pairs_detected == 0);
    CHECK(events.scattered == 0);
    std::map<std::uint64_t, int> hits;
    test::Moments energy;
    for (const auto& t : run.truth) {
        CHECK(t.flags == sim::truth_photon);
        REQUIRE(++hits[t.annihilation] == 1);
        energy.add(static_cast<double>(t.energy));
    }
    const double sigma = 0.12 * std::sqrt(511 * caesium) / 2.35482;
    CHECK(energy.mean() == Approx(caesium).margin(5 * sigma / std::sqrt(energy.n) + 0.2));
    CHECK(energy.sigma() == Approx(sigma).epsilon(0.02));
}

TEST_CASE("a source of single photons changes nothing about one of positrons beside it", "[petsim]") {
    sim::Options both = caesium_options();
    both.physics.scatter = 0;
    both.physics.energy_resolution = 0;
    both.activity.push_back(test::point_options(3, 0.05).activity[0]);
    sim::Options alone = both;
    alone.activity.erase(alone.activity.begin());
    const auto together = test::record(both).statistics.events;
    const auto pairs = static_cast<double>(test::record(alone).statistics.events.pairs_detected);
    CHECK(static_cast<double>(together.pairs_detected) == Approx(pairs).margin(5 * std::sqrt(2 * pairs)));
}

TEST_CASE("single photons scatter in an object and lose energy", "[petsim]") {
    sim::Options options = caesium_options();
    options.physics.energy_resolution = 0;
    options.object = sim::ScatteringObject{{{0, 0, 0}, 20, 60}, sim::water_per_cm};
    const auto run = test::record(options);
    std::size_t scattered = 0;
    for (const auto& t : run.truth) {
        const bool full = std::abs(static_cast<double>(t.energy) - caesium) < 1;
        const bool marked = (t.flags & sim::truth_scattered) != 0;
        if (!marked) REQUIRE(full);
        REQUIRE(static_cast<double>(t.energy) < caesium + 1);
        scattered += marked ? 1 : 0;
    }
    CHECK(scattered > run.truth.size() / 20);
    CHECK(scattered < run.truth.size() / 2);
}

TEST_CASE("the energy of single photons is an option that is checked", "[petsim]") {
    const auto read = [](const std::string& energy) {
        return sim::sources_from_json(nlohmann::json::parse(
            R"({"sources": [{"type": "point", "position_mm": [0, 0, 0], "activity_MBq": 1, "photon_keV": )" +
            energy + "}]}"));
    };
    const auto source = read("661.7").sources.at(0);
    CHECK(source.photon_kev == caesium);
    sim::Options options;
    options.activity = {source};
    CHECK(sim::to_json(options).dump().find("\"photon_keV\":661.7") != std::string::npos);
    CHECK_NOTHROW(sim::check(options, test::small_scanner()));
    for (const double wrong : {-661.7, 19.0, 3001.0, std::nan("")}) {
        options.activity[0].photon_kev = wrong;
        CHECK_THROWS_AS(sim::check(options, test::small_scanner()), std::invalid_argument);
    }
    CHECK_THROWS_AS(read("\"high\""), std::invalid_argument);
}
