// petacqd --check: what it says about the host.
#include <arpa/inet.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "tests/end_to_end/daemon_fixture.hpp"

namespace petacq::test {

namespace {

using nlohmann::json;

Outcome check(const Site& site, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"--check", "--verbose", "--config", site.configuration()});
    return run_program(PETACQD_PROGRAM, more);
}

/// A bound socket of this process.
class Taken {
  public:
    explicit Taken(int type) : descriptor_(::socket(AF_INET, type, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        REQUIRE(::bind(descriptor_, reinterpret_cast<const sockaddr*>(&address), size) == 0);
        if (type == SOCK_STREAM) REQUIRE(::listen(descriptor_, 1) == 0);
        REQUIRE(::getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
        port = ntohs(address.sin_port);
    }
    Taken(const Taken&) = delete;
    Taken& operator=(const Taken&) = delete;
    ~Taken() { ::close(descriptor_); }

    std::uint16_t port = 0;

  private:
    int descriptor_;
};

/// A program without CAP_NET_ADMIN, which would get any buffer.
Outcome run_without_net_admin(const std::vector<std::string>& arguments) {
    Outcome outcome;
    // Threads have capabilities of their own, and leave them to the programs that they start.
    std::thread([&] {
        ::prctl(PR_CAPBSET_DROP, CAP_NET_ADMIN, 0, 0, 0);  // fails if this process has none to drop
        outcome = run_program(PETACQD_PROGRAM, arguments);
    }).join();
    return outcome;
}

bool may_exceed_rmem_max() {
    const int fd = ::socket(AF_INET, SOCK_DGRAM, 0);
    const int bytes = 1073741823;
    const bool may = ::setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes) == 0;
    ::close(fd);
    return may;
}

json at_port(std::uint16_t port) {
    return {{"receive", {{"sockets", {{{"address", "127.0.0.1"}, {"port", port}}}}}}};
}

}  // namespace

TEST_CASE("check: a host on which all is well", "[e2e][check]") {
    const Site site;
    const Outcome outcome = check(site);
    INFO(outcome.out);
    CHECK(outcome.status == 0);
    for (const char* part : {"good     control socket: ", "good     receive: 127.0.0.1:0: free",
                             "good     http: ", "socket buffers: ", "data directory: ", "disk speed: ",
                             "B/s (--rate", "disk space: ", "0 problems, "})
        CHECK(contains(outcome.out, part));
    CHECK(std::filesystem::is_empty(site.directory() / "data"));
    CHECK_FALSE(std::filesystem::exists(site.socket()));
}

TEST_CASE("check: shows what there is to do, and the rest for who asks", "[e2e][check]") {
    const Site site(json{{"receive", {{"receive_buffer_bytes", 1073741823}}}});
    const Outcome calm = run_without_net_admin({site.configuration(), "--check"});
    INFO(calm.out << calm.err);
    CHECK(calm.status == 0);
    CHECK(calm.out.starts_with(site.configuration() + ": configuration, scanner small "));
    CHECK(contains(calm.out, "warning  socket buffers: "));
    CHECK(contains(calm.out, "0 problems, "));
    CHECK(contains(calm.out, "; --verbose shows all "));
    for (const char* part : {"good     ", "note     ", "frames/s", "\x1b"})
        CHECK_FALSE(contains(calm.out, part));
    CHECK(contains(run_program(PETACQD_PROGRAM, {site.configuration(), "--check", "--rate", "1e6"}).out,
                   "at 1e+06 frames/s nothing is lost while"));

    const Outcome found = run_without_net_admin({site.configuration(), "--check", "--json"});
    const json document = json::parse(found.out);
    CHECK(document["scanner"]["name"] == "small");
    CHECK(document["problems"] == 0);
    CHECK(document["warnings"] >= 1);
    CHECK(document["buffers"]["process_stands_still_s"] > 0);
    const auto& findings = document["findings"];
    CHECK(std::count_if(findings.begin(), findings.end(), [](const json& finding) {
              return finding["subject"] == "socket buffers" && finding["level"] == "warning" &&
                     contains(finding["fix"].get<std::string>(), "rmem_max=1073741823");
          }) == 1);
    CHECK(std::any_of(findings.begin(), findings.end(),
                      [](const json& finding) { return finding["level"] == "good"; }));
    CHECK(run_program(PETACQD_PROGRAM, {site.configuration(), "--json"}).status == 64);
    CHECK(run_program(PETACQD_PROGRAM, {site.configuration(), "--config", site.configuration(), "--check"})
              .status == 64);
}

TEST_CASE("check: modules that no condition lets pair, and conditions that leave no pair", "[e2e][check]") {
    const TemporaryDirectory directory;
    json scanner = json::parse(R"({
        "name": "lone", "tick_ps": 10, "position_size": 16,
        "module_types": [{"name": "m", "layers": [
            {"y": {"count": 3, "pitch_mm": 3}, "z": {"count": 3, "pitch_mm": 3}, "length_mm": 10}]}],
        "modules": [{"type": "m", "group": "ring", "ring": {"count": 8, "radius_mm": 25}},
                    {"type": "m", "group": "outside", "panel": {"radius_mm": 60, "count": 2, "pitch_mm": 10}}],
        "good_pairs": {"between": [["ring", "ring"]], "cylinder": {"radius_mm": 4, "length_mm": 10}}})");
    json difference;
    const auto checked = [&] {
        write_file(directory / "lone.scanner.json", scanner.dump());
        const Site site(json{{"sources", {{"accept_any", true}}},
                             {"coincidence", {{"min_module_difference", difference}}}},
                        directory / "lone.scanner.json");
        return check(site);
    };
    const Outcome some = checked();
    INFO(some.out << some.err);
    CHECK(some.status == 0);
    CHECK(contains(some.out,
                   "warning  good pairs: 2 of 10 modules of scanner \"lone\" can have no coincidence "
                   "with any other: 8, 9"));
    scanner["modules"][0]["along_z"] = {{"middle_mm", 40}};
    const Outcome none = checked();
    INFO(none.out << none.err);
    CHECK(none.status == 78);
    CHECK(contains(none.err,
                   "small.scanner.json: /good_pairs: expected conditions that some pair of crystals meets"));
    scanner.erase("good_pairs");
    difference = 4;
    scanner["modules"] = {
        {{"type", "m"}, {"group", "ring"}, {"arc", {{"count", 4}, {"of", 8}, {"radius_mm", 25}}}}};
    const Outcome apart = checked();
    INFO(apart.out << apart.err);
    CHECK(apart.status == 78);
    CHECK(contains(apart.err, "petacqd.json: /coincidence/min_module_difference: expected"));
}

TEST_CASE("check: numbers of BDMs with large gaps", "[e2e][check]") {
    const TemporaryDirectory directory;
    json scanner = json::parse(R"({
        "name": "far", "tick_ps": 10, "frame_version": 2, "position_size": 16,
        "module_types": [{"name": "m", "layers": [
            {"y": {"count": 8, "pitch_mm": 4}, "z": {"count": 8, "pitch_mm": 4}, "length_mm": 10}]}],
        "modules": [{"type": "m", "ring": {"count": 4, "radius_mm": 25}}]})");
    const auto checked = [&](std::uint32_t highest) {
        json units;
        for (std::uint32_t m = 0; m < 4; ++m)
            units.push_back({{"bdm", m < 3 ? m : highest}, {"du", 0}, {"module", m}});
        scanner["channel_map"] = {{"units", units}};
        write_file(directory / "far.scanner.json", scanner.dump());
        const Site site(json{{"sources", {{"accept_any", true}}}}, directory / "far.scanner.json");
        const Outcome outcome = check(site);
        INFO(outcome.out << outcome.err);
        CHECK(outcome.status == 0);
        return outcome.out;
    };
    CHECK_FALSE(contains(checked(300), "channel map"));
    CHECK(contains(checked(4095),
                   "warning  channel map: tables have room for 4096 BDMs, as the highest "
                   "number is 4095; 4 exist. 17 MiB of the calibration are empty"));
}

TEST_CASE("check: delayed gammas that come long after their pairs", "[e2e][check]") {
    const auto checked = [](std::uint64_t delay_ticks, bool pairs) {
        const Site site(json{{"gammas",
                              {{"lower_keV", 700},
                               {"upper_keV", 1500},
                               {"before_ticks", 1000},
                               {"after_ticks", 1000},
                               {"policy", "all"},
                               {"delay_ticks", delay_ticks}}},
                             {"listmode", {{"write_singles", true}, {"write_coincidences", pairs}}}});
        const Outcome outcome = check(site);
        INFO(outcome.out << outcome.err);
        CHECK(outcome.status == 0);
        return outcome.out;
    };
    // Ticks of 15.625 ps: a second is 64e9.
    CHECK_FALSE(contains(checked(64'000'000'000, true), "gammas.delay_ticks"));
    CHECK(contains(checked(128'000'000'000, true),
                   "warning  gammas.delay_ticks: delayed gammas come 2 s after their pairs"));
    CHECK_FALSE(contains(checked(128'000'000'000, false), "gammas.delay_ticks"));
}

TEST_CASE("check: the disk is judged by a rate", "[e2e][check]") {
    const Site site(json{{"health", {{"min_disk_time_s", 3600}}}});
    const Outcome outcome = check(site, {"--rate", "1e12"});
    INFO(outcome.out);
    CHECK(outcome.status == 0);
    CHECK(contains(outcome.out, "warning  disk speed: "));
    CHECK(contains(outcome.out, "warning  disk space: "));
    CHECK(contains(outcome.out, "to do: a faster disk for data_dir"));
    CHECK(contains(check(site, {"--rate", "1"}).out, "good     disk speed: "));
}

TEST_CASE("check: ports that other programs hold", "[e2e][check]") {
    const Taken udp(SOCK_DGRAM);
    const Taken tcp(SOCK_STREAM);
    json patch = at_port(udp.port);
    patch["http"]["listen"] = "127.0.0.1:" + std::to_string(tcp.port);
    const Site site(patch);
    const Outcome outcome = check(site);
    INFO(outcome.out << outcome.err);
    CHECK(outcome.status == 74);
    CHECK(contains(outcome.out, "problem  receive: 127.0.0.1:" + std::to_string(udp.port) + ": taken by "));
    CHECK(contains(outcome.out, "(process " + std::to_string(::getpid()) + " of "));
    CHECK(contains(outcome.out, "sudo ss -ulpn 'sport = :" + std::to_string(udp.port)));
    CHECK(contains(outcome.out, "problem  http: 127.0.0.1:" + std::to_string(tcp.port) + ": taken by "));
    CHECK(contains(outcome.out, "2 problems, "));
    CHECK(contains(outcome.err, "the host is not ready"));
}

TEST_CASE("check: a daemon that is running is no problem, and is not disturbed", "[e2e][check]") {
    Site site;
    Daemon daemon(site);
    daemon.start("r");
    json patch = at_port(daemon.ports().front());
    patch["http"]["listen"] = "127.0.0.1:" + std::to_string(daemon.http_port());
    site.configure(patch);
    Outcome outcome = check(site);
    INFO(outcome.out);
    CHECK(outcome.status == 0);
    CHECK(contains(outcome.out, "in use by the petacqd that is running"));
    CHECK(contains(outcome.out, "not measured while a petacqd is running"));
    // Another configuration cannot have its ports, be they shared among several sockets or not.
    patch["control"]["socket"] = "other.sock";
    for (const int count : {1, 2}) {
        patch["receive"]["sockets"][0]["count"] = count;
        site.configure(patch);
        outcome = check(site);
        INFO(outcome.out);
        CHECK(outcome.status == 74);
        CHECK(
            contains(outcome.out, ": taken by another petacqd, which has another control socket: petacqd "));
    }
    CHECK(daemon.stop()["ledger_closed"] == true);
    CHECK(daemon.terminate() == 0);
}

TEST_CASE("check: a daemon that is running does not hide what is wrong", "[e2e][check]") {
    Site site;
    Daemon daemon(site);
    const Taken udp(SOCK_DGRAM);
    const Taken tcp(SOCK_STREAM);
    json patch = at_port(udp.port);
    patch["http"]["listen"] = "127.0.0.1:" + std::to_string(tcp.port);
    patch["tap"]["socket"] = "petacqd.json";
    site.configure(patch);
    Outcome outcome = check(site);
    INFO(outcome.out);
    CHECK(outcome.status == 74);
    CHECK(contains(outcome.out, "control.sock: a petacqd is running"));
    CHECK(contains(outcome.out, "problem  receive: 127.0.0.1:" + std::to_string(udp.port) + ": taken by "));
    CHECK(contains(outcome.out, "problem  http: 127.0.0.1:" + std::to_string(tcp.port) + ": taken by "));
    CHECK_FALSE(contains(outcome.out, "no petacqd is running"));
    CHECK(contains(outcome.out, "something that is not a socket is there"));
    patch["tap"]["socket"] = "nowhere/tap.sock";
    site.configure(patch);
    outcome = check(site);
    CHECK(contains(outcome.out, "problem  tap socket: directory "));
    CHECK(daemon.terminate() == 0);
}

TEST_CASE("check: addresses, groups and directories that this host does not have", "[e2e][check]") {
    json patch = at_port(0);
    patch["receive"]["sockets"][0]["address"] = "192.0.2.1";  // RFC 5737: of no host
    patch["receive"]["sockets"][1] = {
        {"port", 0}, {"multicast_group", "239.1.2.3"}, {"multicast_interface", "192.0.2.7"}};
    patch["control"]["socket"] = "nowhere/control.sock";
    const Site site(patch);
    const Outcome outcome = check(site);
    INFO(outcome.out);
    CHECK(outcome.status == 74);
    CHECK(contains(outcome.out, "problem  receive: 192.0.2.1:0: Cannot assign requested address"));
    CHECK(contains(outcome.out, "ip -brief address"));
    CHECK(contains(outcome.out, "239.1.2.3 is not joined: no interface has the address 192.0.2.7"));
    CHECK(contains(outcome.out, "nowhere does not exist"));
    CHECK(contains(outcome.out, "sudo install -d "));
    CHECK(contains(outcome.out, "3 problems, "));
}

TEST_CASE("check: the control token", "[e2e][check]") {
    const Site site(json{{"http", {{"allow_control", true}, {"control_token_file", "token"}}}});
    const std::string file = (site.directory() / "token").string();
    const auto with = [&](const std::string& text, mode_t mode) {
        write_file(file, text);
        REQUIRE(::chmod(file.c_str(), mode) == 0);
        return check(site);
    };
    Outcome outcome = check(site);
    INFO(outcome.out);
    CHECK(outcome.status == 74);
    CHECK(contains(outcome.out, "problem  control token: " + file + ": No such file or directory\n"));
    CHECK(contains(outcome.out, "to do: (umask 077; openssl rand -hex 32 > " + file + ")"));
    const std::string secret(32, 'k');
    CHECK(contains(with(secret, 0600).out, "good     control token: " + file));
    CHECK(with(secret, 0600).status == 0);
    CHECK(contains(with("", 0600).out, "without spaces, found nothing\n"));
    CHECK(contains(with("kkkk\n", 0600).out, "without spaces, found fewer characters\n"));
    outcome = with(secret, 0644);
    CHECK(outcome.status == 74);
    CHECK(contains(outcome.out, "only its group can read, found the mode 0644\n"));
    CHECK(contains(outcome.out, "to do: chmod g-wx,o= " + file + "\n"));
    CHECK_FALSE(contains(outcome.out, "kkkk"));
}

TEST_CASE("check: the socket of the tap", "[e2e][check]") {
    const Site site(json{{"tap", {{"socket", "nowhere/tap.sock"}}}});
    const Outcome outcome = check(site);
    INFO(outcome.out);
    CHECK(outcome.status == 74);
    CHECK(contains(outcome.out, "problem  tap socket: directory "));
}

TEST_CASE("check: buffers that the kernel does not grant", "[e2e][check]") {
    const Site site(json{
        {"receive", {{"receive_buffer_bytes", 1073741823}, {"huge_pages", true}, {"batch_count", 1024}}}});
    const Outcome outcome = run_without_net_admin({"--check", "--verbose", site.configuration()});
    INFO(outcome.out);
    CHECK(outcome.status == 0);
    CHECK(contains(outcome.out, "warning  socket buffers: "));
    CHECK(contains(outcome.out, "sudo sysctl -w net.core.rmem_max=1073741823"));
    CHECK(contains(outcome.out, "huge pages: "));
}

TEST_CASE("check: no warning of buffers that the daemon gets beyond net.core.rmem_max", "[e2e][check]") {
    const Site site(json{{"receive", {{"receive_buffer_bytes", 1073741823}}}});
    const Outcome outcome = check(site);
    INFO(outcome.out);
    CHECK(contains(outcome.out, "warning  socket buffers: ") == !may_exceed_rmem_max());
    CHECK(contains(outcome.out, "note     socket buffers: ") == may_exceed_rmem_max());
}

}  // namespace petacq::test
