// Nuclides that emit gammas with their positrons, and how long the positrons live.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/tools/petsim/simulation/followed.hpp"
#include "tools/geometry/hit_finder.hpp"
#include "tools/petsim/compare.hpp"
#include "tools/petsim/physics/attenuation.hpp"

using namespace petacq;

namespace {

sim::Options options_of(const char* nuclide, double mbq, double duration_s,
                        sim::CrystalModel model = sim::CrystalModel::surface) {
    sim::Options o = test::ideal(mbq, duration_s, model);
    o.activity[0].nuclide = config::find_nuclide(nuclide);
    return o;
}

/// The share of photons from the centre that enter a crystal.
double share_entering() {
    static const double share = [] {
        constexpr int n = 200'000;
        const geometry::HitFinder finder(test::small_scanner());
        sim::Random random(99, sim::Purpose::check, 0);
        int entering = 0;
        for (int i = 0; i < n; ++i)
            entering += finder.find({0, 0, 0}, sim::isotropic(random)) ? 1 : 0;
        return static_cast<double>(entering) / n;
    }();
    return share;
}

std::uint8_t photon_of(const sim::TruthRecord& t) {
    return t.photon & 0x3U;
}

bool is_gamma(const sim::TruthRecord& t, double energy) {
    return photon_of(t) == sim::truth_gamma && std::abs(static_cast<double>(t.energy) - energy) < 2;
}

struct Decay {
    bool first = false;
    bool second = false;
    int gammas = 0;
};

/// Counted one record after the other; the gammas of that energy.
std::map<std::uint64_t, Decay> decays_of(const test::Recorded& run, double gamma_energy) {
    std::map<std::uint64_t, Decay> out;
    for (const auto& t : run.truth) {
        REQUIRE(photon_of(t) != 0);
        Decay& decay = out[t.annihilation];
        decay.first |= photon_of(t) == sim::truth_first_photon;
        decay.second |= photon_of(t) == sim::truth_second_photon;
        decay.gammas += is_gamma(t, gamma_energy) ? 1 : 0;
    }
    return out;
}

void check_share(double found, double of, double expected) {
    CHECK(found / of == Approx(expected).margin(4.5 * std::sqrt(expected * (1 - expected) / of) + 0.002));
}

}  // namespace

TEST_CASE("prompt gammas are as frequent as the table of nuclides says", "[petsim][gammas]") {
    struct Row {
        const char* nuclide;
        double energy;
    };
    const auto [nuclide, energy] = GENERATE(Row{"Sc-44", 1157.0}, Row{"Na-22", 1274.5}, Row{"I-124", 602.7},
                                            Row{"Mn-52", 744.2}, Row{"Y-86", 1076.6}, Row{"Ga-68", 1077.3});
    INFO(nuclide);
    const config::Nuclide& known = *config::find_nuclide(nuclide);
    const auto gamma = std::find_if(
        known.gammas.begin(), known.gammas.end(),
        [energy = energy](const config::Gamma& g) { return std::abs(g.energy_keV - energy) < 0.5; });
    REQUIRE(gamma != known.gammas.end());
    const double decays = 50'000;
    sim::Options options = options_of(nuclide, 5, 0.01);
    options.physics.efficiency = 0.8;
    const auto run = test::record(options);
    const double found = share_entering() * 0.8;
    double positrons = 0;  // of which the first photon is found
    double with_gamma = 0;
    double gammas = 0;
    for (const auto& [id, decay] : decays_of(run, energy)) {
        gammas += decay.gammas;
        positrons += decay.first ? 1 : 0;
        with_gamma += decay.first && decay.gammas > 0 ? 1 : 0;
    }
    check_share(gammas, decays, gamma->per_decay * found);
    check_share(positrons, decays, known.branching_ratio * found);
    check_share(with_gamma, positrons, known.chance(*gamma, true) * found);
    CHECK(run.statistics.decays == Approx(decays * known.branching_ratio).epsilon(1e-6));
    CHECK(run.statistics.events.photons_detected == run.truth.size());
    CHECK(run.statistics.events.gammas_detected ==
          static_cast<std::uint64_t>(std::count_if(run.truth.begin(), run.truth.end(), [](const auto& t) {
              return photon_of(t) == sim::truth_gamma;
          })));
}

TEST_CASE("a delayed gamma comes with no decay of its time", "[petsim][gammas]") {
    const auto run = test::record(options_of("Zr-89", 5, 0.01));
    double gammas = 0;
    for (const auto& [id, decay] : decays_of(run, 909.2)) {
        if (decay.gammas == 0) continue;
        ++gammas;
        CHECK_FALSE((decay.first || decay.second));
    }
    check_share(gammas, 50'000, 0.9904 * share_entering());
    CHECK(run.statistics.decays == Approx(50'000 * 0.2274).epsilon(1e-6));
}

TEST_CASE("a nuclide without gammas gives pairs alone, by its branching ratio", "[petsim][gammas]") {
    sim::Options options = options_of("F-18", 5, 0.01);
    const auto events = test::record(options).statistics.events;
    CHECK(events.gammas_detected == 0);
    options.activity[0].nuclide = nullptr;
    options.activity[0].activity_mbq *= 0.9686;
    CHECK(test::record(options).statistics.events.pairs_detected ==
          Approx(static_cast<double>(events.pairs_detected)).epsilon(0.03));
}

TEST_CASE("pairs are later than their gamma by the lifetimes of positrons", "[petsim][gammas]") {
    sim::Options options = options_of("Sc-44", 5, 0.02);
    options.activity[0].positronium = {{0.3, 20}, {0.5, 2}};
    const auto run = test::record(options);
    std::map<std::uint64_t, std::uint64_t> gamma_at;
    for (const auto& t : run.truth)
        if (is_gamma(t, 1157)) gamma_at[t.annihilation] = t.time;
    std::vector<double> later;  // ns
    for (const auto& t : run.truth) {
        const auto gamma = gamma_at.find(t.annihilation);
        if (gamma == gamma_at.end() || photon_of(t) != sim::truth_first_photon) continue;
        later.push_back(static_cast<double>(static_cast<std::int64_t>(t.time - gamma->second)) * 0.015625);
    }
    std::sort(later.begin(), later.end());
    const auto n = static_cast<double>(later.size());
    REQUIRE(n > 3000);
    // From the centre all photons fly equally far, but for some mm.
    CHECK(later.front() > -0.05);
    double furthest = 0;
    for (std::size_t i = 0; i < later.size(); ++i) {
        if (later[i] < 0.1) continue;
        const double below = 0.2 + 0.3 * (1 - std::exp(-later[i] / 20)) + 0.5 * (1 - std::exp(-later[i] / 2));
        furthest = std::max(furthest, std::abs((static_cast<double>(i) + 0.5) / n - below));
    }
    // Kolmogorov and Smirnov: beyond this in 1 of 1000 samples.
    CHECK(furthest < 1.95 / std::sqrt(n) + 0.002);
}

TEST_CASE("gammas leave their energy or that of Compton scatters in the crystals", "[petsim][gammas]") {
    const auto run = test::record(options_of("Na-22", 5, 0.03, sim::CrystalModel::scatter));
    // The most that one scatter leaves, of a photon that turns back.
    const double k = 1274.5 / 511;
    const double edge = 1274.5 * 2 * k / (1 + 2 * k);
    double below = 0;
    double above = 0;
    double full = 0;
    for (const auto& t : run.truth) {
        if (photon_of(t) != sim::truth_gamma || (t.photon & sim::truth_later) != 0) continue;
        const auto energy = static_cast<double>(t.energy);
        // Annihilation photons may leave energy in the same block.
        REQUIRE(energy < 1274.5 + 2 * 511 + 2);
        below += energy > edge - 100 && energy < edge - 5 ? 1 : 0;
        above += energy > edge + 5 && energy < edge + 100 ? 1 : 0;
        full += std::abs(energy - 1274.5) < 2 ? 1 : 0;
    }
    CHECK(below > 100);
    CHECK(full > 100);
    CHECK(above < below / 3);
}

TEST_CASE("the attenuation of water up to 2 MeV", "[petsim][gammas]") {
    // J. H. Hubbell and S. M. Seltzer, NISTIR 5632 (1995): cm^2/g, of 1 g/cm^3.
    const std::map<double, double> water{{600, 0.08956},  {800, 0.07865},  {1000, 0.07072},
                                         {1250, 0.06323}, {1500, 0.05754}, {2000, 0.04942}};
    const sim::Attenuation attenuation(sim::water_per_cm, 0);
    for (const auto& [energy, per_cm] : water) {
        INFO(energy);
        CHECK(attenuation.per_mm(energy) * 10 == Approx(per_cm).epsilon(0.015));
    }
}

TEST_CASE("gammas scatter in an object at their own energy", "[petsim][gammas]") {
    sim::Options options = options_of("Sc-44", 5, 0.02);
    options.object = test::water(25, 400);
    const auto run = test::record(options);
    double plain = 0;
    for (const auto& t : run.truth)
        plain += is_gamma(t, 1157) && t.object_scatters == 0 ? 1 : 0;
    // The way to the crystals through the water, for a thin slice of directions across the axis.
    const sim::Attenuation attenuation(sim::water_per_cm, 0);
    const geometry::HitFinder finder(test::small_scanner());
    sim::Random random(5, sim::Purpose::check, 0);
    double passing = 0;
    constexpr int n = 200'000;
    for (int i = 0; i < n; ++i) {
        const sim::Vector3 d = sim::isotropic(random);
        if (!finder.find({0, 0, 0}, d)) continue;
        passing += std::exp(-attenuation.per_mm(1157) * 25 / std::hypot(d[0], d[1]));
    }
    check_share(plain, 100'000, passing / n * 0.999);
}

TEST_CASE("prompts with a gamma of their decay are spurious", "[petsim][gammas][compare]") {
    sim::Options options = options_of("I-124", 5, 0.02);
    options.activity.push_back(options.activity[0]);
    options.activity[1].nuclide = config::find_nuclide("F-18");
    options.activity[1].at = {8, 0, 0};
    const auto run = test::record(options);
    std::vector<sim::TruthRecord> singles = run.truth;
    std::sort(singles.begin(), singles.end(), [](const auto& a, const auto& b) {
        return std::tuple(a.time, a.crystal, a.energy) < std::tuple(b.time, b.crystal, b.energy);
    });
    std::vector<gpu::Coincidence> prompts;
    std::uint64_t spurious = 0;
    std::uint64_t trues = 0;
    for (std::size_t i = 1; i < singles.size(); ++i) {
        const auto& a = singles[i - 1];
        const auto& b = singles[i];
        if (b.time - a.time > 64) continue;
        gpu::Coincidence c;
        c.time = a.time;
        c.dt = static_cast<std::uint32_t>(b.time - a.time);
        c.crystal_a = a.crystal;
        c.crystal_b = b.crystal;
        c.energy_a = a.energy;
        c.energy_b = b.energy;
        prompts.push_back(c);
        if (a.annihilation != b.annihilation) continue;
        const bool gamma = a.energy > 520 || b.energy > 520;
        spurious += gamma ? 1 : 0;
        trues += gamma ? 0 : 1;
    }
    sim::PairingRules rules;
    rules.window_ticks = 64;
    rules.filter = false;
    const auto c = sim::compare(test::small_scanner().geometry, rules, run.truth, prompts);
    CHECK(c.spurious == spurious);
    CHECK(c.trues == trues);
    CHECK(c.randoms == prompts.size() - spurious - trues);
    CHECK(spurious > 200);
    CHECK(c.pairs_sent == run.statistics.events.pairs_detected);
}

TEST_CASE("the nuclide of a source and its lifetimes are options that are checked", "[petsim][gammas]") {
    const auto read = [](const std::string& keys) {
        return sim::sources_from_json(nlohmann::json::parse(
            R"({"sources": [{"type": "point", "position_mm": [0, 0, 0], "activity_MBq": 1, )" + keys +
            "}]}"));
    };
    const char* const all = R"("nuclide": "Sc-44", "positronium": [{"fraction": 0.25, "ns": 2}])";
    sim::Options options;
    options.activity = read(all).sources;
    CHECK(options.activity[0].half_life_s == config::find_nuclide("Sc-44")->half_life_s);
    CHECK_NOTHROW(sim::check(options, test::small_scanner()));
    const auto written = sim::to_json(options).dump();
    CHECK(written.find(R"("nuclide":"Sc-44")") != std::string::npos);
    CHECK(written.find(R"("positronium":[{"fraction":0.25,"ns":2.0}])") != std::string::npos);
    CHECK_THROWS_WITH(read(R"("nuclide": "Sc-45")"),
                      test::contains("/sources/0/nuclide: expected one of C-11") && test::contains("Sc-45"));
    CHECK_THROWS_AS(read(R"("nuclide": "F-18", "half_life_s": 5)"), std::invalid_argument);
    for (const char* wrong : {R"("positronium": [{"fraction": 0.25, "ns": 2}])",
                              R"("nuclide": "F-18", "positronium": [{"fraction": 1.1, "ns": 2}])",
                              R"("nuclide": "F-18", "positronium": [{"fraction": 0.5, "ns": -2}])",
                              R"("nuclide": "F-18", "photon_keV": 600)"}) {
        INFO(wrong);
        options.activity = read(wrong).sources;
        CHECK_THROWS_AS(sim::check(options, test::small_scanner()), std::invalid_argument);
    }
}

TEST_CASE("the examples of sources with nuclides simulate", "[petsim][gammas]") {
    for (const char* name : {"two-tracers", "na-22"}) {
        INFO(name);
        std::ifstream file(std::string(PETACQ_SOURCE_DIR) + "/config/examples/sources/" + name + ".json");
        REQUIRE(file);
        const auto description = sim::sources_from_json(nlohmann::json::parse(file));
        sim::Options options = test::ideal(1, 0.002);
        options.activity = description.sources;
        CHECK(test::record(options).statistics.events.gammas_detected > 5);
    }
}
