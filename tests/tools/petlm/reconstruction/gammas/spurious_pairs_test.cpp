// Pairs with a prompt gamma against those of the simulator, decay by decay.
#include "tools/petlm/reconstruction/gammas/spurious_pairs.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numbers>
#include <numeric>
#include <vector>

#include "config/base/constants.hpp"
#include "config/make_calibration.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/turning_scanner.hpp"
#include "tests/tools/petsim/common.hpp"
#include "tools/petlm/reconstruction/gammas/crystal_resolution.hpp"
#include "tools/petlm/reconstruction/gammas/efficiency.hpp"
#include "tools/petsim/detector/make_detector.hpp"

using namespace petacq;
using config::Vector3;

namespace {

constexpr double efficiency = 0.7;
constexpr double resolution = 0.13;
constexpr corrections::EnergyWindow wide{350, 650, resolution};
constexpr double radius_mm = 4;  // of a cylinder as long as this, away from the centre
constexpr double length_mm = 8;
const Vector3 centre = {5, -3, 2};

corrections::Activity activity() {
    corrections::Activity out{{{40, 40, 40}, 1}, {}};
    for (std::size_t z = 0; z < 40; ++z) {
        for (std::size_t y = 0; y < 40; ++y) {
            for (std::size_t x = 0; x < 40; ++x) {
                const double across =
                    std::hypot(out.grid.centre(0, x) - centre[0], out.grid.centre(1, y) - centre[1]);
                const double along = std::abs(out.grid.centre(2, z) - centre[2]);
                out.of_voxel.push_back(across < radius_mm && along < length_mm / 2 ? 1 : 0);
            }
        }
    }
    return out;
}

sim::Options options_of(const char* nuclide, double decays) {
    sim::Options o = test::point_options(1, decays * 1e-6);
    sim::ActivitySource& source = o.activity[0];
    source.shape = sim::Shape::cylinder;
    source.at = centre;
    source.radius_mm = radius_mm;
    source.length_mm = length_mm;
    source.nuclide = config::find_nuclide(nuclide);
    o.crystals.model = sim::CrystalModel::scatter;
    o.physics.efficiency = efficiency;
    o.physics.energy_resolution = resolution;
    o.physics.scatter = 0;
    return o;
}

/// How far the line of a pair passes the axis, by quarters of the field of view.
class Bands {
  public:
    static constexpr std::size_t count = 4;
    static constexpr double furthest_mm = 24;

    explicit Bands(const config::Scanner& scanner) {
        for (std::uint32_t crystal = 0; crystal < scanner.geometry.crystal_count(); ++crystal)
            places_.push_back(config::crystal_place(scanner, crystal).front_centre_mm);
    }
    /// `count`: outside of the field of view, so that the pair is not good.
    [[nodiscard]] std::size_t of(std::uint32_t a, std::uint32_t b) const {
        const Vector3& p = places_[a];
        const Vector3& q = places_[b];
        const double length = std::hypot(q[0] - p[0], q[1] - p[1]);
        if (length < 1e-3) return count;
        const double distance = std::abs(p[0] * q[1] - p[1] * q[0]) / length;
        return std::min(count, static_cast<std::size_t>(distance / furthest_mm * count));
    }

  private:
    std::vector<Vector3> places_;
};

struct Counted {
    double singles = 0;  ///< in the window
    double pairs = 0;
    std::array<double, Bands::count> spurious{};
    [[nodiscard]] double all() const { return spurious[0] + spurious[1] + spurious[2] + spurious[3]; }
};

/// A decay with two hits in the window makes a pair, one with more a multiple. The position tables have no
/// gaps between crystals: these would lose more of the hits that are in several. The energy factors of the
/// crystals have this relative standard deviation.
Counted count(const config::Scanner& scanner, double factor_spread, const sim::Options& options,
              const Bands& bands, const corrections::EnergyWindow& window) {
    sim::DetectorModel crystals;
    crystals.gain_spread = factor_spread;
    const test::Recorded run =
        test::record(scanner, sim::calibration_of(scanner, sim::make_detector(scanner, crystals)), options);
    std::map<std::uint64_t, std::vector<sim::TruthRecord>> decays;
    for (const sim::TruthRecord& t : run.truth) {
        const auto energy = static_cast<double>(t.energy);
        if (energy >= window.lower && energy <= window.upper) decays[t.annihilation].push_back(t);
    }
    Counted out;
    for (const auto& [id, hits] : decays)
        out.singles += static_cast<double>(hits.size());
    for (const auto& [id, hits] : decays) {
        if (hits.size() != 2) continue;
        const std::size_t band = bands.of(hits[0].crystal, hits[1].crystal);
        if (band == Bands::count) continue;
        const int a = hits[0].photon & 3U;
        const int b = hits[1].photon & 3U;
        if (a + b == sim::truth_first_photon + sim::truth_second_photon && a != b) {
            ++out.pairs;
        } else {
            ++out.spurious[band];
        }
    }
    return out;
}

}  // namespace

TEST_CASE("spurious pairs are as many as in the truth, on the same lines", "[gammas]") {
    struct Row {
        const char* nuclide;
        double lower_keV;  // NOLINT(readability-identifier-naming): of the gammas, where there is a choice
        double upper_keV;  // NOLINT(readability-identifier-naming)
        double decays;
    };
    const Row row = GENERATE(Row{"I-124", 651, 800, 3e5}, Row{"Sc-44", 900, 1300, 2e5});
    const bool box = GENERATE(false, true);
    CAPTURE(row.nuclide, box);
    const config::Scanner scanner =
        box ? config::load_scanner(PETACQ_SOURCE_DIR "/config/examples/scanners/box.scanner.json")
            : test::small_scanner();
    const Bands bands(scanner);
    const corrections::EnergyWindow of_gammas{row.lower_keV, row.upper_keV, resolution};
    const Counted truth = count(scanner, 0, options_of(row.nuclide, row.decays), bands, wide);
    const corrections::AttenuatingObject nothing;
    const gammas::GammaModel model{
        scanner, nothing, *config::find_nuclide(row.nuclide), {true, true}, wide, of_gammas, {}, {}, {}};
    net::WorkerPool pool(2);
    const corrections::OfPair found = [&](std::uint32_t a, std::uint32_t b) {
        return bands.of(a, b) < Bands::count ? 1.0 : 0.0;
    };
    const double by_singles = gammas::efficiency_by_singles(
        model, activity(), (truth.pairs + truth.all()) / truth.singles, found, pool);
    CHECK(by_singles == Approx(efficiency).epsilon(0.05));
    gammas::SpuriousPairs spurious(model, activity(), by_singles, found, truth.pairs, pool);
    spurious.scale_to(truth.pairs);

    // The number: of true pairs, within 2 % and the error of counting.
    CAPTURE(truth.pairs, truth.all(), spurious.total());
    REQUIRE(truth.all() > 300);
    CHECK(std::abs(spurious.total() - truth.all()) <
          0.02 * truth.pairs + 2.5 * std::sqrt(truth.all() + spurious.total()));
    // Where: what the pairs of crystals have adds up to the number, and lies in the same bands.
    std::array<double, Bands::count> expected{};
    const std::uint32_t crystals = scanner.geometry.crystal_count();
    const std::uint32_t step = box ? 5 : 1;  // of many crystals some
    for (std::uint32_t a = 0; a < crystals; a += step) {
        for (std::uint32_t b = 0; b < a; ++b) {
            const std::size_t band = bands.of(a, b);
            if (band < Bands::count) expected[band] += step * spurious.counts(a, b);
        }
    }
    CHECK(std::accumulate(expected.begin(), expected.end(), 0.0) == Approx(spurious.total()).epsilon(0.04));
    for (std::size_t i = 0; i < Bands::count; ++i) {
        CAPTURE(i, expected[i], truth.spurious[i]);
        CHECK(std::abs(expected[i] - truth.spurious[i]) <
              0.02 * truth.pairs + 3.5 * std::sqrt(truth.spurious[i]));
    }
}

TEST_CASE("spurious pairs of a scanner that turns are as many as in the truth, on the same lines",
          "[gammas][rotation]") {
    // Wide heads see many gammas.
    nlohmann::json description = test::turning_scanner();
    description["position_size"] = 64;
    for (const char* axis : {"y", "z"})
        description["module_types"][0]["layers"][0][axis]["count"] = 16;
    for (nlohmann::json& head : description["modules"])
        head["panel"]["pitch_mm"] = 40;
    const config::Scanner scanner = config::scanner_from_json(description);
    const Bands bands(scanner);
    sim::Options options = options_of("Sc-44", 1e6);
    options.turning.turns_per_minute = 180;  // three turns
    const Counted truth = count(scanner, 0, options, bands, wide);
    const corrections::AttenuatingObject nothing;
    gammas::GammaModel model{scanner,      nothing, *config::find_nuclide("Sc-44"),
                             {true, true}, wide,    {900, 1300, resolution},
                             {},           {},      {}};
    constexpr std::size_t angles = 24;
    model.angles.shares.assign(angles, 1.0 / angles);
    model.angles.radians.clear();
    for (std::size_t i = 0; i < angles; ++i)
        model.angles.radians.push_back(static_cast<double>(i) * 2 * std::numbers::pi / angles);
    net::WorkerPool pool(2);
    const std::uint32_t in_head = scanner.geometry.crystal_count() / 2;
    const auto good = [&](std::uint32_t a, std::uint32_t b) {
        return a / in_head != b / in_head && bands.of(a, b) < Bands::count;
    };
    const corrections::OfPair found = [&](std::uint32_t a, std::uint32_t b) {
        return good(a, b) ? 1.0 : 0.0;
    };
    gammas::SpuriousPairs spurious(model, activity(), efficiency, found, truth.pairs, pool);
    spurious.scale_to(truth.pairs);
    CAPTURE(truth.pairs, truth.all(), spurious.total());
    REQUIRE(truth.all() > 300);
    CHECK(std::abs(spurious.total() - truth.all()) < 0.02 * truth.pairs + 2.5 * std::sqrt(truth.all()));
    std::array<double, Bands::count> expected{};
    for (std::uint32_t a = 0; a < scanner.geometry.crystal_count(); ++a) {
        for (std::uint32_t b = 0; b < a; ++b) {
            if (good(a, b)) expected[bands.of(a, b)] += spurious.counts(a, b);
        }
    }
    for (std::size_t i = 0; i < Bands::count; ++i) {
        CAPTURE(i, expected[i], truth.spurious[i]);
        CHECK(std::abs(expected[i] - truth.spurious[i]) <
              0.02 * truth.pairs + 3.5 * std::sqrt(truth.spurious[i]));
    }
}

TEST_CASE("crystals that differ let more gammas into a narrow window, as in the truth", "[gammas]") {
    // Many gammas of 603 keV whose hit lies in several crystals are found below 570 keV.
    constexpr double spread = 0.1;
    constexpr corrections::EnergyWindow narrow{440, 570, resolution};
    const config::Scanner scanner = test::small_scanner();
    const Bands bands(scanner);
    const Counted truth = count(scanner, spread, options_of("I-124", 2e6), bands, narrow);
    const corrections::AttenuatingObject nothing;
    const gammas::GammaModel model{scanner,
                                   nothing,
                                   *config::find_nuclide("I-124"),
                                   {true, true, spread},
                                   narrow,
                                   {575, 680, resolution},
                                   {},
                                   {},
                                   {}};
    net::WorkerPool pool(2);
    gammas::SpuriousPairs spurious(
        model, activity(), efficiency,
        [&](std::uint32_t a, std::uint32_t b) { return bands.of(a, b) < Bands::count ? 1.0 : 0.0; },
        truth.pairs, pool);
    spurious.scale_to(truth.pairs);
    CAPTURE(truth.pairs, truth.all(), spurious.total());
    // Without the spread there would be a quarter less.
    CHECK(std::abs(spurious.total() - truth.all()) < 0.05 * truth.all() + 2.5 * std::sqrt(truth.all()));
}

TEST_CASE("the width of the photopeak has a share of crystals that differ", "[gammas]") {
    const config::Scanner scanner = test::small_scanner();
    constexpr double spread = 0.1;
    sim::DetectorModel crystals;
    crystals.gain_spread = spread;
    const test::Recorded run =
        test::record(scanner, sim::calibration_of(scanner, sim::make_detector(scanner, crystals)),
                     options_of("F-18", 1e6));
    corrections::PhotopeakWidth peak;
    for (const sim::TruthRecord& t : run.truth)
        peak.add(t.energy);
    const corrections::EnergyWindow found = peak.window(config::Energy{true, 350, 650});
    CHECK(found.resolution > 1.03 * resolution);
    CHECK(gammas::resolution_of_one_crystal(scanner, {true, true, spread}, found) ==
          Approx(resolution).epsilon(0.025));
    CHECK(gammas::resolution_of_one_crystal(scanner, {true, true}, found) == found.resolution);
}

TEST_CASE("the lines of spurious pairs have little noise where there are many prompts", "[gammas]") {
    const config::Scanner scanner = test::small_scanner();
    const corrections::AttenuatingObject nothing;
    const gammas::GammaModel model{scanner,      nothing, *config::find_nuclide("Sc-44"),
                                   {true, true}, wide,    {900, 1300, resolution},
                                   {},           {},      {}};
    corrections::Activity point{{{2, 2, 2}, 4}, std::vector<float>(8, 1)};
    net::WorkerPool pool(2);
    const Bands bands(scanner);
    const gammas::SpuriousPairs spurious(
        model, point, efficiency,
        [&](std::uint32_t a, std::uint32_t b) { return bands.of(a, b) < Bands::count ? 1.0 : 0.0; }, 2e5,
        pool);
    CHECK(spurious.relative_error() < 0.008);
    // What the scanner looks like after a quarter of a turn.
    const std::uint32_t ring = scanner.geometry.crystals_in_ring();
    const auto turned = [&](std::uint32_t crystal, std::uint32_t quarters) {
        return crystal / ring * ring + (crystal % ring + quarters * ring / 4) % ring;
    };
    double sum = 0;
    double squares = 0;
    for (std::uint32_t a = 0; a < scanner.geometry.crystal_count(); a += 7) {
        for (std::uint32_t b = 0; b < a; b += 5) {
            if (bands.of(a, b) == Bands::count) continue;
            test::Moments moments;
            for (std::uint32_t quarters = 0; quarters < 4; ++quarters)
                moments.add(spurious.counts(turned(a, quarters), turned(b, quarters)));
            sum += moments.mean() * moments.mean();
            squares += moments.variance();
        }
    }
    REQUIRE(sum > 0);
    CHECK(std::sqrt(squares / sum) < 0.3);
}

TEST_CASE("the prompt gammas of a nuclide do not widen the photopeak", "[gammas]") {
    // Two hits that the window accepts make a pair, true or spurious.
    const auto width = [&](const char* nuclide, double decays) {
        const config::Scanner scanner = test::small_scanner();
        std::map<std::uint64_t, std::vector<float>> energies;
        for (const sim::TruthRecord& t :
             test::record(scanner, config::make_calibration(scanner, {}), options_of(nuclide, decays)).truth)
            if (t.true_energy >= 350 && t.true_energy < 650)
                energies[t.annihilation].push_back(t.true_energy);
        corrections::PhotopeakWidth photopeak;
        for (const auto& [decay, hits] : energies)
            if (hits.size() == 2)
                for (const float energy : hits)
                    photopeak.add(energy);
        return photopeak.window(config::Energy{true, 350, 650}).resolution;
    };
    CHECK(width("F-18", 5e5) == Approx(resolution).epsilon(0.04));
    CHECK(width("I-124", 2e6) == Approx(resolution).epsilon(0.04));
}
