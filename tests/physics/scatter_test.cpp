// The estimate of scatter against the truth of the simulator, in total and by the distance of the lines from
// the object.
#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
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
#include "tools/geometry/bore.hpp"
#include "tools/petlm/reconstruction/em/scatter.hpp"
#include "tools/petsim/simulation/simulation.hpp"

using namespace petacq;
using test::TemporaryDirectory;

namespace {

constexpr double depth_mm = 4.3;  // of interaction, in crystals of a ring that absorb by path

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

config::Scanner scanner_of(const Scan& scan) {
    return scan.scanner == "twelve modules"
               ? config::scanner_from_json(test::twelve_modules(10))
               : config::load_scanner(PETACQ_SOURCE_DIR "/config/examples/" + scan.scanner + ".scanner.json");
}

/// X,Y,Z,RADIUS,LENGTH.
std::string text(const sim::Cylinder& cylinder) {
    return std::to_string(cylinder.at[0]) + "," + std::to_string(cylinder.at[1]) + "," +
           std::to_string(cylinder.at[2]) + "," + std::to_string(cylinder.radius_mm) + "," +
           std::to_string(cylinder.length_mm);
}

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
/// By place of the middle of the line along the axis, even over the length of the scanner.
using ByHeight = std::array<double, 8>;

struct Result {
    ByDistance truth{};
    ByDistance estimate{};
    ByHeight truth_along{};
    ByHeight estimate_along{};
    double true_total = 0;
    double total = 0;
    double simulated = 0;   ///< before the scale by the tails
    bool scatters = false;  ///< the crystals, as the estimate found
    std::string sentence;
};

Result compare(const Scan& scan) {
    const config::Scanner scanner = scanner_of(scan);
    gpu::CoincidenceRules rules;
    if (scanner.is_ring()) rules.min_module_difference = 2;
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
    options.attenuation = {text(water)};
    TemporaryDirectory directory;
    const bool deep = scan.crystals != sim::CrystalModel::surface;
    if (deep && scanner.is_ring()) {
        options.normalisation = directory / "normalisation.h5";
        normalisation::save(*options.normalisation, scanner.geometry, normalisation_of(scanner));
    }
    const auto depth = scanner.is_ring() ? config::DepthOfInteraction::fixed(deep ? depth_mm : 0)
                                         : config::DepthOfInteraction::of(scanner, std::nullopt);
    const corrections::LineFactors lines(scanner, depth, options);
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
    const double half_length = geometry::bore_of(scanner).half_length_mm;
    const auto height_of = [&](std::uint32_t a, std::uint32_t b) {
        const auto [p, q] = lines.ends(a, b);
        const double place = ((p[2] + q[2]) / 2 + half_length) / (2 * half_length);
        return std::min(static_cast<std::size_t>(std::max(place, 0.0) * ByHeight{}.size()),
                        ByHeight{}.size() - 1);
    };
    for (std::size_t i = 0; i < truth.all.size(); ++i) {
        if (!truth.scattered[i]) continue;
        const auto [a, b] = std::minmax({truth.all[i].crystal_a, truth.all[i].crystal_b});
        ++out.true_total;
        ++out.truth[bin_of(a, b)];
        ++out.truth_along[height_of(a, b)];
    }
    // An even sample of the pairs.
    const std::uint64_t crystals = scanner.geometry.crystal_count();
    constexpr std::uint64_t samples = 4'000'000;
    const double stands_for = static_cast<double>(crystals * crystals) / samples / 2;
    for (std::uint64_t i = 0; i < samples; ++i) {
        const auto a = static_cast<std::uint32_t>((i * 0xC13FA9A902A6328FU >> 32U) * crystals >> 32U);
        const auto b = static_cast<std::uint32_t>((i * 0x91E10DA5C79E7B1DU >> 32U) * crystals >> 32U);
        if (a == b || !rule.good(a, b)) continue;
        const double counts = stands_for * scatter.counts(a, b);
        out.estimate[bin_of(a, b)] += counts;
        out.estimate_along[height_of(a, b)] += counts;
    }
    return out;
}

/// As much in each voxel as of the object is in it.
corrections::Activity activity_of(const corrections::AttenuatingObject& object) {
    constexpr int parts = 4;  // of a voxel along each axis
    corrections::Activity out{{{14, 14, 18}, 2}, {}};
    const image::Grid& grid = out.grid;
    for (std::size_t voxel = 0; voxel < grid.voxels(); ++voxel) {
        const std::array<std::size_t, 3> cell = {voxel % grid.n[0], voxel / grid.n[0] % grid.n[1],
                                                 voxel / grid.n[0] / grid.n[1]};
        int inside = 0;
        for (int part = 0; part < parts * parts * parts; ++part) {
            const std::array<int, 3> in = {part % parts, part / parts % parts, part / parts / parts};
            config::Vector3 at{};
            for (std::size_t axis = 0; axis < 3; ++axis)
                at[axis] = grid.centre(axis, cell[axis]) + grid.voxel_mm * ((in[axis] + 0.5) / parts - 0.5);
            inside += object.per_cm(at) > 0 ? 1 : 0;
        }
        out.of_voxel.push_back(static_cast<float>(inside));
    }
    return out;
}

Result check(const Scan& scan) {
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
    return result;
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

/// A scanner of the long form, also along the axis, where the estimate may be off by `along` of the truth.
void check_arrangement(Scan scan, double along = 0.07) {
    for (const auto crystals : {sim::CrystalModel::depth, sim::CrystalModel::scatter}) {
        scan.crystals = crystals;
        const Result result = check(scan);
        CAPTURE(scan.name, config::name_of(crystals));
        for (std::size_t i = 0; i < result.truth_along.size(); ++i) {
            if (result.truth_along[i] < 0.01 * result.true_total) continue;
            CAPTURE(i, result.truth_along[i], result.estimate_along[i]);
            const double allowed = along * result.truth_along[i] + 2 * std::sqrt(result.truth_along[i]);
            CHECK(std::abs(result.estimate_along[i] - result.truth_along[i]) <= allowed);
        }
    }
}

const std::vector<Rod> hot_rods = {
    {{{5, -3, 0}, 12, 36}, 2}, {{{10, -3, 0}, 3, 36}, 0.4}, {{{2, -8, 0}, 3, 36}, 0.4}};

}  // namespace

TEST_CASE("scatter: rods off the axis of a small scanner are as in the truth", "[physics]") {
    check({"small", "small", hot_rods, {{5, -3, 0}, 12, 40}, 350, 650, sim::CrystalModel::scatter});
}

TEST_CASE("scatter: in a scanner of two layers the simulation has as much as the truth", "[physics]") {
    const sim::Cylinder water = {{2, -1, 0}, 11, 34};
    const Scan scan = {"phoswich", "scanners/phoswich", {{water, 1}}, water, 350, 650};
    const config::Scanner scanner = scanner_of(scan);
    const gpu::PairRule rule = gpu::PairRule::of(scanner.geometry, {});
    const Pairs truth = simulate(scanner, rule, scan);
    const auto scattered =
        static_cast<double>(std::count(truth.scattered.begin(), truth.scattered.end(), true));
    REQUIRE(scattered > 1500);

    const auto object = corrections::AttenuatingObject::of({text(water)});
    corrections::Detection detection;
    detection.window = {scan.lower_keV, scan.upper_keV, 0.12, {}};
    detection.crystals = {true, false};
    detection.found = [&](std::uint32_t a, std::uint32_t b) { return rule.good(a, b) ? 1 : 0; };
    net::WorkerPool pool(2);
    const corrections::Activity activity = activity_of(object);
    const corrections::ScatterSimulation simulation(scanner, object, activity, detection, 300'000, pool);
    const double share = scattered / (static_cast<double>(truth.all.size()) - scattered);
    CAPTURE(scattered, share);
    CHECK(simulation.scattered() / simulation.trues() ==
          Approx(share).epsilon(0.03 + 2 / std::sqrt(scattered)));

    // Between the layers and between both rings of modules it is shared as in the truth.
    const auto part_of = [&](std::uint32_t crystal) {
        const config::CrystalAddress at = scanner.arrangement->address(crystal);
        return 2 * at.layer + (scanner.arrangement->place(crystal).front_centre_mm[2] > 0 ? 1 : 0);
    };
    std::array<std::array<double, 4>, 4> found{};
    std::array<std::array<double, 4>, 4> expected{};
    for (std::size_t i = 0; i < truth.all.size(); ++i) {
        const auto [a, b] = std::minmax({part_of(truth.all[i].crystal_a), part_of(truth.all[i].crystal_b)});
        if (truth.scattered[i]) ++found[a][b];
    }
    double all = 0;
    for (std::uint32_t a = 0; a < scanner.geometry.crystal_count(); a += 3) {
        for (std::uint32_t b = a % 4; b < a; b += 4) {
            if (!rule.good(a, b)) continue;
            const auto [first, second] = std::minmax({part_of(a), part_of(b)});
            expected[first][second] += 12 * simulation.counts(a, b);
            all += 12 * simulation.counts(a, b);
        }
    }
    CHECK(all == Approx(simulation.scattered()).epsilon(0.02));
    for (std::size_t a = 0; a < found.size(); ++a) {
        for (std::size_t b = a; b < found.size(); ++b) {
            CAPTURE(a, b, found[a][b]);
            CHECK(expected[a][b] * scattered / all ==
                  Approx(found[a][b]).epsilon(0.05 + 3 / std::sqrt(found[a][b])));
        }
    }
}

TEST_CASE("scatter: in a scanner of two layers its amount and shape are those of the truth", "[.long]") {
    check_arrangement(
        {"phoswich", "scanners/phoswich", {{{{2, -1, 0}, 11, 34}, 6}}, {{2, -1, 0}, 12, 40}, 350, 650});
}

TEST_CASE("scatter: in a box its amount and shape are those of the truth", "[.long]") {
    check_arrangement({"box", "scanners/box", {{{{2, -1, 0}, 11, 44}, 2}}, {{2, -1, 0}, 12, 50}, 350, 650});
}

TEST_CASE("scatter: in an insert and its ring its amount and shape are those of the truth", "[.long]") {
    // docs/explanation/image.md (Scatter) states how much is found too high towards its ends.
    check_arrangement(
        {"insert", "scanners/insert", {{{{2, -1, 0}, 12, 60}, 2}}, {{2, -1, 0}, 13, 70}, 350, 650}, 0.1);
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
