// A run and its seconds.
#include <nlohmann/json.hpp>

#include "daemon/run/run.hpp"
#include "daemon/seconds/reader.hpp"
#include "tests/daemon/seconds/support.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/configuration.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/files.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

/// Creates runs of the small scanner.
struct Site {
    const TemporaryDirectory directory;
    config::Scanner scanner;

    std::unique_ptr<daemon::Run> start(const std::string& id, const std::string& compression) {
        scanner.geometry = small_scanner();
        scanner.tick_ps = 1e9;
        daemon::RunSetting setting;
        setting.configuration = std::make_shared<const config::Configuration>(configuration_with(
            {{"data_dir", directory.path().string()}, {"listmode", {{"compression", compression}}}}));
        setting.scanner = &scanner;
        daemon::RunRequest request;
        request.id = id;
        return std::make_unique<daemon::Run>(setting, request);
    }
};

nlohmann::json run_json(const daemon::Run& run) {
    return nlohmann::json::parse(read_file(run.path() / daemon::run_file));
}

}  // namespace

TEST_CASE("a run writes its seconds", "[run][seconds]") {
    Site site;
    const std::string compression = GENERATE("none", "zstd");
    const auto run = site.start("good", compression);
    for (std::uint64_t i = 0; i < 3; ++i)
        run->seconds().append(second_number(i));
    std::string failure;
    run->finish({}, failure);
    CHECK(failure.empty());
    const nlohmann::json content = run_json(*run);
    CHECK(content["state"] == "complete");
    CHECK(content["seconds"] ==
          nlohmann::json{{"file", "seconds.plm"}, {"records", 3}, {"write_failed", 0}, {"failure", nullptr}});
    const nlohmann::json& file = content["files"].back();
    CHECK(file["kind"] == "seconds");
    CHECK(file["records"] == 3);
    CHECK(file["first_time"] == second_number(0).range.start);
    CHECK(file["last_time"] == second_number(2).range.start);
    CHECK(file["bytes"] == std::filesystem::file_size(run->path() / daemon::seconds_file));
    daemon::SecondsReader reader(run->path() / daemon::seconds_file);
    const nlohmann::json& description = reader.reader().description();
    CHECK(description["run_id"] == "good");
    CHECK(description["window_mode"] == "single");
    CHECK(description["multiples_policy"] == "RemoveMultiples");
    CHECK(description["modules"] == 3);
    CHECK(reader.reader().header().version == 3);
    std::uint64_t seconds = 0;
    while (reader.next())
        ++seconds;
    CHECK(seconds == 3);
}

TEST_CASE("a run fails if its seconds cannot be written", "[run][seconds]") {
    Site site;
    const auto run = site.start("bad", "none");
    run->seconds().append(second_number(0));
    std::filesystem::remove(run->path() / daemon::seconds_file);
    run->seconds().append(second_number(1));
    REQUIRE(eventually([&] { return !run->write_failure().empty(); }));
    CHECK_THAT(run->write_failure(), contains("seconds.plm"));
    std::string failure;
    run->finish({}, failure);
    CHECK_THAT(failure, contains("seconds.plm"));
    CHECK(run_json(*run)["state"] == "failed");
    CHECK_THAT(run_json(*run)["seconds"]["failure"].get<std::string>(), contains("seconds.plm"));
}
