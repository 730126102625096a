// What exports state of files that cover a part of a run: times, decay, rules, loss.
#include "daemon/coverage/coverage.hpp"
#include "tests/tools/petlm/support.hpp"
#include "tools/petlm/export/recorded_time.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

constexpr std::uint64_t second = 64'000'000'000;  // ticks of 15.625 ps

/// A run that starts after 100 s, with ticks of export_scanner().
daemon::Coverage coverage_of(std::vector<gpu::TickRange> ranges) {
    daemon::Coverage coverage;
    coverage.tick_ps = 15.625;
    coverage.anchor = daemon::TimeAnchor{100 * second, {}};
    coverage.intervals = daemon::Intervals(std::move(ranges));
    coverage.activity = daemon::StatedActivity{"Rb-82", 75.45, 0.9543, {}, {}};
    const auto configuration = configuration_with(
        {{"coincidence", {{"window_ticks", 300}, {"delay_ticks", nullptr}, {"min_module_difference", 3}}},
         {"energy", {{"filter", true}, {"lower_keV", 425}, {"upper_keV", 640}}}});
    coverage.rules = {configuration.coincidence, configuration.energy};
    coverage.loss.live = 0.9;
    return coverage;
}

std::filesystem::path write_part(const TemporaryDirectory& directory, const daemon::Coverage& coverage,
                                 const std::vector<std::uint64_t>& times) {
    gpu::RecordVector<gpu::Coincidence> records;
    for (const std::uint64_t time : times) {
        gpu::Coincidence c;
        c.time = time;
        c.crystal_b = 60;
        c.energy_a = c.energy_b = 511;
        records.push_back(c);
    }
    auto description = file_description(export_scanner());
    description["coverage"] = daemon::to_json(coverage);
    std::filesystem::remove(directory / "part.plm");
    write_plm(directory / "part.plm", records, description);
    write_file(directory / "scanner.json", config::to_json(export_scanner()).dump());
    return directory / "part.plm";
}

Outcome exported_part(const std::string& format, const TemporaryDirectory& directory,
                      const std::filesystem::path& file, const std::string& options = "") {
    return exported(format, file, directory / "out",
                    "--scanner" + quoted(directory / "scanner.json") + options);
}

double number_in(const std::map<std::string, std::string>& header, const std::string& key) {
    return std::stod(header.at(key));
}

}  // namespace

TEST_CASE("recorded time: as it was until the first interval, then without the gaps", "[petlm][export]") {
    const petlm::RecordedTime part(coverage_of({{240 * second, 260 * second}}));
    CHECK(part.start_s() == Approx(140));
    CHECK(part.seconds() == 20);
    CHECK_FALSE(part.has_gaps());
    CHECK(part.milliseconds(240 * second) == 140'000);
    CHECK(part.milliseconds(260 * second - 1) == 159'999);
    // Beyond the ends, by the rounding of a clock.
    CHECK(part.milliseconds(239 * second) == 140'000);
    CHECK(part.milliseconds(261 * second) == 159'999);

    const petlm::RecordedTime gaps(coverage_of(
        {{101 * second, 102 * second}, {150 * second, 152 * second}, {220 * second, 221 * second}}));
    CHECK(gaps.start_s() == Approx(1));
    CHECK(gaps.seconds() == 4);
    CHECK(gaps.milliseconds(101 * second + second / 2) == 1500);
    CHECK(gaps.milliseconds(150 * second) == 2000);
    CHECK(gaps.milliseconds(220 * second + second / 4) == 4250);

    // A length between two milliseconds is rounded up, as programs leave out events that are not before the
    // end.
    const petlm::RecordedTime odd(coverage_of({{100 * second, 100 * second + second / 1000 + 1}}));
    CHECK(odd.seconds() == 0.002);
    CHECK(odd.milliseconds(100 * second + second / 1000) == 1);
    CHECK(petlm::RecordedTime(coverage_of({})).end_ms() == 1);
}

TEST_CASE("castor: a part states its start and its recorded time, and is corrected to the start of the run",
          "[petlm][castor]") {
    const TemporaryDirectory directory;
    const auto cut = coverage_of({{240 * second, 260 * second}});
    const auto file = write_part(directory, cut, {240 * second, 259 * second});
    const Outcome outcome = exported_part("castor", directory, file);
    CAPTURE(outcome.out);
    REQUIRE(outcome.status == 0);
    auto header = key_values(directory / "out" / "prompts.cdh", ": ");
    CHECK(number_in(header, "Start time (s)") == 140);
    CHECK(number_in(header, "Duration (s)") == 20);
    // All of the decay: CASToR would take its own half-life and branching ratio for an isotope.
    CHECK(number_in(header, "Calibration factor") == Approx(cut.decay_factor(75.45) / 0.9543));
    CHECK(header.count("Isotope") == 0);
    Bytes events(directory / "out" / "prompts.cdf");
    CHECK(events.take<std::uint32_t>() == 140'000);
    CHECK(number_in(key_values(directory / "out" / "test_scanner.hscan", ": "), "min angle difference") ==
          75);
    CHECK_THAT(outcome.out, contains("10 % of the data of the boards did not arrive"));
    const std::string text = read_file(directory / "out" / "README.txt");
    for (const char* said :
         {"recorded time: 20 s", "from 140 s to 160 s after the start of the run", "decay of Rb-82: 3.96",
          "energy window: 425 to 640 keV", "min_module_difference: 3", "data that arrived: 90 %"})
        CHECK_THAT(text, contains(said));

    const auto phase = coverage_of({{101 * second, 102 * second}, {150 * second, 152 * second}});
    write_part(directory, phase, {101 * second, 151 * second});
    REQUIRE(exported_part("castor", directory, file, " --force").status == 0);
    header = key_values(directory / "out" / "prompts.cdh", ": ");
    CHECK(number_in(header, "Start time (s)") == 1);
    CHECK(number_in(header, "Duration (s)") == 3);
    // With the decay in the gaps.
    CHECK(number_in(header, "Calibration factor") == Approx(phase.decay_factor(75.45) / 0.9543));
    CHECK_THAT(read_file(directory / "out" / "README.txt"), contains("names no isotope"));
}

TEST_CASE("stir: a part states its frame, its energy window and the limits of its records", "[petlm][stir]") {
    const TemporaryDirectory directory;
    auto coverage = coverage_of({{240 * second, 260 * second}});
    coverage.rules.coincidence->max_ring_difference = 2;
    const auto file = write_part(directory, coverage, {240 * second, 259 * second});
    REQUIRE(exported_part("stir", directory, file).status == 0);
    const auto header = key_values(directory / "out" / "template.hs", " := ");
    CHECK(number_in(header, "number of energy windows") == 1);
    CHECK(number_in(header, "energy window lower level[1]") == 425);
    CHECK(number_in(header, "energy window upper level[1]") == 640);
    CHECK(number_in(header, "image relative start time (sec)[1]") == 140);
    CHECK(number_in(header, "image duration (sec)[1]") == 20);
    CHECK(header.at("!matrix size [4]") == "5");
    CHECK(read_file(directory / "out" / "frames.fdef") == "0 140\n1 20\n");
    Bytes records(directory / "out" / "listmode.clm.safir");
    for (int i = 0; i < 4; ++i)
        records.take<std::uint64_t>();
    CHECK(records.take<std::uint64_t>() == (std::uint64_t{1} << 63U | 140'000));
}

TEST_CASE("files that cover no time are exported, with what their version does not tell", "[petlm][export]") {
    const TemporaryDirectory directory;
    auto coverage = coverage_of({});
    coverage.unknown = {"the largest difference of rings"};
    const auto file = write_part(directory, coverage, {});
    for (const auto& format : export_formats()) {
        const std::string options = format == "castor" || format == "stir" ? "" : " --force";
        const Outcome outcome =
            exported(format, file, directory / format,
                     format == "castor" || format == "stir" ? "--scanner" + quoted(directory / "scanner.json")
                                                            : options);
        CAPTURE(format, outcome.out);
        CHECK(outcome.status == 0);
        CHECK_THAT(outcome.out, contains("does not tell the largest difference of rings"));
    }
}
