// How often gammas are found beside the pairs of their decays, against the simulator, decay by decay.
#include "tools/petlm/reconstruction/gammas/gamma_chance.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <vector>

#include "config/make_calibration.hpp"
#include "tests/support/catch.hpp"
#include "tests/tools/petsim/common.hpp"
#include "tools/petlm/reconstruction/corrections/module_losses.hpp"

using namespace petacq;
using config::Vector3;

namespace {

constexpr double photons_found = 0.8;
constexpr double blur = 0.12;  // FWHM / energy at 511 keV
const corrections::AttenuatingObject no_object;

/// A nuclide, and its windows.
struct GammaRow {
    const char* nuclide;
    corrections::EnergyWindow gammas;
    corrections::EnergyWindow pairs{350, 650, blur};
};

gammas::GammaModel model_of(const config::Scanner& scanner, const GammaRow& row) {
    return {scanner,   no_object,  *config::find_nuclide(row.nuclide), {true, true},
            row.pairs, row.gammas, config::GammaPolicy::nearest,       {},
            {}};
}

/// What the gammas do to pairs of decays with a positron.
struct FateOfPairs {
    double all = 0;
    double kept = 0;  ///< no gamma is in the window of the pairs
    double seen = 0;  ///< of these, a gamma is in its own window
};

/// The pair has no say in what becomes of the gammas: all decays count whose first photon is found at any
/// energy. Hits are those of the detector units. What a gamma leaves in the unit of the photon is one hit
/// with it; how many hits that takes away follows from the units of both in different decays.
FateOfPairs fate_of_pairs(const config::Scanner& scanner, const GammaRow& row, const Vector3& at,
                          double decays) {
    sim::Options options = test::point_options(1, decays * 1e-6);
    options.activity[0].at = at;
    options.activity[0].nuclide = config::find_nuclide(row.nuclide);
    options.crystals.model = sim::CrystalModel::scatter;
    options.physics.efficiency = photons_found;
    options.physics.energy_resolution = blur;
    options.physics.scatter = 0;
    struct Decay {
        bool positron = false;
        bool in_pairs = false;
        bool in_gammas = false;
    };
    std::map<std::uint64_t, Decay> fates;
    const std::vector<std::uint32_t> units = petlm::units_of_crystals(scanner.geometry);
    std::vector<double> photons(scanner.geometry.unit_count());
    std::vector<double> of_gammas(photons.size());
    const test::Recorded run = test::record(scanner, config::make_calibration(scanner, {}), options);
    for (const sim::TruthRecord& t : run.truth) {
        const auto energy = static_cast<double>(t.true_energy);
        Decay& decay = fates[t.annihilation];
        decay.positron |= (t.photon & 3U) == sim::truth_first_photon;
        const std::uint32_t unit = units[t.true_crystal];
        photons[unit] += (t.photon & 3U) == sim::truth_first_photon ? 1 : 0;
        of_gammas[unit] += (t.photon & 3U) == sim::truth_gamma ? 1 : 0;
        if ((t.photon & 3U) != sim::truth_gamma) continue;
        decay.in_pairs |= energy >= row.pairs.lower && energy <= row.pairs.upper;
        decay.in_gammas |= energy >= row.gammas.lower && energy <= row.gammas.upper;
    }
    FateOfPairs out;
    double lost = 0;
    for (const auto& [id, decay] : fates) {
        if (!decay.positron) continue;
        ++out.all;
        lost += decay.in_pairs ? 1 : 0;
        out.seen += !decay.in_pairs && decay.in_gammas ? 1 : 0;
    }
    const double with_photon = std::inner_product(photons.begin(), photons.end(), of_gammas.begin(), 0.0) /
                               out.all / std::accumulate(of_gammas.begin(), of_gammas.end(), 0.0);
    out.seen /= 1 - with_photon;
    out.kept = out.all - lost / (1 - with_photon);
    return out;
}

/// At places on and off the axis, in the middle and near the end of the scanner.
void check_chance(const GammaRow& row, double decays) {
    CAPTURE(row.nuclide);
    const config::Scanner scanner = test::small_scanner();
    const gammas::GammaModel model = model_of(scanner, row);
    net::WorkerPool pool(2);
    const image::Grid grid{{32, 32, 22}, 2};
    corrections::Activity activity{grid, {}};
    for (std::size_t i = 0; i < grid.voxels(); ++i) {
        const double across = std::hypot(grid.centre(0, i % 32), grid.centre(1, i / 32 % 32));
        activity.of_voxel.push_back(across < 16 && std::abs(grid.centre(2, i / 32 / 32)) < 16 ? 1 : 0);
    }
    const gammas::GammaChance chance(model, activity, photons_found, decays * 0.05, pool);
    for (const Vector3& at : {Vector3{0, 0, 0}, Vector3{-6, 0, 13}, Vector3{0, 14, 4}}) {
        const FateOfPairs truth = fate_of_pairs(scanner, row, at, decays);
        const double seen = truth.seen / truth.kept;
        const double kept = truth.kept / truth.all;
        CAPTURE(at[0], at[1], at[2], seen, chance.seen(at), kept, chance.kept(at));
        CHECK(chance.seen(at) == Approx(seen).epsilon(3.5 / std::sqrt(truth.seen) + 0.01));
        CHECK(1 - chance.kept(at) ==
              Approx(1 - kept).epsilon(3.5 / std::sqrt(truth.all - truth.kept) + 0.02));
    }
}

}  // namespace

TEST_CASE("gammas are found beside pairs as often as in the truth, by position", "[gammas]") {
    check_chance({"Sc-44", {900, 1300, blur}}, 2e5);
}

TEST_CASE("gammas of several nuclides are found as often as in the truth", "[gammas][.long]") {
    const GammaRow row =
        GENERATE(GammaRow{"Sc-44", {900, 1300, blur}}, GammaRow{"Na-22", {1000, 1450, blur}},
                 GammaRow{"I-124", {575, 680, blur}, {440, 570, blur}}, GammaRow{"Y-86", {950, 1250, blur}});
    check_chance(row, 4e6);
}

TEST_CASE("the chance of gammas has little noise where there are many triples", "[gammas]") {
    const config::Scanner scanner = test::small_scanner();
    const gammas::GammaModel model = model_of(scanner, {"Sc-44", {900, 1300, blur}});
    net::WorkerPool pool(2);
    const image::Grid grid{{32, 32, 22}, 2};
    const gammas::GammaChance chance(model, {grid, std::vector<float>(grid.voxels())}, photons_found, 2e4,
                                     pool);
    // The scanner looks the same from these.
    std::vector<double> seen;
    for (const double x : {-8.0, 8.0}) {
        for (const double z : {-12.0, 12.0}) {
            seen.push_back(chance.seen({x, 0, z}));
            seen.push_back(chance.seen({0, x, z}));
        }
    }
    test::Moments moments;
    for (const double value : seen)
        moments.add(value);
    CHECK(moments.sigma() < 0.015 * moments.mean());
}
