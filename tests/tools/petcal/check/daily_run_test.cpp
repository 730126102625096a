// Which runs a daily check takes.
#include "tools/petcal/check/daily_run.hpp"

#include "config/base/error.hpp"
#include "daemon/run/directory.hpp"
#include "daemon/seconds/file.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/configuration.hpp"
#include "tests/support/files.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace petacq;
using namespace petacq::test;

TEST_CASE("daily check: a scanner whose pairs of modules do not fit into memory is told so", "[check]") {
    config::Scanner scanner;
    scanner.name = "long";
    scanner.tick_ps = 15.625;
    scanner.frame_version = config::FrameVersion::two;
    scanner.geometry = {20, {1, 1, 256}, {1, 1, 1}, {1, 2, 2}, 5120, 1, 64};
    scanner.dimensions = {32, 1.6, 1.7, 12, 0.4, 0.5, 1};
    REQUIRE(scanner.geometry.bdm_count > petcal::max_checked);
    const TemporaryDirectory run;
    write_file(run / daemon::run_file, nlohmann::json{{"run_id", "long"},
                                                      {"state", "complete"},
                                                      {"configuration", *configuration_with().document},
                                                      {"scanner", config::to_json(scanner)}}
                                           .dump());
    write_file(run / daemon::spectra_file, "");
    daemon::SecondsFile(run / daemon::seconds_file, scanner.geometry, {{"tick_ps", scanner.tick_ps}},
                        config::Compression::none, std::chrono::seconds(1))
        .finish();
    CHECK_THROWS_WITH(petcal::load_daily_run(run.path()),
                      run.path().string() +
                          ": expected a scanner of at most 4096 modules (BDMs), whose pairs "
                          "fit into memory, found 5120");
}
