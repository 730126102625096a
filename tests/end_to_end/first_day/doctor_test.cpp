// petctl doctor with simulated boards that are healthy, or are not as configured.
#include <algorithm>
#include <cmath>
#include <csignal>
#include <nlohmann/json.hpp>

#include "tests/end_to_end/daemon_fixture.hpp"

namespace petacq::test {

namespace {

using nlohmann::json;

/// petsim sends until the object goes.
class Boards {
  public:
    /// `scanner`: the description that petsim reads; empty: that of the daemon.
    Boards(const Site& site, const Daemon& daemon, const std::vector<std::string>& more,
           const std::string& scanner = "")
        : process_(PETSIM_PROGRAM, arguments(site, daemon, more, scanner.empty() ? site.scanner() : scanner),
                   site.directory() / "boards") {}
    Boards(const Boards&) = delete;
    Boards& operator=(const Boards&) = delete;
    ~Boards() {
        process_.signal(SIGKILL);
        process_.wait();
    }

  private:
    static std::vector<std::string> arguments(const Site& site, const Daemon& daemon,
                                              const std::vector<std::string>& more,
                                              const std::string& scanner) {
        std::vector<std::string> all = {
            "--crystals", "surface",      "--scanner",     scanner,  "--calibration", site.calibration(),
            "--quiet",    "--duration-s", "600",           "--rate", "50000",         "--threads",
            "1",          "--to",         daemon.address()};
        all.insert(all.end(), more.begin(), more.end());
        return all;
    }

    Process process_;
};

/// What the doctor prints, after every module has been heard, or at least some datagrams. It has this exit
/// status and says all of that, at the latest when it is asked for the fifth time: other processes may hold
/// up the boards while it listens.
std::string doctor(const Site& site, Daemon& daemon, int status, const std::vector<std::string>& says) {
    REQUIRE(daemon.until([](const json& s) {
        return s["total"]["datagrams"]["received"] > 100 && s["modules"].size() == 24 &&
               s["reception"]["samples"].size() >= 4;
    }));
    Outcome outcome;
    for (int i = 0; i < 5; ++i) {
        outcome = petctl(site, {"doctor", "--seconds", "3"});
        const auto said = [&](const std::string& text) { return contains(outcome.out, text); };
        if (outcome.status == status && std::all_of(says.begin(), says.end(), said)) break;
    }
    INFO(outcome.out << outcome.err);
    CHECK(outcome.status == status);
    for (const std::string& text : says) {
        INFO(text);
        CHECK(contains(outcome.out, text));
    }
    return outcome.out;
}

/// A copy of the description, for boards that send as it says while the daemon has another one.
std::string scanner_for_boards(const Site& site, const json& scanner) {
    const auto path = site.directory() / "sent.scanner.json";
    write_file(path, scanner.dump());
    return path.string();
}

/// The piece of JSON behind `key` in what is to be written.
json piece(const std::string& text, const std::string& key) {
    const std::size_t at = text.find('"' + key + "\": ");
    if (at == std::string::npos) return nullptr;
    return json::parse(text.substr(at + key.size() + 4, text.find("\nIn ", at) - at - key.size() - 4));
}

}  // namespace

TEST_CASE("doctor: healthy boards", "[e2e][doctor]") {
    const Site site;
    Daemon daemon(site);
    const Boards boards(site, daemon, {});
    REQUIRE(daemon.until([](const json& s) {
        return std::all_of(s["modules"].begin(), s["modules"].end(), [](const json& m) {
            return m["singles_per_s"].is_number() && m["singles_per_s"] > 0;
        });
    }));
    const std::string text = doctor(
        site, daemon, 0,
        {"good     from: source 0 (127.0.0.1:", "good     framing: sequenced, as configured",
         "good     markers: head 10, tail 5, as configured", "good     modules: singles from all 24 BDMs",
         "good     times: of ", "good     energies: ", "0 problems, 0 warnings"});
    CHECK_FALSE(contains(text, "To write into the files"));
    CHECK(daemon.terminate() == 0);
}

TEST_CASE("doctor: nothing arrives", "[e2e][doctor]") {
    const Site site;
    Daemon daemon(site);
    const Outcome outcome = petctl(site, {"doctor", "--seconds", "0.5"});
    INFO(outcome.out);
    CHECK(outcome.status == 1);
    CHECK(contains(outcome.out, "problem  arriving: nothing in"));
    CHECK(contains(outcome.out,
                   "sudo tcpdump -ni any -c 5 udp port " + std::to_string(daemon.ports().front())));
    CHECK(daemon.terminate() == 0);
}

TEST_CASE("doctor: another framing than configured", "[e2e][doctor]") {
    const Site site;
    Daemon daemon(site);
    const Boards boards(site, daemon, {"--framing", "bare", "--sources", "4"});
    const std::string text = doctor(
        site, daemon, 1,
        {"problem  framing: bare, while sequenced is configured", "markers: head 10, tail 5, as configured"});
    CHECK(piece(text, "receive") == json{{"framing", "bare"}});
    const json sources = piece(text, "sources");
    REQUIRE(sources.is_array());
    REQUIRE(sources.size() == 1);  // petsim has one address
    CHECK(sources[0]["address"] == "127.0.0.1");
    CHECK(sources[0]["port"].is_number_unsigned());
    CHECK_FALSE(sources[0]["bdms"].empty());
    CHECK(daemon.terminate() == 0);
}

TEST_CASE("doctor: modules that are listed for another source", "[e2e][doctor]") {
    const Site site;
    json scanner = json::parse(read_file(site.scanner()));
    const std::string as_sent = scanner_for_boards(site, scanner);
    scanner["sources"][0]["bdms"] = {0, 1, 2, 3, 4, 6};
    scanner["sources"][1]["bdms"] = {5, 7, 8, 9, 10, 11};
    write_file(site.scanner(), scanner.dump());
    Daemon daemon(site);
    const Boards boards(site, daemon, {}, as_sent);
    doctor(site, daemon, 1, {"no singles from BDM 5-6", "have a BDM, DU, x or y out of range"});
    CHECK(daemon.terminate() == 0);
}

TEST_CASE("doctor: a silent board, and one that is not listed", "[e2e][doctor]") {
    const Site site;
    json scanner = json::parse(read_file(site.scanner()));
    scanner["sources"][3]["id"] = 9;
    const std::string as_sent = scanner_for_boards(site, scanner);
    Daemon daemon(site);
    const Boards boards(site, daemon, {}, as_sent);
    const std::string text =
        doctor(site, daemon, 1,
               {"warning  from: nothing from source 3",
                "problem  from: may not send, and is not used: source 9", "no singles from BDM 18-23",
                "source 9 sends the BDMs of source 3, which is silent and not in this list"});
    const json sources = piece(text, "sources");
    REQUIRE(sources.is_array());
    CHECK(sources.back()["id"] == 9);
    CHECK(daemon.terminate() == 0);
}

TEST_CASE("doctor: swapped markers", "[e2e][doctor]") {
    // As if the boards had swapped them.
    const Site site(json{{"frame", {{"head_marker", 5}, {"tail_marker", 10}}}});
    Daemon daemon(site);
    const Boards boards(site, daemon, {});
    const std::string text =
        doctor(site, daemon, 1,
               {"problem  markers: head 10, tail 5, while head 5, tail 10 is configured: "
                "head and tail are swapped"});
    CHECK(piece(text, "frame") == json{{"head_marker", 10}, {"tail_marker", 5}});
    CHECK(daemon.terminate() == 0);
}

TEST_CASE("doctor: a tick of another length", "[e2e][doctor]") {
    const Site site;
    json scanner = json::parse(read_file(site.scanner()));
    const auto tick = scanner["tick_ps"].get<double>();
    const std::string as_sent = scanner_for_boards(site, scanner);
    scanner["tick_ps"] = 2 * tick;
    write_file(site.scanner(), scanner.dump());
    Daemon daemon(site);
    const Boards boards(site, daemon, {}, as_sent);
    const auto found = [&] {
        const json written =
            piece(doctor(site, daemon, 1, {"according to the scanner description"}), "tick_ps");
        REQUIRE(written.is_number());
        return written.get<double>();
    };
    double tick_found = found();
    for (int i = 0; i < 5 && std::abs(tick_found / tick - 1) >= 0.03; ++i)
        tick_found = found();
    CHECK(tick_found > 0.97 * tick);
    CHECK(tick_found < 1.03 * tick);
    CHECK(daemon.terminate() == 0);
}

}  // namespace petacq::test
