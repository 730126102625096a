// Pairs with prompt gammas that images expect, against those that the simulator made, through all programs.
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <unordered_map>

#include "config/scanner/scanner.hpp"
#include "daemon/listmode/reader.hpp"
#include "tests/physics/laboratory.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/turning_scanner.hpp"
#include "tools/normalisation/normalisation.hpp"
#include "tools/petlm/reconstruction/gammas/spurious_pairs.hpp"
#include "tools/petsim/simulation/base/truth.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

const Cylinder flood_of_spurious{0, 0, 24, 64};
const Cylinder source_of_spurious{3, -2, 10, 30};

/// Lines that miss the source, by how far from its axis they pass.
class BesideSource {
  public:
    static constexpr std::size_t count = 3;
    static constexpr double wide_mm = 4;

    explicit BesideSource(const config::Scanner& scanner) {
        for (std::uint32_t crystal = 0; crystal < scanner.geometry.crystal_count(); ++crystal)
            places_.push_back(config::crystal_place(scanner, crystal).front_centre_mm);
    }
    /// `count`: others.
    [[nodiscard]] std::size_t of(std::uint32_t a, std::uint32_t b) const {
        const config::Vector3 p = {places_[a][0] - source_of_spurious.x, places_[a][1] - source_of_spurious.y,
                                   0};
        const config::Vector3 q = {places_[b][0] - source_of_spurious.x, places_[b][1] - source_of_spurious.y,
                                   0};
        const double length = std::hypot(q[0] - p[0], q[1] - p[1]);
        if (length < 20) return count;
        const double beside = std::abs(p[0] * q[1] - p[1] * q[0]) / length - source_of_spurious.radius;
        return beside < 0 ? count : std::min(count, static_cast<std::size_t>(beside / wide_mm));
    }

  private:
    std::vector<config::Vector3> places_;
};
using CountsBeside = std::array<double, BesideSource::count>;

struct TrueCounts {
    double trues = 0;
    double spurious = 0;
    CountsBeside beside{};  ///< spurious
};

/// `lines`: null: on any.
TrueCounts spurious_in_truth(const std::string& run, const std::string& truth, const BesideSource* lines) {
    std::unordered_map<std::uint64_t, sim::TruthRecord> singles;
    const auto key = [](std::uint64_t time, std::uint32_t crystal) { return time * 65536 + crystal; };
    for (const auto& record : sim::read_truth(truth))
        singles[key(record.time, record.crystal)] = record;
    TrueCounts out;
    daemon::ListModeReader reader(run + "/coincidences.plm");
    while (reader.next()) {
        for (const gpu::Coincidence& pair : reader.coincidences()) {
            if (pair.kind != gpu::Kind::prompt) continue;
            const auto& a = singles.at(key(pair.time, pair.crystal_a));
            const auto& b = singles.at(key(pair.time + pair.dt, pair.crystal_b));
            if (a.annihilation == 0 || a.annihilation != b.annihilation) continue;
            constexpr std::uint8_t which = 3;
            const bool gamma =
                (a.photon & which) == sim::truth_gamma || (b.photon & which) == sim::truth_gamma;
            ++(gamma ? out.spurious : out.trues);
            if (!lines) continue;
            const std::size_t band = lines->of(pair.crystal_a, pair.crystal_b);
            if (gamma && band < BesideSource::count) ++out.beside.at(band);
        }
    }
    return out;
}

/// The spurious pairs that the true activity lets expect on the lines beside it, if there are `all` of them
/// on the lines of all good pairs.
CountsBeside expected_beside(const config::Scanner& scanner, const BesideSource& lines,
                             const std::string& nuclide, std::uint32_t least_difference,
                             const std::vector<float>& relative, double efficiency, double all) {
    corrections::Activity activity{{{60, 60, 40}, 1}, {}};
    for (std::size_t i = 0; i < activity.grid.voxels(); ++i) {
        const double x = activity.grid.centre(0, i % 60);
        const double y = activity.grid.centre(1, i / 60 % 60);
        activity.of_voxel.push_back(source_of_spurious.contains(x, y, 0, 0) &&
                                            std::abs(activity.grid.centre(2, i / 3600)) <
                                                source_of_spurious.length / 2
                                        ? 1
                                        : 0);
    }
    const corrections::AttenuatingObject nothing;
    const corrections::EnergyWindow window;
    const gammas::GammaModel model{
        scanner, nothing, *config::find_nuclide(nuclide), {true, true}, window, window, {}, {}, relative};
    const std::uint32_t around = scanner.geometry.crystals_in_ring();
    const std::uint32_t modules = scanner.geometry.modules_around();
    const auto module = [&](std::uint32_t crystal) { return crystal % around * modules / around; };
    const corrections::OfPair found = [&](std::uint32_t a, std::uint32_t b) {
        const std::uint32_t apart = module(a) > module(b) ? module(a) - module(b) : module(b) - module(a);
        return std::min(apart, modules - apart) < least_difference
                   ? 0.0
                   : double{relative[a]} * double{relative[b]};
    };
    net::WorkerPool pool(2);
    gammas::SpuriousPairs spurious(model, activity, efficiency, found, all, pool);
    spurious.scale_to(all / spurious.per_pair());
    CountsBeside out{};
    for (std::uint32_t a = 0; a < scanner.geometry.crystal_count(); ++a) {
        for (std::uint32_t b = 0; b < a; ++b) {
            const std::size_t band = lines.of(a, b);
            if (band < BesideSource::count) out.at(band) += found(a, b) * spurious.counts(a, b);
        }
    }
    return out;
}

}  // namespace

TEST_CASE("spurious pairs: as many as in the truth, of three nuclides in two scanners", "[.long]") {
    struct Scan {
        const char* nuclide;
        double mbq;
        double seconds;
    };
    const auto scan = GENERATE(Scan{"I-124", 2, 8}, Scan{"Sc-44", 2, 4}, Scan{"Y-86", 2, 4});
    const std::string scanner = GENERATE("ten modules", "small");
    CAPTURE(scan.nuclide, scanner);
    static std::map<std::string, Laboratory> laboratories;
    const bool fresh = laboratories.count(scanner) == 0;
    Laboratory& laboratory =
        laboratories
            .try_emplace(scanner, scanner == "small" ? Equipment::example("small", "scatter", 5000)
                                                     : Equipment::ten_modules("scatter"))
            .first->second;
    if (fresh) {
        laboratory.acquire("flood", 12,
                           {"--seed", "3", "--scatter", "0", "--cylinder", flood_of_spurious.text() + ",4"});
        laboratory.derive_normalisation("flood", flood_of_spurious, "normalisation.h5");
    }
    const std::string name = scan.nuclide;
    const nlohmann::json source = {{"type", "cylinder"},
                                   {"centre_mm", {source_of_spurious.x, source_of_spurious.y, 0}},
                                   {"radius_mm", source_of_spurious.radius},
                                   {"length_mm", source_of_spurious.length},
                                   {"activity_MBq", scan.mbq},
                                   {"nuclide", name}};
    write_file(laboratory.path(name + ".json"), nlohmann::json{{"sources", {source}}}.dump());
    const std::string truth_file = laboratory.path(name + ".truth");
    laboratory.acquire(name, scan.seconds,
                       {"--seed", "7", "--scatter", "0", "--source", laboratory.path(name + ".json"),
                        "--truth", truth_file});
    const config::Scanner described = config::load_scanner(laboratory.scanner_file());
    const BesideSource lines(described);
    const TrueCounts truth = spurious_in_truth(laboratory.path("data/" + name), truth_file, &lines);
    const auto image = laboratory.image(name, {"--nuclide", name, "--normalisation",
                                               laboratory.path("normalisation.h5"), "--voxel-mm", "1.5"});
    const auto& figures = image.statement.at("corrections").at("spurious pairs");
    const double expected = figures.at("expected").get<double>();
    WARN(scanner << ", " << name << ": " << truth.trues << " true, " << truth.spurious << " spurious, "
                 << expected << " expected, efficiency " << figures.at("efficiency"));
    REQUIRE(truth.spurious > 5000);
    CHECK(std::abs(expected - truth.spurious) < 0.02 * truth.spurious + 2 * std::sqrt(truth.spurious));
    CHECK(std::abs(expected - truth.spurious) < 0.02 * truth.trues + 2 * std::sqrt(truth.spurious));
    // Lines that miss the source have no others of its pairs but the few that crystals scattered there.
    const auto normalisation = normalisation::load(laboratory.path("normalisation.h5"), described.geometry);
    const CountsBeside beside =
        expected_beside(described, lines, name, scanner == "small" ? 0 : 2, normalisation.efficiency,
                        figures.at("efficiency").get<double>(), truth.spurious);
    for (std::size_t i = 0; i < beside.size(); ++i) {
        WARN(i << ": " << beside.at(i) / truth.beside.at(i) << " of " << truth.beside.at(i));
        CHECK(std::abs(beside.at(i) - truth.beside.at(i)) <
              0.03 * truth.beside.at(i) + 3 * std::sqrt(truth.beside.at(i)));
    }
}

TEST_CASE("spurious pairs of a scanner that turns: as many as in the truth", "[.long][rotation]") {
    Equipment heads{
        turning_scanner(),
        {{"receive", {{"sockets", {{{"address", "127.0.0.1"}, {"port", 9601}}}}}},
         {"coincidence", {{"window_ticks", 400}, {"delay_ticks", 4000}, {"min_module_difference", nullptr}}},
         {"control", {{"socket", "petacqd.sock"}}}}};
    heads.detector = {"--time-spread-ps", "0"};
    heads.simulation = {"--scatter", "0", "--efficiency", "0.8", "--crystals", "scatter"};
    Laboratory laboratory(heads);
    const Cylinder flood{0, 0, 9, 24};
    laboratory.acquire("flood", 6, {"--rotation", "30", "--seed", "71", "--cylinder", flood.text() + ",2"});
    laboratory.derive_normalisation("flood", flood, "norm.h5");
    const std::string name = GENERATE("Sc-44", "I-124");
    write_file(laboratory.path("source.json"), nlohmann::json{{"sources",
                                                               {{{"type", "cylinder"},
                                                                 {"centre_mm", {3, -2, 0}},
                                                                 {"radius_mm", 5},
                                                                 {"length_mm", 10},
                                                                 {"activity_MBq", 2},
                                                                 {"nuclide", name}}}}}
                                                   .dump());
    const std::string truth_file = laboratory.path("truth");
    laboratory.acquire("run", name == "Sc-44" ? 10 : 20,
                       {"--seed", "7", "--rotation", "30", "--source", laboratory.path("source.json"),
                        "--truth", truth_file});
    const TrueCounts truth = spurious_in_truth(laboratory.path("data/run"), truth_file, nullptr);
    const auto image =
        laboratory.image("run", {"--nuclide", name, "--normalisation", laboratory.path("norm.h5"),
                                 "--voxel-mm", "1.25", "--fov-mm", "24"});
    const auto& figures = image.statement.at("corrections").at("spurious pairs");
    const double expected = figures.at("expected").get<double>();
    WARN(name << ": " << truth.trues << " true, " << truth.spurious << " spurious, " << expected
              << " expected, efficiency " << figures.at("efficiency"));
    REQUIRE(truth.spurious > 1500);
    CHECK(std::abs(expected - truth.spurious) < 0.02 * truth.trues + 2 * std::sqrt(truth.spurious));
}
