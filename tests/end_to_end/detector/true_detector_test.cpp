// A detector that differs from the daemon's calibration: what the daemon counts and writes is still exact.
#include "tests/end_to_end/daemon_fixture.hpp"
#include "tests/end_to_end/truth_counts.hpp"
#include "tests/support/catch.hpp"

using namespace petacq::test;
using nlohmann::json;

TEST_CASE("a run of a true detector agrees with its truth under any calibration", "[e2e][detector]") {
    const Site site;
    const auto file = [&](const char* name) { return (site.directory() / name).string(); };
    const Outcome made = run_program(
        PETSIM_PROGRAM, {"make-detector", "--scanner", site.scanner(), "--output", file("detector.h5"),
                         "--calibration", file("best.h5"), "--seed", "4", "--dead", "0.01", "--noisy", "0.01",
                         "--efficiency-spread", "0.1", "--nonlinearity", "0.05", "--crosstalk", "0.05"});
    INFO(made.err);
    REQUIRE(made.status == 0);
    const bool best = GENERATE(false, true);
    if (best)
        std::filesystem::copy_file(file("best.h5"), site.calibration(),
                                   std::filesystem::copy_options::overwrite_existing);
    const json summary = simulate(site, {"--detector",
                                         file("detector.h5"),
                                         "--cylinder",
                                         "0,0,0,10,20,3",
                                         "--sources",
                                         "4",
                                         "--efficiency",
                                         "0.4",
                                         "--duration-s",
                                         "0.5",
                                         "--block-pile-up-ns",
                                         "200",
                                         "--dead-time-ticks",
                                         "30000",
                                         "--dead-time-model",
                                         "paralysable",
                                         "--corrupt",
                                         "x:0.01",
                                         "--write",
                                         file("stream.pcap")});
    const Outcome outcome = run_program(PETACQD_PROGRAM, {"--config", site.configuration(), "--replay",
                                                          file("stream.pcap"), "--run", "true"});
    INFO(outcome.err);
    REQUIRE(outcome.status == 0);
    check_ledger(site.run_json("true")["ledger"], summary, count_truth(file("petsim.truth")));

    const Outcome compared = run_program(
        PETSIM_PROGRAM,
        {"compare", "--json", "--truth", file("petsim.truth"), "--run", site.run("true").string()});
    INFO(compared.out << compared.err);
    CHECK(compared.status == 0);
    const json comparison = json::parse(compared.out);
    CHECK(comparison["agrees"] == true);
    CHECK(comparison["detectable"] > 1000);
    const json calibration = comparison["calibration"];
    const double right = calibration["right"].get<double>() / calibration["frames"].get<double>();
    CHECK((best ? right > 0.88 : right > 0.6 && right < 0.88));
    CHECK((best ? calibration["time_rms"] < 0.01 : calibration["time_rms"] > 20));
    CHECK((best ? calibration["energy_rms"] < 0.01 : calibration["energy_rms"] > 0.05));
}
