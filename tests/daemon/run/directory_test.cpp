#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <system_error>

#include "daemon/run/directory.hpp"
#include "tests/daemon/listmode/support.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/faulty_disk.hpp"

using namespace petacq::daemon;
using namespace petacq::test;

namespace {

// 2026-11-20T18:45:00.123Z
std::chrono::system_clock::time_point some_time() {
    return std::chrono::system_clock::time_point(std::chrono::milliseconds(1'795'200'300'123));
}

std::string refusal_of(const std::filesystem::path& data_dir, const std::string& run_id) {
    try {
        RunDirectory::create(data_dir, run_id);
    } catch (const RunDirectoryError& error) {
        return error.what();
    }
    return "not refused";
}

}  // namespace

TEST_CASE("Run ids are plain names", "[listmode][run]") {
    for (const char* good : {"a", "Run_1.2-x", "20261120T184500Z", "a-b", "a..b"})
        CHECK_NOTHROW(check_run_id(good));
    CHECK_NOTHROW(check_run_id(std::string(64, 'x')));
    for (const char* bad : {"", ".", "..", ".hidden", "a/b", "../a", "a b", "a\n", "a\\b", "caf\xC3\xA9",
                            "a*", "-", "--force"}) {
        CHECK_THROWS_AS(check_run_id(bad), RunDirectoryError);
    }
    CHECK_THROWS_AS(check_run_id(std::string(65, 'x')), RunDirectoryError);
    CHECK_THROWS_AS(check_run_id(std::string("a\0b", 3)), RunDirectoryError);
    const TemporaryDirectory data;
    CHECK_THAT(refusal_of(data.path(), "../a"),
               contains("'../a'") && contains("expected 1 to 64 characters"));
    CHECK(std::filesystem::is_empty(data.path()));
}

TEST_CASE("A run id is used once", "[listmode][run]") {
    const TemporaryDirectory data;
    const auto run = RunDirectory::create(data.path(), "first");
    CHECK(run.run_id() == "first");
    CHECK(run.path() == data / "first");
    CHECK(std::filesystem::is_directory(run.path()));
    write_file(run.file("coincidences.plm"), "data");
    CHECK_THAT(refusal_of(data.path(), "first"), contains("run id 'first' already used"));
    CHECK(read_file(run.file("coincidences.plm")) == "data");
    write_file(data / "plain", "");
    CHECK_THAT(refusal_of(data.path(), "plain"), contains("already used"));
    REQUIRE(::symlink("nowhere", (data / "link").c_str()) == 0);
    CHECK_THAT(refusal_of(data.path(), "link"), contains("already used"));
}

TEST_CASE("Without an id the time makes one", "[listmode][run]") {
    const TemporaryDirectory data;
    CHECK(run_id_from(some_time()) == "20261120T184500Z");
    CHECK(RunDirectory::create(data.path(), some_time()).run_id() == "20261120T184500Z");
    CHECK(RunDirectory::create(data.path(), some_time()).run_id() == "20261120T184500Z-2");
    CHECK(RunDirectory::create(data.path(), some_time()).run_id() == "20261120T184500Z-3");
    CHECK_NOTHROW(check_run_id("20261120T184500Z-3"));
}

TEST_CASE("An unusable data directory is named with the reason", "[listmode][run]") {
    const TemporaryDirectory data;
    CHECK_THAT(refusal_of(data / "absent", "r"),
               contains("data directory") && contains("absent: No such file"));
    write_file(data / "file", "");
    CHECK_THAT(refusal_of(data / "file", "r"), contains("file: not a directory"));
    if (::geteuid() != 0) {
        std::filesystem::create_directory(data / "locked");
        REQUIRE(::chmod((data / "locked").c_str(), 0500) == 0);
        CHECK_THAT(refusal_of(data / "locked", "r"), contains("Permission denied"));
    }
}

TEST_CASE("run.json is replaced as a whole", "[listmode][run]") {
    const TemporaryDirectory data;
    const auto run = RunDirectory::create(data.path(), "r");
    write_json_atomically(run.file(run_file), {{"state", "running"}, {"note", "bad \xFF byte"}});
    const auto at_start = nlohmann::json::parse(read_file(run.file(run_file)));
    CHECK(at_start["state"] == "running");
    CHECK(at_start["note"] == "bad \xEF\xBF\xBD byte");
    write_json_atomically(run.file(run_file), {{"state", "complete"}});
    CHECK(nlohmann::json::parse(read_file(run.file(run_file))) == nlohmann::json{{"state", "complete"}});
    // The directory holds nothing else.
    CHECK(std::distance(std::filesystem::directory_iterator(run.path()), {}) == 1);
}

TEST_CASE("A run.json that cannot be written leaves the one before", "[listmode][run]") {
    const TemporaryDirectory data;
    const auto file = data / "run.json";
    std::filesystem::create_directories(file / "in the way");
    CHECK_THROWS_AS(write_json_atomically(file, {{"state", "complete"}}), std::system_error);
    CHECK(std::filesystem::is_directory(file));
    CHECK(std::distance(std::filesystem::directory_iterator(data.path()), {}) == 1);
    CHECK_THROWS_AS(write_json_atomically(data / "no/run.json", {}), std::system_error);
}

TEST_CASE("A run.json that the disk refuses leaves the one before", "[listmode][run]") {
    const TemporaryDirectory data;
    const auto run = RunDirectory::create(data.path(), "r");
    write_json_atomically(run.file(run_file), {{"state", "running"}});
    const std::string before = read_file(run.file(run_file));
    FaultyDisk disk;
    disk.take(10);
    CHECK_THROWS_AS(write_json_atomically(run.file(run_file), {{"state", "complete"}}), std::system_error);
    CHECK(read_file(run.file(run_file)) == before);
    CHECK(std::distance(std::filesystem::directory_iterator(run.path()), {}) == 1);
}

TEST_CASE("A run directory whose name cannot be synced is refused", "[listmode][run]") {
    const TemporaryDirectory data;
    FaultyDisk disk;
    disk->sync_directory = [](int) {
        errno = EIO;
        return -1;
    };
    CHECK_THAT(refusal_of(data.path(), "r"), contains("data directory") && contains("sync failed"));
}
