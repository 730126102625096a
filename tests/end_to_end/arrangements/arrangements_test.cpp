// The example scanners of the long form, from simulated UDP to list-mode.
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "config/scanner/arrangement.hpp"
#include "tests/end_to_end/arrangements/chain.hpp"
#include "tests/end_to_end/daemon_fixture.hpp"
#include "tests/end_to_end/truth_counts.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/image_file.hpp"
#include "tests/support/largest_scanner.hpp"
#include "tests/support/odd_scanner.hpp"
#include "tests/support/scanner_with_gaps.hpp"
#include "tests/support/tapered_scanner.hpp"

using namespace petacq::test;
using nlohmann::json;

namespace {

namespace config = petacq::config;
using petacq::gpu::Coincidence;

struct Case {
    std::string scanner;
    std::array<double, 3> point_mm;  ///< of the activity
    double max_offset_mm;            ///< of the point that is found
    const char* mbq = "1";
};

/// The middle of a crystal.
config::Vector3 middle_of(const config::Scanner& scanner, std::uint32_t crystal) {
    return config::point_at_depth(config::crystal_place(scanner, crystal),
                                  scanner.arrangement->layer_of(crystal).length_mm / 2);
}

/// The point that is nearest to the lines of the prompts that pass near `about`, by least squares.
config::Vector3 point_of(const config::Scanner& scanner, const petacq::gpu::RecordVector<Coincidence>& pairs,
                         const std::array<double, 3>& about) {
    constexpr double near_mm = 6;
    std::array<std::array<double, 4>, 3> sum{};  // normal equations
    for (const Coincidence& pair : pairs) {
        if (pair.kind != petacq::gpu::Kind::prompt) continue;
        const auto a = middle_of(scanner, pair.crystal_a);
        const auto b = middle_of(scanner, pair.crystal_b);
        const double length = std::hypot(b[0] - a[0], b[1] - a[1], b[2] - a[2]);
        std::array<double, 3> u{};
        double along = 0;
        for (std::size_t i = 0; i < 3; ++i) {
            u[i] = (b[i] - a[i]) / length;
            along += u[i] * (about[i] - a[i]);
        }
        double square = 0;
        for (std::size_t i = 0; i < 3; ++i)
            square += std::pow(a[i] + along * u[i] - about[i], 2);
        if (square > near_mm * near_mm) continue;
        for (std::size_t i = 0; i < 3; ++i) {
            for (std::size_t k = 0; k < 3; ++k) {
                const double across = (i == k ? 1 : 0) - u[i] * u[k];
                sum[i][k] += across;
                sum[i][3] += across * a[k];
            }
        }
    }
    // Gauss: the matrix is positive.
    for (std::size_t i = 0; i < 3; ++i) {
        REQUIRE(sum[i][i] > 0);
        for (std::size_t row = 0; row < 3; ++row) {
            if (row == i) continue;
            const double factor = sum[row][i] / sum[i][i];
            for (std::size_t k = i; k < 4; ++k)
                sum[row][k] -= factor * sum[i][k];
        }
    }
    return {sum[0][3] / sum[0][0], sum[1][3] / sum[1][1], sum[2][3] / sum[2][2]};
}

/// A run of the daemon over a simulated stream: every frame has its fate, and every pair is expected. What
/// petsim compare says. `look`: at the status when all has been received.
json run_and_compare(
    const Site& site, const std::vector<std::string>& arguments,
    const std::function<void(const json&)>& look = [](const json&) {}) {
    json summary;
    {
        Daemon daemon(site);
        daemon.start("r");
        std::vector<std::string> all = arguments;
        all.insert(all.end(), {"--to", daemon.address(), "--flush-us", "10000", "--skew-us", "1000"});
        summary = simulate(site, all);
        REQUIRE(daemon.received(summary["total"]["expected"]["datagrams_received"]));
        look(daemon.status());
        CHECK(daemon.stop()["ledger_closed"] == true);
        CHECK(daemon.terminate() == 0);
    }
    const std::string truth = (site.directory() / "petsim.truth").string();
    const std::string run = site.run("r").string();
    const json document = site.run_json("r");
    check_ledger(document["ledger"], summary,
                 count_truth(truth, document["configuration"]["energy"]["lower_keV"]));
    const Outcome verify = run_program(PETLM_PROGRAM, {"verify", run});
    INFO(verify.out << verify.err);
    CHECK(verify.status == 0);
    const Outcome compare =
        run_program(PETSIM_PROGRAM, {"compare", "--truth", truth, "--run", run, "--json"});
    INFO(compare.out << compare.err);
    REQUIRE(compare.status == 0);
    return json::parse(compare.out);
}

}  // namespace

TEST_CASE("a scanner of any arrangement: from simulated datagrams to list-mode", "[e2e][arrangements]") {
    const Case c = GENERATE(Case{"box", {5, -8, 6}, 0.3}, Case{"hexagon", {4, 3, -5}, 0.3},
                            Case{"insert", {3, -2, 2}, 0.3}, Case{"monolithic", {4, -6, 3}, 0.2},
                            Case{"partial-ring", {0, 0, 3}, 0.3}, Case{"phoswich", {6, -4, 3}, 0.2},
                            Case{"total-body", {20, -30, 10}, 0.4}, Case{"two-heads", {2, -3, 4}, 0.3, "6"},
                            Case{"two-rings", {5, 2, -3}, 0.4}, Case{"unequal-blocks", {-4, 5, 3}, 0.2},
                            Case{"tapered", {3, -4, 5}, 0.3});
    INFO(c.scanner);
    const bool is_example = c.scanner != "tapered";
    const TemporaryDirectory directory;
    std::filesystem::path file = directory / "tapered.scanner.json";
    if (is_example) {
        file = example_scanner_file(c.scanner);
    } else {
        write_file(file, tapered_description().dump());
    }
    const Site site(is_example ? example_configuration(c.scanner)
                               : json{{"coincidence", {{"min_module_difference", nullptr}}},
                                      {"sources", {{"accept_any", true}}}},
                    file);
    const std::string at = std::to_string(c.point_mm[0]) + "," + std::to_string(c.point_mm[1]) + "," +
                           std::to_string(c.point_mm[2]);
    const json compared =
        run_and_compare(site, {"--point", at + "," + c.mbq, "--duration-s", "0.1", "--crystals", "depth",
                               "--efficiency", "1", "--scatter", "0", "--dark-hz", "100"});
    CHECK(compared["prompts"] > 500);
    CHECK(compared["prompts_expected"] == compared["prompts"]);
    CHECK(compared["delayeds"] > 0);

    const config::Scanner scanner = config::load_scanner(site.scanner());
    const auto pairs = coincidences_of(site.run("r") / "coincidences.plm");
    const auto found = point_of(scanner, pairs, c.point_mm);
    for (std::size_t i = 0; i < 3; ++i)
        CHECK(found[i] == Approx(c.point_mm[i]).margin(c.max_offset_mm));
}

TEST_CASE("a scanner with gaps in the numbers of its BDMs: from its listed sources to status and list-mode",
          "[e2e][arrangements]") {
    const TemporaryDirectory directory;
    const std::filesystem::path file = directory / "gaps.scanner.json";
    write_file(file, description_with_gaps().dump());
    const Site site({{"coincidence", {{"min_module_difference", nullptr}}}}, file);
    std::vector<std::uint32_t> numbers;
    std::set<std::uint32_t> ids;
    const json compared = run_and_compare(
        site, {"--point", "1,2,3,1", "--duration-s", "0.1", "--efficiency", "1"}, [&](const json& status) {
            for (const json& module : status["modules"])
                numbers.push_back(module["bdm"]);
            for (const json& source : status["sources"])
                ids.insert(source["id"].get<std::uint32_t>());
        });
    CHECK(numbers == std::vector<std::uint32_t>{3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25});
    CHECK(ids == std::set<std::uint32_t>{70, 71, 72, 73});
    CHECK(compared["prompts"] > 500);
    CHECK(compared["prompts_expected"] == compared["prompts"]);
}

TEST_CASE("a scanner with units that do not exist: every fault is counted as the simulator expects",
          "[e2e][arrangements][faults]") {
    const TemporaryDirectory directory;
    const std::filesystem::path file = directory / "odd.scanner.json";
    write_file(file, odd_description().dump());
    const Site site(
        {{"coincidence", {{"min_module_difference", nullptr}}}, {"sources", {{"accept_any", true}}}}, file);
    std::vector<std::string> arguments{"--point",
                                       "1,2,3,4",
                                       "--duration-s",
                                       "0.2",
                                       "--crystals",
                                       "scatter",
                                       "--efficiency",
                                       "1",
                                       "--intrinsic-hz",
                                       "200",
                                       "--intrinsic-cascade",
                                       "--loss",
                                       "0.02",
                                       "--duplicate",
                                       "0.02",
                                       "--reorder",
                                       "0.03",
                                       "--silent-unit",
                                       "7.1@0.05-0.1"};
    for (const char* field : {"marker", "bdm", "du", "x", "energy", "magic", "length"})
        arguments.insert(arguments.end(), {"--corrupt", std::string(field) + ":0.03"});
    const json compared = run_and_compare(site, arguments);
    CHECK(compared["prompts"] > 500);
    CHECK(compared["prompts_expected"] == compared["prompts"]);
}

TEST_CASE("a scanner of 65536 modules, and one of 4 M crystals: received, replayed and imaged",
          "[.long][arrangements]") {
    struct Largest {
        json description;
        int least_prompts;
    };
    const auto [description, least_prompts] =
        GENERATE(Largest{largest_description(), 50'000}, Largest{description_of_most_crystals(), 30'000});
    INFO(description["name"]);
    const TemporaryDirectory directory;
    const std::filesystem::path file = directory / "largest.scanner.json";
    write_file(file, description.dump());
    const Site site({{"sources", {{"accept_any", true}}},
                     {"coincidence", {{"window_ticks", 600}, {"min_module_difference", nullptr}}}},
                    file);
    const std::array<double, 3> at{20, -30, 40};
    const std::vector<std::string> scan{"--point",      "20,-30,40,1", "--sources",  "64",
                                        "--duration-s", "0.1",         "--crystals", "depth",
                                        "--efficiency", "1",           "--scatter",  "0"};
    const json compared = run_and_compare(site, scan);
    CHECK(compared["prompts"] > least_prompts);
    CHECK(compared["prompts_expected"] == compared["prompts"]);
    const std::filesystem::path list = site.run("r") / "coincidences.plm";
    const auto pairs = coincidences_of(list);
    const std::uint32_t crystals = config::load_scanner(file).geometry.crystal_count();
    CHECK(std::any_of(pairs.begin(), pairs.end(), [&](const Coincidence& pair) {
        return std::max(pair.crystal_a, pair.crystal_b) >= crystals / 100 * 99;
    }));

    const std::string replayed = simulated_run(site, scan, "replayed");
    CHECK(payload_of(std::filesystem::path(replayed) / "coincidences.plm") == payload_of(list));

    const Outcome image =
        run_program(PETLM_PROGRAM, {"image", replayed, "-o", (site.directory() / "image").string(),
                                    "--voxel-mm", "8", "--fov-mm", "100", "--iterations", "1", "--scatter",
                                    "none", "--backend", "cpu", "--no-cache"});
    INFO(image.out << image.err);
    REQUIRE(image.status == 0);
    std::array<double, 3> found{};
    float most = 0;
    ImageFile(site.directory() / "image" / "image.nii").each([&](float value, double x, double y, double z) {
        if (value <= most) return;
        most = value;
        found = {x, y, z};
    });
    for (std::size_t i = 0; i < 3; ++i)
        CHECK(found[i] == Approx(at[i]).margin(8));  // a voxel
}
