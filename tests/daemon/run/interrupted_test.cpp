// Runs whose writer is gone: found, reported, acknowledged.
#include "daemon/run/interrupted.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <optional>

#include "daemon/run/directory.hpp"
#include "daemon/run/list.hpp"
#include "daemon/space/reserve.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/faulty_disk.hpp"
#include "tests/support/files.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace petacq::daemon;
using namespace petacq::test;
using nlohmann::json;

namespace {

json running(const std::string& run, const std::string& start) {
    return {{"run_id", run}, {"start_utc", start}, {"state", "running"}, {"note", "n"}};
}

/// The directory of a run as a killed daemon leaves it.
std::filesystem::path interrupted(const TemporaryDirectory& data, const std::string& run,
                                  const std::string& start = "2026-03-01T00:00:00.000Z") {
    const RunDirectory directory = RunDirectory::create(data.path(), run);
    { const RunReserve reserve(directory.path()); }
    write_json_atomically(directory.file(run_file), running(run, start));
    return directory.path();
}

std::string ids(const std::vector<InterruptedRun>& runs) {
    std::string text;
    for (const InterruptedRun& run : runs)
        text += run.id + " ";
    return text;
}

std::string refusal(const TemporaryDirectory& data, const std::string& run, const std::string& current = "") {
    try {
        acknowledge_interrupted(data.path(), run, current);
    } catch (const RunDirectoryError& error) {
        return error.what();
    }
    return "";
}

}  // namespace

TEST_CASE("a run is interrupted if nobody writes it and its run.json is not final", "[interrupted]") {
    const TemporaryDirectory data;
    CHECK(find_interrupted(data.path(), "").empty());
    interrupted(data, "second", "2026-03-02T00:00:00.000Z");
    interrupted(data, "first");
    interrupted(data, "mine");
    // Its run.json is final, and the kill came before .reserve went.
    write_json_atomically(interrupted(data, "done") / run_file, {{"state", "complete"}});
    // Has no run.json: the start was interrupted.
    std::filesystem::remove(interrupted(data, "no-description") / run_file);
    write_file(interrupted(data, "damaged") / run_file, "{");
    // A run without .reserve: a tool has made it.
    const RunDirectory other = RunDirectory::create(data.path(), "other");
    write_json_atomically(other.file(run_file), {{"state", "complete"}});
    write_file(data / "file", "");

    const auto found = find_interrupted(data.path(), "mine");
    CHECK(ids(found) == "damaged no-description first second ");
    CHECK(found.back() == InterruptedRun{"second", data / "second", "2026-03-02T00:00:00.000Z"});
    CHECK_THROWS_AS(find_interrupted(data / "nowhere", ""), RunDirectoryError);
}

TEST_CASE("a run that another process writes is not interrupted, until that process is killed",
          "[interrupted]") {
    const TemporaryDirectory data;
    const RunDirectory directory = RunDirectory::create(data.path(), "r");
    write_json_atomically(directory.file(run_file), running("r", "2026-03-01T00:00:00.000Z"));
    int ready[2];
    REQUIRE(::pipe(ready) == 0);
    const pid_t writer = ::fork();
    if (writer == 0) {
        const RunReserve reserve(directory.path());
        static_cast<void>(::write(ready[1], "x", 1));
        for (;;)
            ::pause();
    }
    char byte = 0;
    REQUIRE(::read(ready[0], &byte, 1) == 1);
    CHECK(is_being_written(directory.path()));
    CHECK(find_interrupted(data.path(), "").empty());
    CHECK(RunList(data.path()).page(9, std::nullopt, "")["runs"][0]["state"] == "running");
    CHECK(refusal(data, "r") == "run 'r' is in progress");
    ::kill(writer, SIGKILL);
    ::waitpid(writer, nullptr, 0);
    CHECK_FALSE(is_being_written(directory.path()));
    CHECK(ids(find_interrupted(data.path(), "")) == "r ");
    CHECK(RunList(data.path()).page(9, std::nullopt, "")["runs"][0]["state"] == "interrupted");
    ::close(ready[0]);
    ::close(ready[1]);
}

TEST_CASE("a run that ends in order leaves no .reserve", "[interrupted]") {
    const TemporaryDirectory data;
    const RunDirectory directory = RunDirectory::create(data.path(), "r");
    RunReserve reserve(directory.path());
    CHECK(std::filesystem::file_size(directory.file(reserve_file)) == RunReserve::room);
    reserve.make_room();
    CHECK(std::filesystem::file_size(directory.file(reserve_file)) == 0);
    CHECK(is_being_written(directory.path()));
    reserve.remove();
    CHECK_FALSE(std::filesystem::exists(directory.file(reserve_file)));
    CHECK_FALSE(is_being_written(directory.path()));
}

TEST_CASE("an acknowledged run is reported no more", "[interrupted]") {
    const TemporaryDirectory data;
    const auto run = interrupted(data, "r");
    CHECK(refusal(data, "r").empty());
    CHECK(find_interrupted(data.path(), "").empty());
    CHECK_FALSE(std::filesystem::exists(run / reserve_file));
    const json content = json::parse(read_file(run / run_file));
    CHECK(content["state"] == "interrupted");
    CHECK(content["note"] == "n");
    CHECK(content["acknowledged_utc"].is_string());
    CHECK(RunList(data.path()).page(9, std::nullopt, "")["runs"][0]["state"] == "interrupted");

    // Without a readable run.json, too.
    write_file(interrupted(data, "damaged") / run_file, "{");
    CHECK(refusal(data, "damaged").empty());
    CHECK(find_interrupted(data.path(), "").empty());

    CHECK(refusal(data, "r") == "run 'r' was not interrupted, or somebody has acknowledged it");
    CHECK(refusal(data, "none").starts_with("there is no run 'none' in "));
    CHECK(refusal(data, "../r").starts_with("run id "));
    interrupted(data, "mine");
    CHECK(refusal(data, "mine", "mine") == "run 'mine' is in progress");
}

TEST_CASE("a run whose acknowledgement cannot be written is still reported", "[interrupted]") {
    const TemporaryDirectory data;
    interrupted(data, "r");
    FaultyDisk disk;
    disk.take(10);
    CHECK_THROWS_AS(acknowledge_interrupted(data.path(), "r", ""), std::system_error);
    CHECK(ids(find_interrupted(data.path(), "")) == "r ");
}
