// Every kind of record of a run: made again from its singles, and saved after kill -9.
#include <cmath>
#include <csignal>

#include "daemon/seconds/reader.hpp"
#include "tests/end_to_end/daemon_fixture.hpp"
#include "tests/support/catch.hpp"

using namespace petacq::test;
using nlohmann::json;

namespace {

/// Tags of all sources, and a dead time of 2.5 % at 10 kHz for each unit.
const std::vector<std::string> with_tags{"--seed",      "31",      "--tag-dead-time",   "15:0.01",
                                         "--tag-clock", "3:0.002", "--dead-time-ticks", "160000"};

std::vector<std::string> operator+(std::vector<std::string> a, const std::vector<std::string>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

std::string petlm_prints(const std::vector<std::string>& arguments) {
    const Outcome outcome = run_program(PETLM_PROGRAM, arguments);
    INFO(outcome.out << outcome.err);
    REQUIRE(outcome.status == 0);
    return outcome.out;
}

void replay_as(const Site& site, const std::string& capture, const std::string& run) {
    const Outcome outcome =
        run_program(PETACQD_PROGRAM, {"--config", site.configuration(), "--replay", capture, "--run", run});
    INFO(outcome.err);
    REQUIRE(outcome.status == 0);
}

std::size_t seconds_in(const std::filesystem::path& file) {
    petacq::daemon::SecondsReader reader(file);
    std::size_t count = 0;
    while (reader.next())
        ++count;
    return count;
}

}  // namespace

TEST_CASE("a run resorted from its singles is the run, with all its records", "[e2e][files]") {
    const json saved{{"listmode", {{"write_singles", true}, {"compression", "zstd"}}}};
    Site site(saved);
    const std::string capture = (site.directory() / "simulated.pcap").string();
    simulate(site, with_tags + std::vector<std::string>{"--sources", "4", "--start-time-s", "2.6",
                                                        "--duration-s", "1.8", "--rate", "200000", "--loss",
                                                        "0.002", "--write", capture});
    replay_as(site, capture, "r");
    CHECK(seconds_in(site.run("r") / "seconds.plm") == 3);
    {
        petacq::daemon::SecondsReader seconds(site.run("r") / "seconds.plm");
        double lost = 0;
        while (seconds.next()) {
            lost += seconds.values(*seconds.find("lost")).number();
            const auto temperature = seconds.values(*seconds.find("module_temperature"));
            const auto dead_time = seconds.values(*seconds.find("module_dead_time"));
            for (std::size_t bdm = 0; bdm < temperature.size(); ++bdm) {
                CHECK(std::abs(temperature.number(bdm) - 25) < 5);
                const double share = dead_time.number(bdm) / static_cast<double>(seconds.length());
                CHECK(share > 0);
                CHECK(share < 0.1);
            }
        }
        CHECK(lost == site.run_json("r")["ledger"]["datagrams"]["lost"]);
        CHECK(lost > 0);
    }
    struct Way {
        std::string name;
        json coincidence;
        std::vector<std::string> options;
    };
    const std::vector<Way> ways{
        {"same", json::object(), {}},
        {"other",
         {{"window_ticks", 900}, {"multiples_policy", "TakeAllGoods"}, {"delay_ticks", 10000}},
         {"--window-ticks", "900", "--policy", "TakeAllGoods", "--delay-ticks", "10000"}},
        {"every",
         {{"window_mode", "every"}, {"delay_ticks", nullptr}},
         {"--window-mode", "every", "--no-delay", "--threads", "3"}},
    };
    for (const Way& way : ways) {
        INFO(way.name);
        json patch = saved;
        patch["coincidence"] = way.coincidence;
        site.configure(patch);
        replay_as(site, capture, "as-" + way.name);
        const auto expected = site.run("as-" + way.name);
        const auto out = site.directory() / way.name;
        petlm_prints(std::vector<std::string>{"resort", site.run("r").string(), "-o", out.string()} +
                     way.options);
        for (const char* file : {"coincidences.plm", "tags.plm", "seconds.plm"}) {
            INFO(file);
            REQUIRE(payload_of(expected / file).size() > 10'000);
            CHECK((payload_of(out / file) == payload_of(expected / file)));  // too long to print
        }
        petlm_prints({"verify", out.string()});
        const json run = json::parse(read_file(out / "run.json"));
        const json as = site.run_json("as-" + way.name);
        CHECK(run["state"] == "complete");
        CHECK(run["ledger"]["closed"] == true);
        for (const char* section : {"datagrams", "frames", "singles", "pairs", "tags"})
            CHECK(run["ledger"][section] == as["ledger"][section]);
        CHECK(run["expected_randoms"] == as["expected_randoms"]);
        CHECK(run["configuration"]["coincidence"] == as["configuration"]["coincidence"]);
        for (const json& file : run["files"])
            CHECK(std::filesystem::file_size(out / file["name"].get<std::string>()) == file["bytes"]);
    }

    // Without the seconds of the run, those are unknown that the singles do not tell.
    std::filesystem::remove(site.run("r") / "seconds.plm");
    const auto out = site.directory() / "without";
    petlm_prints({"resort", site.run("r").string(), "-o", out.string()});
    petacq::daemon::SecondsReader made(out / "seconds.plm");
    petacq::daemon::SecondsReader seconds(site.run("as-same") / "seconds.plm");
    while (seconds.next()) {
        REQUIRE(made.next());
        CHECK(made.start() == seconds.start());
        for (const char* field : {"prompts", "delayeds", "groups", "unpaired"})
            CHECK(made.values(*made.find(field)).whole() == seconds.values(*seconds.find(field)).whole());
        CHECK(std::isnan(made.values(*made.find("lost")).number()));
        CHECK(std::isnan(made.values(*made.find("module_temperature")).number(3)));
    }
    CHECK_FALSE(made.next());
    const Outcome again = run_program(PETLM_PROGRAM, {"resort", site.run("r").string(), "-o", out.string()});
    CHECK(again.status == 64);
    CHECK(contains(again.err, "exists"));
}

TEST_CASE("after kill -9, every file of a run is a prefix of what it would have been", "[e2e][crash]") {
    const Site site(
        json{{"listmode", {{"write_singles", true}, {"block_bytes", 4096}, {"sync_interval_ms", 20}}},
             {"watermark", {{"max_disorder_us", 20000}}}});
    const std::vector<std::string> files{"coincidences.plm", "singles.plm", "tags.plm", "seconds.plm"};
    const auto stream = [&](const Daemon& daemon) {
        return short_stream(daemon,
                            with_tags + std::vector<std::string>{"--rate", "60000", "--duration-s", "6"});
    };
    {
        Daemon daemon(site, "killed");
        daemon.start("killed");
        Process petsim(PETSIM_PROGRAM, petsim_arguments(site, stream(daemon)),
                       site.directory() / "petsim-killed");
        const auto seconds = site.run("killed") / "seconds.plm";
        REQUIRE(eventually([&] { return seconds_in(seconds) != 0; }));
        daemon.process().signal(SIGKILL);
        CHECK(daemon.process().wait() == -SIGKILL);
    }
    const Outcome recover = run_program(PETLM_PROGRAM, {"recover", site.run("killed").string()});
    INFO(recover.out << recover.err);
    CHECK(recover.status == 0);
    const auto recovered = site.run("killed.recovered");
    petlm_prints({"verify", recovered.string()});
    Daemon daemon(site, "next");
    daemon.start("undisturbed");
    const json summary = simulate(site, stream(daemon));
    REQUIRE(daemon.received(summary["total"]["expected"]["datagrams_received"]));
    CHECK(daemon.stop()["ledger_closed"] == true);
    CHECK(daemon.terminate() == 0);
    for (const std::string& file : files) {
        INFO(file);
        const std::string saved = payload_of(recovered / file);
        const std::string whole = payload_of(site.run("undisturbed") / file);
        REQUIRE(saved.size() > 1000);
        CHECK(saved.size() < whole.size());
        CHECK(whole.substr(0, saved.size()) == saved);
        CHECK(payload_of(site.run("killed") / file) == saved);
    }
    // What was saved can be resorted.
    const auto out = site.directory() / "resorted";
    petlm_prints({"resort", recovered.string(), "-o", out.string()});
    petlm_prints({"verify", out.string()});
    CHECK(json::parse(read_file(out / "run.json"))["state"] == "recovered");
    CHECK(seconds_in(out / "seconds.plm") >= seconds_in(recovered / "seconds.plm"));
}
