// kill -9 in the middle of a run: everything that was on the disk is kept, and a new daemon can start.
#include <csignal>

#include "daemon/listmode/reader.hpp"
#include "tests/end_to_end/daemon_fixture.hpp"
#include "tests/support/catch.hpp"

using namespace petacq::test;
using nlohmann::json;

TEST_CASE("a killed daemon leaves a readable prefix of the list-mode, and another daemon takes its place",
          "[e2e][crash]") {
    const Site site(json{{"listmode", {{"block_bytes", 4096}, {"sync_interval_ms", 20}}},
                         {"watermark", {{"max_disorder_us", 20000}}}});
    const std::vector<std::string> stream{"--seed", "5", "--duration-s", "1"};
    {
        Daemon daemon(site, "killed");
        daemon.start("killed");
        Process petsim(PETSIM_PROGRAM, petsim_arguments(site, short_stream(daemon, stream)),
                       site.directory() / "petsim-killed");
        REQUIRE(daemon.until([](const json& s) { return s["ledger"]["pairs"]["written"] > 1500; }));
        REQUIRE(petsim.running());
        daemon.process().signal(SIGKILL);
        CHECK(daemon.process().wait() == -SIGKILL);
    }
    REQUIRE(std::filesystem::exists(site.socket()));
    CHECK(site.run_json("killed")["state"] == "running");

    const std::filesystem::path broken = site.run("killed") / "coincidences.plm";
    const std::string before = read_file(broken);
    const Outcome verify = run_program(PETLM_PROGRAM, {"verify", site.run("killed").string()});
    CHECK(verify.status == 1);
    const Outcome recover = run_program(PETLM_PROGRAM, {"recover", broken.string()});
    INFO(recover.out << recover.err);
    CHECK(recover.status == 0);
    CHECK(read_file(broken) == before);
    const std::filesystem::path recovered = site.run("killed") / "coincidences.recovered.plm";
    CHECK(run_program(PETLM_PROGRAM, {"verify", recovered.string()}).status == 0);
    const std::string saved = payload_of(recovered);
    CHECK(saved.size() >= 1500 * sizeof(petacq::gpu::Coincidence));
    CHECK(saved == payload_of(broken));

    // The socket and the lock that the first daemon left behind do not stop the next one.
    Daemon daemon(site, "next");
    CHECK(contains(daemon.log(), "stale socket"));
    daemon.start("undisturbed");
    const json summary = simulate(site, short_stream(daemon, stream));
    REQUIRE(daemon.received(summary["total"]["expected"]["datagrams_received"]));
    CHECK(daemon.stop()["ledger_closed"] == true);
    const std::string whole = payload_of(site.run("undisturbed") / "coincidences.plm");
    CHECK(whole.size() > saved.size());
    CHECK(whole.substr(0, saved.size()) == saved);
    CHECK(daemon.refusal("start", {{"run", "killed"}}) != "");
    CHECK(daemon.terminate() == 0);
}
