// The tutorial on calibration: its commands, as they stand on the page, and how good their result is.
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "config/scanner/scanner.hpp"
#include "config/spectra.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/program.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/tutorial.hpp"

using namespace petacq;
using namespace petacq::test;
using nlohmann::json;

namespace {

json answer(const std::string& program, const std::vector<std::string>& arguments) {
    const Outcome outcome = run_program(program, arguments);
    INFO(outcome.err);
    REQUIRE(outcome.status == 0);
    return json::parse(outcome.out);
}

/// Shares of frames in their crystal and outside any, and the error of energies (rms): percent.
struct Figures {
    double right = 0;
    double outside = 0;
    double energy_rms = 0;
};

Figures measured(const std::filesystem::path& directory, const std::string& calibration) {
    const json c = answer(PETSIM_PROGRAM,
                          {"compare", "--json", "--truth", (directory / (calibration + ".truth")).string(),
                           "--run", (directory / "data" / calibration).string()})["calibration"];
    const double frames = c["frames"];
    REQUIRE(frames > 300'000);
    return {100 * c["right"].get<double>() / frames, 100 * c["outside"].get<double>() / frames,
            100 * c["energy_rms"].get<double>()};
}

/// The figures that the table in the tutorial gives for a calibration.
Figures told(const std::string& page, const std::string& calibration) {
    std::smatch row;
    const std::regex pattern(R"(\n\| )" + calibration +
                             R"( \| ([0-9.]+) % \| ([0-9.]+) % \| ([0-9.]+) % \|\n)");
    INFO(calibration);
    REQUIRE(std::regex_search(page, row, pattern));
    return {std::stod(row[1]), std::stod(row[2]), std::stod(row[3])};
}

/// Whether the daemon received each frame that was sent in the flood. Only then the figures of the page come
/// out.
bool flood_is_whole(const std::string& printed, const std::filesystem::path& run) {
    std::smatch sent;
    REQUIRE(std::regex_search(printed, sent, std::regex("\\nframes +[0-9]+ = ([0-9]+) sent")));
    const json ledger = json::parse(read_file(run / "run.json"))["ledger"];
    return ledger["frames"]["received"] == std::stoll(sent[1]);
}

/// Follows the tutorial up to these words, with scans of so many seconds. `offsets_ps` is the largest error
/// of the time offsets (rms) that scans of this length leave. Returns what the commands print.
std::string check_tutorial(const std::string& end, const std::string& scan_s, double offsets_ps) {
    const TemporaryDirectory place;
    std::string page = tutorial_page("calibration");
    REQUIRE(contains(page, end));
    page.resize(page.find(end));
    REQUIRE(contains(page, "--duration-s 20 "));
    const Outcome followed = follow_tutorial(
        std::regex_replace(page, std::regex("--duration-s 20 "), "--duration-s " + scan_s + " "),
        place.path());
    INFO(followed.out);
    REQUIRE(followed.status == 0);
    CHECK(contains(followed.out, "units               144 of 144"));
    CHECK(contains(followed.out, "peaks               2879 of 2880 crystals"));
    CHECK(contains(followed.out, "photopeaks          2880 of 2880 crystals"));

    const std::filesystem::path work = place / "calibration";
    if (flood_is_whole(followed.out, work / "data" / "flood")) {
        // What stands before the first scan, whose length is not that of the page.
        const std::string same = scan_s == "20" ? page : page.substr(0, page.find("## 6 "));
        CHECK(not_printed(same, followed.out) == std::vector<std::string>{});
    }
    const Figures nominal = measured(work, "nominal");
    const Figures derived = measured(work, "derived");
    const Figures best = measured(work, "best");
    CHECK(nominal.right < best.right - 5);
    CHECK(derived.right > best.right - 0.2);
    CHECK(nominal.energy_rms > 5);
    CHECK(derived.energy_rms < 0.4);
    for (const auto& [name, figures] :
         {std::pair("nominal", nominal), {"derived", derived}, {"best", best}}) {
        INFO(name);
        const Figures page_figures = told(page, name);
        CHECK(figures.right == Approx(page_figures.right).margin(0.06));
        CHECK(figures.outside == Approx(page_figures.outside).margin(0.06));
        CHECK(figures.energy_rms == Approx(page_figures.energy_rms).margin(0.011));
    }

    const std::string scanner = (work / "small.scanner.json").string();
    const json left = answer(PETCAL_PROGRAM, {"compare", "--json", (work / "best.h5").string(),
                                              (work / "derived.h5").string(), "--scanner", scanner});
    CHECK(left["position_table"]["differing_fraction"] < 0.03);
    CHECK(left["energy_factor"]["rms_percent"] < 0.4);
    CHECK(std::abs(left["energy_factor"]["mean_percent"].get<double>()) < 0.15);

    const json timed = answer(PETCAL_PROGRAM, {"compare", "--json", (work / "best.h5").string(),
                                               (work / "timed.h5").string(), "--scanner", scanner});
    CHECK(timed["time_offset"]["rms_ps"] < offsets_ps);

    const Outcome mixed =
        run_program(PETSIM_PROGRAM, {"compare", "--truth", (work / "nominal.truth").string(), "--run",
                                     (work / "data" / "derived").string()});
    CHECK(mixed.status == 78);
    CHECK(contains(mixed.err, "expected a run with the calibration of the truth"));

    // Spectra that were taken with another calibration.
    const Outcome stale =
        run_program(PETCAL_PROGRAM, {"derive", "energy", "--scanner", scanner, "--spectra",
                                     (work / "data/derived/spectra.h5").string(), "--calibration",
                                     (work / "mapped.h5").string(), "-o", (work / "stale.h5").string()});
    CHECK(stale.status == 78);
    CHECK(contains(stale.err, "found those of another one"));

    // Spectra of a live run and of a replay of its capture hold the same frames, whatever the crystal map.
    const config::Geometry geometry = config::load_scanner(scanner).geometry;
    CHECK((config::load_spectra(work / "data" / "flood" / "spectra.h5", geometry).floods ==
           config::load_spectra(work / "data" / "mapped" / "spectra.h5", geometry).floods));
    return followed.out;
}

}  // namespace

TEST_CASE("the tutorial on calibration comes close to the best calibration", "[e2e][calibration]") {
    check_tutorial("## 7 Derive the normalisation", "5", 30);
}

TEST_CASE("the tutorial on calibration, with scans as long as it says", "[e2e][calibration][.long]") {
    const std::string printed = check_tutorial("[The page on images]", "20", 18);
    // The image of a phantom that was not used to calibrate.
    const std::size_t measurement = printed.rfind("mean of the image");
    REQUIRE(measurement != std::string::npos);
    const double found = std::stod(printed.substr(measurement + 18));
    CHECK(found == Approx(55.26).epsilon(0.01));
    const std::string page = tutorial_page("calibration");
    std::smatch told_mean;
    REQUIRE(std::regex_search(page, told_mean, std::regex("it finds ([0-9.]+) kBq/ml")));
    CHECK(found == Approx(std::stod(told_mean[1])).margin(0.06));
}
