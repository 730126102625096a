// Refusals: their messages and exit statuses.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>

#include "tests/end_to_end/daemon_fixture.hpp"
#include "tests/support/catch.hpp"

using namespace petacq::test;
using nlohmann::json;

namespace {

constexpr int exit_usage = 64;
constexpr int exit_io = 74;
constexpr int exit_configuration = 78;

Outcome petacqd(const Site& site, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"--config", site.configuration()});
    return run_program(PETACQD_PROGRAM, more);
}

json one_socket(std::uint16_t port) {
    return {{"receive", {{"sockets", json::array({{{"address", "127.0.0.1"}, {"port", port}}})}}}};
}

}  // namespace

TEST_CASE("a second daemon is refused with a message", "[e2e][refusals]") {
    Site site;
    Daemon first(site);

    const Outcome same_socket = petacqd(site);
    INFO(same_socket.err);
    CHECK(same_socket.status == exit_io);
    CHECK(contains(same_socket.err, "another petacqd is listening on " + site.socket().string()));

    const Site elsewhere(one_socket(first.ports().front()));
    const Outcome same_port = petacqd(elsewhere);
    INFO(same_port.err);
    CHECK(same_port.status == exit_io);
    CHECK(contains(same_port.err, "127.0.0.1:" + std::to_string(first.ports().front())));
    CHECK(contains(same_port.err, "in use"));
    CHECK_FALSE(std::filesystem::exists(elsewhere.socket()));

    // The first daemon still works.
    CHECK(first.status()["state"] == "idle");
    CHECK(petctl(site, {"status"}).status == 0);
    CHECK(first.terminate() == 0);
}

TEST_CASE("a file or a stale socket at the path of the control socket", "[e2e][refusals]") {
    Site site;
    SECTION("a file is left alone") {
        write_file(site.socket(), "precious");
        const Outcome outcome = petacqd(site);
        INFO(outcome.err);
        CHECK(outcome.status == exit_io);
        CHECK(contains(outcome.err, "something that is not a socket is there"));
        CHECK(read_file(site.socket()) == "precious");
    }
    SECTION("a stale socket is replaced") {
        {
            Daemon killed(site, "killed");
            killed.process().signal(SIGKILL);
            killed.process().wait();
        }
        REQUIRE(std::filesystem::is_socket(site.socket()));
        Daemon daemon(site);
        CHECK(contains(daemon.log(), "removed the stale socket of an earlier daemon"));
        CHECK(daemon.terminate() == 0);
        CHECK_FALSE(std::filesystem::exists(site.socket()));
    }
    SECTION("its directory must be there") {
        site.configure({{"control", {{"socket", "nowhere/control.sock"}}}});
        const Outcome outcome = petacqd(site);
        INFO(outcome.err);
        CHECK(outcome.status == exit_io);
        CHECK(contains(outcome.err,
                       "directory " + (site.directory() / "nowhere").string() + " does not exist"));
    }
}

TEST_CASE("refused starts and stops", "[e2e][refusals]") {
    const Site site;
    Daemon daemon(site);
    const auto refused = [&](std::vector<std::string> arguments, const std::string& why) {
        const Outcome outcome = petctl(site, std::move(arguments));
        INFO(outcome.err);
        CHECK(outcome.status == 1);
        CHECK(outcome.out.empty());
        CHECK(contains(outcome.err, why));
    };
    refused({"stop"}, "no run is in progress");
    refused({"start", "--run", "../up"}, "run id '../up'");
    refused({"start", "--run", "a b"}, "expected 1 to 64 characters");
    refused({"start", "--run", ".hidden"}, "no . or - in front");
    refused({"start", "--run", std::string(65, 'x')}, "1 to 64 characters");
    std::filesystem::create_directory(site.run("taken"));
    refused({"start", "--run", "taken"}, "run id 'taken' already used");
    CHECK(std::filesystem::is_empty(site.run("taken")));
    CHECK(daemon.status()["state"] == "idle");

    CHECK(petctl(site, {"start", "--run", "first"}).status == 0);
    refused({"start", "--run", "second"}, "run first is in progress; stop it first");
    CHECK_FALSE(std::filesystem::exists(site.run("second")));
    CHECK(petctl(site, {"stop"}).status == 0);
    refused({"start", "--run", "first"}, "run id 'first' already used");
    CHECK(site.run_json("first")["state"] == "complete");
    refused({"stop"}, "no run is in progress");

    // A run without a name gets one; an empty run is complete.
    const json unnamed = daemon.call("start");
    CHECK(daemon.stop()["run"] == unnamed["run"]);
    CHECK(run_program(PETLM_PROGRAM, {"verify", site.run(unnamed["run"]).string()}).status == 0);

    std::filesystem::rename(site.directory() / "data", site.directory() / "moved");
    refused({"start"}, "No such file or directory");
    refused({"start", "--run", "r"}, "data directory " + (site.directory() / "data").string());
    write_file(site.directory() / "data", "a file");
    refused({"start", "--run", "r"}, "not a directory");
    std::filesystem::remove(site.directory() / "data");
    std::filesystem::rename(site.directory() / "moved", site.directory() / "data");
    CHECK(petctl(site, {"start", "--run", "again"}).status == 0);
    CHECK(petctl(site, {"stop"}).status == 0);
    CHECK(daemon.terminate() == 0);
    CHECK(petctl(site, {"status"}).status == 69);
}

TEST_CASE("wrong command lines", "[e2e][refusals]") {
    for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
             {}, {"--config"}, {"--confg", "x"}, {"--config", "x", "surplus"}}) {
        const Outcome outcome = run_program(PETACQD_PROGRAM, arguments);
        CHECK(outcome.status == exit_usage);
        CHECK_FALSE(outcome.err.empty());
    }
    CHECK(run_program(PETACQD_PROGRAM, {"--help"}).status == 0);
    CHECK(contains(run_program(PETACQD_PROGRAM, {"--version"}).out, "petacqd 1."));
}

TEST_CASE("invalid configuration, scanner and calibration", "[e2e][refusals]") {
    Site site;
    const Outcome good = petacqd(site, {"--check"});
    CHECK(good.status == 0);
    CHECK(contains(good.out, "are good"));
    CHECK(contains(petacqd(site, {"--check", "--verbose"}).out,
                   "nothing is lost while the process stands still for"));
    CHECK(good.err.empty());
    CHECK_FALSE(std::filesystem::exists(site.socket()));

    // --check prints the same message as a start.
    const auto refused = [&](const std::vector<std::string>& why) {
        for (const std::vector<std::string>& more : std::vector<std::vector<std::string>>{{"--check"}, {}}) {
            const Outcome outcome = petacqd(site, more);
            INFO(outcome.err);
            CHECK(outcome.status == exit_configuration);
            for (const std::string& part : why)
                CHECK(contains(outcome.err, part));
        }
        CHECK_FALSE(std::filesystem::exists(site.socket()));
    };
    site.configure({{"coincidence", {{"window_ticks", "5 ns"}}}});
    refused({"petacqd.json: /coincidence/window_ticks: expected an integer", "found the string \"5 ns\""});
    site.configure({{"receive", {{"bach_count", 3}}}});
    refused({"/receive/bach_count: unknown key", "batch_count"});
    site.configure({{"receive", {{"batch_count", 1}}}});
    refused({"/receive/batch_count: expected"});
    site.configure({{"coincidence", {{"min_module_difference", 7}}}});
    refused({"min_module_difference"});
    write_file(site.configuration(), "{\"scanner\": ");
    refused({"petacqd.json: not JSON"});
    std::filesystem::remove(site.configuration());
    refused({"petacqd.json"});

    site.configure({{"data_dir", "nowhere"}});
    refused({"data directory " + (site.directory() / "nowhere").string() + ": No such file"});
    site.configure({{"data_dir", "small.h5"}});
    refused({"small.h5: not a directory"});
    site.configure({{"scanner", "other.json"}});
    refused({"other.json"});
    site.configure({{"calibration", "other.h5"}});
    refused({"other.h5"});
    write_file(site.directory() / "other.h5", "not HDF5 at all");
    refused({"other.h5", "HDF5"});

    // The calibration of another scanner.
    json scanner = json::parse(read_file(site.scanner()));
    scanner["geometry"]["channels"] = 8;
    scanner["geometry"]["bdm_count"] = 32;
    scanner["dimensions"]["ring_radius_mm"] = 50;
    for (int bdm = 24; bdm < 32; ++bdm)
        scanner["sources"][3]["bdms"].push_back(bdm);
    write_file(site.directory() / "other.scanner.json", scanner.dump());
    const Outcome made =
        run_program(PETCAL_PROGRAM, {"make", "--scanner", (site.directory() / "other.scanner.json").string(),
                                     "--output", (site.directory() / "wide.h5").string()});
    INFO(made.err);
    REQUIRE(made.status == 0);
    site.configure({{"calibration", "wide.h5"}});
    refused({"wide.h5", "expected u8[24][6][4096]", "found u8[32][6][4096]"});
    site.configure({{"calibration", "wide.h5"}, {"scanner", "other.scanner.json"}});
    CHECK(petacqd(site, {"--check"}).status == 0);
}

TEST_CASE("a replay with an invalid run id is a usage error", "[e2e][refusals]") {
    const Site site;
    for (const char* id : {"a/b", "", ".hidden"}) {
        const Outcome refused = petacqd(site, {"--replay", "none.pcap", "--run", id});
        INFO(refused.err);
        CHECK(refused.status == exit_usage);
        CHECK(contains(refused.err, "expected 1 to 64 characters"));
    }
}
