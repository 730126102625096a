// Dead time of detector units, from what their boards and singles tell, against the truth of the simulator.
#include <cmath>
#include <nlohmann/json.hpp>

#include "daemon/seconds/sums_reader.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/program.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tools/petlm/reconstruction/corrections/module_losses.hpp"

using namespace petacq;
using namespace petacq::test;

TEST_CASE("dead time: boards of several modules around a source off the axis", "[physics]") {
    const TemporaryDirectory directory;
    const std::filesystem::path examples = PETACQ_SOURCE_DIR "/config/examples";
    const std::filesystem::path file = directory / "small.scanner.json";
    std::filesystem::copy_file(examples / "small.scanner.json", file);
    const config::Scanner scanner = config::load_scanner(file);
    auto configuration = nlohmann::json::parse(read_file(examples / "small.json"));
    configuration["pipeline"]["backend"] = "cpu";
    write_file(directory / "daemon.json", configuration.dump());
    std::filesystem::create_directory(directory / "data");
    const auto run = [](const char* program, const std::vector<std::string>& arguments) {
        const Outcome outcome = run_program(program, arguments);
        INFO(outcome.out << outcome.err);
        REQUIRE(outcome.status == 0);
    };
    const auto path = [&](const char* name) { return (directory / name).string(); };
    run(PETCAL_PROGRAM, {"make", "--scanner", file.string(), "--output", path("small.h5")});
    // 0.8 us; the last tag comes 17 ms before the end.
    run(PETSIM_PROGRAM, {"--scanner",
                         file.string(),
                         "--calibration",
                         path("small.h5"),
                         "--seed",
                         "6",
                         "--point",
                         "12,-9,8,60",
                         "--dead-time-ticks",
                         "51200",
                         "--tag-dead-time",
                         "3:0.03",
                         "--silent-unit",
                         "5.1@0-10",
                         "--duration-s",
                         "0.137",
                         "--write",
                         path("run.pcap"),
                         "--summary",
                         path("summary.json")});
    run(PETACQD_PROGRAM, {"--config", path("daemon.json"), "--replay", path("run.pcap"), "--run", "run"});

    const petlm::ExportSource source(directory / "data/run");
    std::string why;
    const auto losses = petlm::PairLosses::of(source, source.coverage(), scanner, why);
    INFO(why);
    REQUIRE(losses);
    REQUIRE_FALSE(losses->dead_time().factor.empty());
    daemon::SecondsReader seconds(directory / "data/run/seconds.plm");
    daemon::SumsReader sums(seconds, scanner.geometry);
    double found = 0;
    double all = 0;
    while (seconds.next()) {
        const gpu::IntervalSums& second = sums.read();
        for (std::uint32_t i = 0; i < scanner.geometry.crystal_count(); ++i) {
            const double singles = 0.0 + second.unpaired[i] + second.grouped[i];
            found += singles;
            all += singles / std::sqrt(losses->seen(i, i));
        }
    }
    const auto total = nlohmann::json::parse(read_file(path("summary.json"))).at("total");
    const double truth = total.at("hits_in_dead_time").get<double>() /
                         (total.at("hits").get<double>() - total.at("hits_silenced").get<double>());
    CAPTURE(truth, 1 - found / all, losses->dead_time().least, losses->dead_time().most);
    CHECK(truth > 0.1);
    CHECK(losses->dead_time().most > 1.2 * losses->dead_time().least);
    CHECK(1 - found / all == Approx(truth).epsilon(0.01));
}
