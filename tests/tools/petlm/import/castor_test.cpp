// Headers of CASToR as programs write them.
#include "daemon/coverage/coverage.hpp"
#include "daemon/coverage/unknown.hpp"
#include "tests/tools/petlm/import/support.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

/// Milliseconds of two events; a header with these times.
void write_castor(const std::filesystem::path& stem, std::uint32_t first_ms, std::uint32_t last_ms,
                  const std::string& start, const std::string& duration) {
    Packed events;
    events.put(first_ms, std::uint32_t{1}, std::uint32_t{2}).put(last_ms, std::uint32_t{1}, std::uint32_t{2});
    write_file(stem.string() + ".cdf", events.bytes());
    write_file(stem.string() + ".cdh", "Data filename: " + stem.filename().string() +
                                           ".cdf\nNumber of events: 2\nData mode: list-mode\nData type: PET\n"
                                           "Start time (s): " +
                                           start + "\nDuration (s): " + duration + "\nScanner name: x\n");
}

}  // namespace

TEST_CASE("import: six digits of a castor header are as good as they are", "[petlm][import]") {
    const TemporaryDirectory directory;
    const auto scanner = scanner_file(directory);
    const auto outcome_of = [&](std::uint32_t first_ms, std::uint32_t last_ms, const std::string& start,
                                const std::string& duration, const std::string& options = "") {
        write_castor(directory / "a", first_ms, last_ms, start, duration);
        Outcome outcome =
            imported("castor", directory / "a.cdh", scanner, directory / "a.plm", options + " --force");
        UNSCOPED_INFO(outcome.out);
        return outcome;
    };
    // 1234567.89 s were written as 1.23457e+06: up to 5 s off.
    const Outcome widened = outcome_of(1'234'567'890, 1'234'599'999, "1.23457e+06", "30");
    CHECK(widened.status == 0);
    CHECK_THAT(widened.out, contains("header have six digits; events are at 1234567890 to"));
    const auto interval = coverage_in(directory / "a.plm")["intervals"][0];
    const auto ticks = [](double ms) { return static_cast<std::uint64_t>(std::ceil(ms * 1e9 / 15.625)); };
    CHECK(interval[0] == ticks(1'234'567'890));
    CHECK(interval[1] == ticks(1'234'600'000));
    // The delayeds may be at other times.
    write_castor(directory / "d", 1'234'566'000, 1'234'599'000, "1.23457e+06", "30");
    CHECK(outcome_of(1'234'567'890, 1'234'599'999, "1.23457e+06", "30",
                     "--delayeds" + quoted(directory / "d.cdh"))
              .status == 0);
    CHECK(coverage_in(directory / "a.plm")["intervals"][0][0] == ticks(1'234'566'000));

    const Outcome exact = outcome_of(1'234'571'000, 1'234'590'000, "1.23457e+06", "30");
    CHECK(exact.status == 0);
    CHECK_THAT(exact.out, !contains("six digits"));
    CHECK(outcome_of(1'234'564'000, 1'234'599'999, "1.23457e+06", "30").status == 1);  // 6 s before
    CHECK(outcome_of(1'234'567'890, 1'234'599'999, "1234570.0", "30").status == 1);    // more digits
}

TEST_CASE("import: the isotope of a castor header is the nuclide", "[petlm][import]") {
    const TemporaryDirectory directory;
    const auto scanner = scanner_file(directory);
    const auto coverage_with = [&](const std::string& isotope, const std::string& options = "") {
        write_castor(directory / "a", 5, 6, "0", "1");
        write_file(directory / "a.cdh", read_file(directory / "a.cdh") + isotope);
        const Outcome outcome =
            imported("castor", directory / "a.cdh", scanner, directory / "a.plm", options + " --force");
        CAPTURE(isotope, outcome.out);
        REQUIRE(outcome.status == 0);
        return daemon::coverage_from_json(coverage_in(directory / "a.plm"));
    };
    const daemon::Coverage known = coverage_with("Isotope: F-18\n");
    REQUIRE(known.activity);
    CHECK(known.activity->nuclide == "F-18");
    CHECK(known.activity->half_life_s == Approx(6584.04));
    for (const std::string none : {"", "Isotope: INF\n", "Isotope: unknown\n"}) {
        const daemon::Coverage coverage = coverage_with(none);
        CHECK_FALSE(coverage.activity);
        CHECK(daemon::tells(coverage, daemon::unknown_half_life));
    }
    CHECK_FALSE(daemon::tells(coverage_with("Isotope: Fe-52\n"), daemon::unknown_half_life));
    const daemon::Coverage said =
        coverage_with("Isotope: Fe-52\n", "--nuclide Fe-52 --half-life-s 29790 --branching-ratio 0.55");
    CHECK(said.activity->nuclide == "Fe-52");
    CHECK(daemon::tells(said, daemon::unknown_half_life));
}
