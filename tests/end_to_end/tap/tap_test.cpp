// The live tap of the real daemon.
#include <string>
#include <thread>

#include "tests/daemon/tap/tap_client.hpp"
#include "tests/end_to_end/daemon_fixture.hpp"
#include "tests/end_to_end/truth_counts.hpp"
#include "tests/support/catch.hpp"

using namespace petacq::test;
using nlohmann::json;

namespace {

const json with_tap{{"tap", {{"socket", "tap.sock"}, {"max_clients", 4}}},
                    {"listmode", {{"write_singles", true}}}};

/// Every N-th record.
std::string every(const std::string& payload, std::size_t record_bytes, std::size_t prescale) {
    std::string chosen;
    for (std::size_t at = 0; at < payload.size(); at += prescale * record_bytes)
        chosen += payload.substr(at, record_bytes);
    return chosen;
}

}  // namespace

TEST_CASE("tap: what arrives is every N-th record of the list-mode", "[e2e][tap]") {
    const Site site(with_tap);
    Daemon daemon(site);
    const auto path = site.directory() / "tap.sock";
    TapClientForTest pairs(path);
    TapClientForTest some_pairs(path);
    TapClientForTest singles(path);
    TapClientForTest idle(path);  // asks for nothing
    CHECK(pairs.ask({{"kind", "coincidences"}})["record_bytes"] == 32);
    some_pairs.ask({{"kind", "coincidences"}, {"prescale", 13}});
    singles.ask({{"kind", "singles"}, {"prescale", 3}});
    std::uint64_t sent = 0;
    for (const std::string run : {"one", "two"}) {
        daemon.start(run);
        const json summary = simulate(site, short_stream(daemon));
        sent += summary["total"]["expected"]["datagrams_received"].get<std::uint64_t>();
        REQUIRE(daemon.received(sent));
        CHECK(daemon.stop()["ledger_closed"] == true);
        const std::string listmode = payload_of(site.run(run) / "coincidences.plm");
        REQUIRE(listmode.size() > 32 * 1000);
        CHECK(pairs.next()->payload == run);
        CHECK(pairs.records_of_run() == listmode);
        CHECK(some_pairs.records_of_run() == every(listmode, 32, 13));
        CHECK(singles.records_of_run() == every(payload_of(site.run(run) / "singles.plm"), 16, 3));
    }
    const json tap = daemon.status()["tap"];
    CHECK(tap["clients"] == 3);
    CHECK(tap["dropped"] == 0);
    CHECK(tap["sent"] > 1000);
    CHECK(daemon.terminate() == 0);
    CHECK(pairs.at_end());
}

TEST_CASE("tap: a client that never reads costs the run nothing", "[e2e][tap]") {
    Site site(with_tap);
    Daemon daemon(site);
    TapClientForTest stuck(site.directory() / "tap.sock");
    stuck.ask({{"kind", "singles"}});
    daemon.start("r");
    const json summary = simulate(site, short_stream(daemon, {"--duration-s", "3", "--rate", "450000"}));
    REQUIRE(daemon.received(summary["total"]["expected"]["datagrams_received"]));
    CHECK(daemon.stop()["ledger_closed"] == true);
    check_ledger(site.run_json("r")["ledger"], summary, count_truth(site.directory() / "petsim.truth"));
    json tap;
    CHECK(daemon.until([&](const json& s) {
        tap = s["tap"];
        return tap["dropped"] > 0;
    }));
    // What it did get is all there, and the count of the rest is right.
    const std::string listmode = payload_of(site.run("r") / "singles.plm");
    REQUIRE(stuck.next()->type == 1);
    std::uint64_t got = 0;
    auto message = stuck.next();
    for (; message && message->type == 2; message = stuck.next()) {
        CHECK(message->payload == listmode.substr(16 * message->first_record, message->payload.size()));
        got += message->records;
    }
    REQUIRE(message);
    CHECK(message->dropped == tap["dropped"]);
    CHECK(got + message->dropped == listmode.size() / 16);
    CHECK(daemon.terminate() == 0);
}

TEST_CASE("tap: none unless asked for, and only what the runs hold", "[e2e][tap]") {
    Site site;
    {
        Daemon daemon(site);
        CHECK(daemon.status()["tap"].is_null());
        CHECK(daemon.terminate() == 0);
    }
    site.configure({{"tap", {{"socket", "tap.sock"}}}, {"control", {{"socket_mode", "0600"}}}});
    Daemon daemon(site);
    const auto path = site.directory() / "tap.sock";
    CHECK(std::filesystem::status(path).permissions() ==
          (std::filesystem::perms::owner_read | std::filesystem::perms::owner_write));
    TapClientForTest client(path);
    CHECK(contains(client.ask({{"kind", "singles"}})["error"], "listmode.write_singles is false"));
    CHECK(daemon.terminate() == 0);
    CHECK_FALSE(std::filesystem::exists(path));
}
