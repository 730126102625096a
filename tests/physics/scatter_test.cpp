// The estimate of scatter against the truth of the simulator, in total and by the distance of the lines from
// the object.
#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "config/make_calibration.hpp"
#include "config/scanner/crystal_material.hpp"
#include "gpu/rules/pair_rule.hpp"
#include "tests/physics/phantoms.hpp"
#include "tests/physics/scanners.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tools/petlm/reconstruction/em/scatter.hpp"
#include "tools/petsim/simulation/simulation.hpp"

using namespace petacq;
using test::TemporaryDirectory;

namespace {

constexpr double depth_mm = 4.3;  // of interaction, in crystals that absorb by path

struct Rod {
    sim::Cylinder shape;
    double mbq;
};

struct Scan {
    std::string name;
    std::string scanner;
    std::vector<Rod> activity;
    sim::Cylinder water;
    double lower_keV;  // NOLINT(readability-identifier-naming)
    double upper_keV;  // NOLINT(readability-identifier-naming)
    sim::CrystalModel crystals = sim::CrystalModel::depth;
    std::vector<sim::ActivitySource> sources = {};  ///< besides `activity`
};

/// Pairs that are all that was found of their annihilation, so without randoms.
struct Pairs {
    std::vector<gpu::Coincidence> all;
    std::vector<bool> scattered;  ///< [pair]
};

Pairs simulate(const config::Scanner& scanner, const gpu::PairRule& rule, const Scan& scan) {
    sim::Options options;
    options.seed = 11;
    options.start_s = 1;
    options.duration_s = 1;
    options.threads = 2;
    options.physics.efficiency = 1;
    options.crystals.model = scan.crystals;
    options.object = sim::ScatteringObject{scan.water};
    options.activity = scan.sources;
    for (const Rod& rod : scan.activity) {
        sim::ActivitySource source;
        source.shape = sim::Shape::cylinder;
        source.at = rod.shape.at;
        source.radius_mm = rod.shape.radius_mm;
        source.length_mm = rod.shape.length_mm;
        source.activity_mbq = rod.mbq;
        options.activity.push_back(source);
    }
    struct Hits {
        std::uint32_t count = 0;
        bool scattered = false;
        gpu::Coincidence pair;
    };
    std::unordered_map<std::uint64_t, Hits> by_annihilation;
    const auto calibration = config::make_calibration(scanner, {});
    sim::Simulation simulation(scanner, calibration, options);
    simulation.run([](const sim::Datagram&) {},
                   [&](std::span<const sim::TruthRecord> records) {
                       for (const sim::TruthRecord& r : records) {
                           const auto energy = static_cast<double>(r.energy);
                           if (r.crystal == sim::no_crystal || r.annihilation == 0 ||
                               energy < scan.lower_keV || energy > scan.upper_keV)
                               continue;
                           Hits& hits = by_annihilation[r.annihilation];
                           const bool first = hits.count++ == 0;
                           (first ? hits.pair.crystal_a : hits.pair.crystal_b) = r.crystal;
                           (first ? hits.pair.energy_a : hits.pair.energy_b) = r.energy;
                           hits.scattered = hits.scattered || (r.flags & sim::truth_scattered) != 0;
                       }
                   });
    Pairs out;
    for (const auto& [annihilation, hits] : by_annihilation) {
        if (hits.count != 2 || !rule.good(hits.pair.crystal_a, hits.pair.crystal_b)) continue;
        out.all.push_back(hits.pair);
        out.scattered.push_back(hits.scattered);
    }
    return out;
}

/// What petcal derive normalisation finds for crystals that are all alike, if they absorb by path: factors by
/// place alone.
normalisation::Normalisation normalisation_of(const config::Scanner& scanner) {
    const config::Geometry& g = scanner.geometry;
    const corrections::LineFactors lines(scanner, config::DepthOfInteraction::fixed(depth_mm));
    const auto absorbed = [&](double cosine) {
        return 1 - std::exp(-config::crystal_material(scanner.dimensions).attenuation_per_cm / 10 *
                            scanner.dimensions.crystal_length_mm / cosine);
    };
    const auto factor = [&](std::uint32_t a, std::uint32_t b) {
        const auto [from, to] = lines.ends(a, b);
        const auto outward_a = config::crystal_place(scanner, a).outward;
        const auto outward_b = config::crystal_place(scanner, b).outward;
        double square = 0;
        double at_a = 0;
        double at_b = 0;
        for (std::size_t axis = 0; axis < 3; ++axis) {
            const double along = from[axis] - to[axis];
            square += along * along;
            at_a += along * outward_a[axis];
            at_b -= along * outward_b[axis];
        }
        const double length = std::sqrt(square);
        if (std::min(at_a, at_b) < 0.05 * length) return 1.0;
        return absorbed(at_a / length) * absorbed(at_b / length) / std::pow(absorbed(1), 2) /
               lines.face_share(a, b) * std::pow(1 + depth_mm / scanner.dimensions.ring_radius_mm, 2);
    };
    auto out = normalisation::Normalisation::even(g);
    const std::uint32_t ring = g.crystals_in_ring();
    for (std::uint32_t a = 0; a < g.rings(); ++a) {
        for (std::uint32_t b = 0; b < g.rings(); ++b)
            out.axial[a * g.rings() + b] =
                static_cast<float>(factor(a * ring, b * ring + ring / 2) / factor(0, ring / 2));
    }
    for (std::uint32_t a = 0; a < ring; ++a) {
        for (std::uint32_t b = 0; b < ring; ++b)
            if (a != b)
                out.transaxial[normalisation::transaxial_class(g, a, b)] = static_cast<float>(factor(a, b));
    }
    return out;
}

/// By distance of the line from the axis of the object, in radii of it.
constexpr std::array<double, 6> limits = {0.5, 1, 1.25, 1.6, 2.2, 3};
using ByDistance = std::array<double, limits.size() + 1>;

struct Result {
    ByDistance truth{};
    ByDistance estimate{};
    double true_total = 0;
    double total = 0;
    double simulated = 0;   ///< before the scale by the tails
    bool scatters = false;  ///< the crystals, as the estimate found
    std::string sentence;
};

Result compare(const Scan& scan) {
    const config::Scanner scanner =
        scan.scanner == "twelve modules"
            ? config::scanner_from_json(test::twelve_modules(10))
            : config::load_scanner(PETACQ_SOURCE_DIR "/config/examples/" + scan.scanner + ".scanner.json");
    gpu::CoincidenceRules rules;
    rules.min_module_difference = 2;
    const gpu::PairRule rule = gpu::PairRule::of(scanner.geometry, rules);
    const Pairs truth = simulate(scanner, rule, scan);
    net::WorkerPool pool(2);
    image::PairCounts pairs(scanner.geometry.crystal_count(), 4'000'000, pool);
    pairs.add(truth.all);
    pairs.finish();
    corrections::PhotopeakWidth width;
    for (const gpu::Coincidence& c : truth.all) {
        width.add(c.energy_a);
        width.add(c.energy_b);
    }
    const sim::Cylinder& water = scan.water;
    corrections::LineOptions options;
    options.attenuation = {std::to_string(water.at[0]) + "," + std::to_string(water.at[1]) + "," +
                           std::to_string(water.at[2]) + "," + std::to_string(water.radius_mm) + "," +
                           std::to_string(water.length_mm)};
    TemporaryDirectory directory;
    const bool deep = scan.crystals != sim::CrystalModel::surface;
    if (deep) {
        options.normalisation = directory / "normalisation.h5";
        normalisation::save(*options.normalisation, scanner.geometry, normalisation_of(scanner));
    }
    const corrections::LineFactors lines(scanner, config::DepthOfInteraction::fixed(deep ? depth_mm : 0),
                                         options);
    const image::Scatter scatter({scanner,
                                  rule,
                                  lines,
                                  {},
                                  [&](std::uint32_t a, std::uint32_t b) { return lines.normalisation(a, b); },
                                  [](std::uint32_t, std::uint32_t) { return 0.0; },
                                  pairs,
                                  width.window(config::Energy{true, static_cast<float>(scan.lower_keV),
                                                              static_cast<float>(scan.upper_keV)})},
                                 pool);

    Result out;
    out.sentence = scatter.sentence();
    out.scatters = scatter.crystals().deep && scatter.crystals().scatters;
    out.total = scatter.total();
    out.simulated = scatter.total() / scatter.scale().factor;
    const auto bin_of = [&](std::uint32_t a, std::uint32_t b) {
        const auto [p, q] = lines.ends(a, b);
        const double dx = q[0] - p[0];
        const double dy = q[1] - p[1];
        const double distance = std::abs(dx * (water.at[1] - p[1]) - dy * (water.at[0] - p[0])) /
                                std::hypot(dx, dy) / water.radius_mm;
        return static_cast<std::size_t>(std::upper_bound(limits.begin(), limits.end(), distance) -
                                        limits.begin());
    };
    for (std::size_t i = 0; i < truth.all.size(); ++i) {
        if (!truth.scattered[i]) continue;
        ++out.true_total;
        ++out.truth[bin_of(truth.all[i].crystal_a, truth.all[i].crystal_b)];
    }
    // An even sample of the pairs.
    const std::uint64_t crystals = scanner.geometry.crystal_count();
    constexpr std::uint64_t samples = 4'000'000;
    const double stands_for = static_cast<double>(crystals * crystals) / samples / 2;
    for (std::uint64_t i = 0; i < samples; ++i) {
        const auto a = static_cast<std::uint32_t>((i * 0xC13FA9A902A6328FU >> 32U) * crystals >> 32U);
        const auto b = static_cast<std::uint32_t>((i * 0x91E10DA5C79E7B1DU >> 32U) * crystals >> 32U);
        if (a != b && rule.good(a, b)) out.estimate[bin_of(a, b)] += stands_for * scatter.counts(a, b);
    }
    return out;
}

void check(const Scan& scan) {
    const Result result = compare(scan);
    INFO(scan.name << ", crystals: " << config::name_of(scan.crystals) << ", " << scan.lower_keV << " to "
                   << scan.upper_keV << " keV: " << result.sentence);
    CAPTURE(result.true_total, result.total, result.simulated);
    REQUIRE(result.true_total > 3000);
    CHECK(result.scatters == (scan.crystals == sim::CrystalModel::scatter));
    const auto noise = [](double counts) { return 2 / std::sqrt(counts); };
    CHECK(result.total == Approx(result.true_total).epsilon(0.03 + noise(result.true_total)));
    CHECK(result.simulated == Approx(result.true_total).epsilon(0.03 + noise(result.true_total)));
    for (std::size_t i = 0; i < result.truth.size(); ++i) {
        if (result.truth[i] < 0.01 * result.true_total) continue;
        CAPTURE(i, result.truth[i], result.estimate[i]);
        // Far out, where little of the scatter is, a tenth of it is less than matters.
        const double allowed = std::max(0.1 * result.truth[i], 0.01 * result.true_total) +
                               noise(result.truth[i]) * result.truth[i];
        CHECK(std::abs(result.estimate[i] - result.truth[i]) <= allowed);
    }
}

/// One of the shared phantoms, with every second one in the wider window.
void check_phantom(const std::string& name) {
    const std::vector<test::WaterPhantom> all = test::water_phantoms(4);
    const auto phantom =
        std::find_if(all.begin(), all.end(), [&](const test::WaterPhantom& p) { return p.name == name; });
    REQUIRE(phantom != all.end());
    const bool wide = (phantom - all.begin()) % 2 == 1;
    check({name,
           "twelve modules",
           {},
           phantom->water,
           wide ? 250.0 : 350.0,
           wide ? 700.0 : 650.0,
           sim::CrystalModel::depth,
           phantom->activity});
}

/// In crystals that absorb a photon where it interacts, and in real ones.
void check_both(Scan scan) {
    for (const auto crystals : {sim::CrystalModel::depth, sim::CrystalModel::scatter}) {
        scan.crystals = crystals;
        check(scan);
    }
}

const std::vector<Rod> hot_rods = {
    {{{5, -3, 0}, 12, 36}, 2}, {{{10, -3, 0}, 3, 36}, 0.4}, {{{2, -8, 0}, 3, 36}, 0.4}};

}  // namespace

TEST_CASE("scatter: rods off the axis of a small scanner are as in the truth", "[physics]") {
    check({"small", "small", hot_rods, {{5, -3, 0}, 12, 40}, 350, 650, sim::CrystalModel::scatter});
}

TEST_CASE("scatter: in a mouse its amount and shape are those of the truth", "[.long]") {
    const sim::Cylinder water = {{0, 0, 0}, 12.5, 70};
    const std::vector<Rod> activity = {{{{0, 0, 0}, 12.5, 60}, 2}};
    check_both({"mouse", "mouse", activity, water, 350, 650});
    check({"mouse, photons absorbed at the front", "mouse", activity, water, 350, 650,
           sim::CrystalModel::surface});
    check_both({"mouse", "mouse", activity, water, 250, 700});
}

TEST_CASE("scatter: in a rat its amount and shape are those of the truth", "[.long]") {
    const sim::Cylinder water = {{0, 0, 0}, 25, 100};
    const std::vector<Rod> activity = {{{{0, 0, 0}, 25, 90}, 3}};
    check_both({"rat", "mouse", activity, water, 350, 650});
    check_both({"rat", "mouse", activity, water, 250, 700});
}

TEST_CASE("scatter: activity beyond the ends of the scanner is in it", "[.long]") {
    check_both({"cylinder longer than the scanner",
                "mouse",
                {{{{0, 0, 0}, 15, 200}, 4}},
                {{0, 0, 0}, 15, 200},
                350,
                650});
    check_both({"beyond one end", "mouse", {{{{0, 0, 40}, 12, 80}, 3}}, {{0, 0, 30}, 14, 120}, 250, 700});
}

TEST_CASE("scatter: that of rods off the axis is as in the truth", "[.long]") {
    check_both({"rods",
                "mouse",
                {{{{5, -3, 0}, 3, 40}, 1}, {{{15, 4, 0}, 3, 40}, 1}, {{{10, -3, 0}, 10, 40}, 1}},
                {{10, -3, 0}, 15, 50},
                350,
                650});
    check_both({"rods in a small scanner", "small", hot_rods, {{5, -3, 0}, 12, 40}, 250, 700});
    check({"rods in a small scanner, photons absorbed at some depth",
           "small",
           hot_rods,
           {{5, -3, 0}, 12, 40},
           350,
           650,
           sim::CrystalModel::depth});
}

TEST_CASE("scatter: in phantoms of many kinds its amount and shape are those of the truth", "[.long]") {
    check_phantom(GENERATE("middle", "off the axis", "longer than the scanner", "two rods", "cold rod",
                           "beyond one end", "hot rod at the edge"));
}

// Their tails hold few counts, or graze the crystals.
TEST_CASE("scatter: in phantoms whose tails say little its amount and shape are those of the truth",
          "[.long]") {
    check_phantom(GENERATE("small", "large", "two points"));
}
