// Pairs with prompt gammas that images expect, against those that the simulator made, through all programs.
#include <cmath>
#include <map>
#include <string>
#include <unordered_map>

#include "daemon/listmode/reader.hpp"
#include "tests/physics/laboratory.hpp"
#include "tests/support/catch.hpp"
#include "tools/petsim/simulation/base/truth.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

const Cylinder flood_of_spurious{0, 0, 24, 64};
const Cylinder source_of_spurious{3, -2, 10, 30};

struct TrueCounts {
    double trues = 0;
    double spurious = 0;
};

TrueCounts spurious_in_truth(const std::string& run, const std::string& truth) {
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
    const TrueCounts truth = spurious_in_truth(laboratory.path("data/" + name), truth_file);
    const auto image = laboratory.image(name, {"--nuclide", name, "--normalisation",
                                               laboratory.path("normalisation.h5"), "--voxel-mm", "1.5"});
    const auto& figures = image.statement.at("corrections").at("spurious pairs");
    const double expected = figures.at("expected").get<double>();
    WARN(scanner << ", " << name << ": " << truth.trues << " true, " << truth.spurious << " spurious, "
                 << expected << " expected, efficiency " << figures.at("efficiency"));
    REQUIRE(truth.spurious > 5000);
    CHECK(std::abs(expected - truth.spurious) < 0.02 * truth.spurious + 2 * std::sqrt(truth.spurious));
    CHECK(std::abs(expected - truth.spurious) < 0.02 * truth.trues);
}
