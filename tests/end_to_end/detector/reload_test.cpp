// The daemon takes another calibration while it runs: between runs, whole, and only a good one.
#include <csignal>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "config/calibration.hpp"
#include "config/scanner/scanner.hpp"
#include "config/spectra.hpp"
#include "tests/end_to_end/daemon_fixture.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace petacq;
using namespace petacq::test;
using nlohmann::json;

namespace {

const json recording = {{"listmode", {{"write_raw", true}, {"write_singles", true}}},
                        {"spectra", {{"enabled", true}}},
                        {"receive", {{"batch_count", 128}}}};  // the disk may take seconds

std::string other_file(const Site& site) {
    return (site.directory() / "other.h5").string();
}

/// Other energies and times; the largest offset is larger than any of the site's calibration.
void write_other_calibration(const Site& site) {
    const config::Geometry g = config::load_scanner(site.scanner()).geometry;
    config::Calibration c = config::load_calibration(site.calibration(), g);
    for (float& factor : c.energy_factor)
        factor *= 1.04F;
    c.time_offset.assign(g.crystal_count(), 0);
    for (std::size_t crystal = 0; crystal < c.time_offset.size(); ++crystal)
        c.time_offset[crystal] = 5000 + static_cast<std::int32_t>(crystal % 7 * 20);
    c.origin = {{"made_by", "the test"}, {"created_utc", "2026-01-02T03:04:05Z"}};
    config::save_calibration(other_file(site), g, c);
}

json with_calibration(const std::string& file) {
    json document = recording;
    document["calibration"] = file;
    return document;
}

/// A run of 20,000 singles and more, within a stream.
void record(Daemon& daemon, const std::string& run, const std::function<void()>& meanwhile = {}) {
    const auto accepted = [](const json& status) {
        return status["total"]["frames"]["accepted"].get<std::uint64_t>();
    };
    daemon.start(run);
    const std::uint64_t before = accepted(daemon.status());
    REQUIRE(daemon.until([&](const json& s) { return accepted(s) > before + 20'000; }));
    if (meanwhile) meanwhile();
    const json end = daemon.stop();
    INFO(end.dump(1));
    CHECK(end["ledger_closed"] == true);
    CHECK(end["prompts"] > 50);
}

bool same_records(const Site& site, const std::string& a, const std::string& b) {
    return payload_of(site.run(a) / "coincidences.plm") == payload_of(site.run(b) / "coincidences.plm") &&
           payload_of(site.run(a) / "singles.plm") == payload_of(site.run(b) / "singles.plm");
}

config::Spectra spectra_of(const Site& site, const std::string& run) {
    return config::load_spectra(site.run(run) / "spectra.h5", config::load_scanner(site.scanner()).geometry);
}

}  // namespace

TEST_CASE("a run has one calibration: the one that the daemon took before it", "[e2e][reload]") {
    Site site(recording);
    write_other_calibration(site);
    const std::string first = config::sha256_of_file(site.calibration());
    const std::string second = config::sha256_of_file(other_file(site));
    const bool during_run = GENERATE(false, true);
    CAPTURE(during_run);
    {
        Daemon daemon(site);
        Process stream(PETSIM_PROGRAM,
                       petsim_arguments(site, {"--to", daemon.address(), "--duration-s", "60", "--rate",
                                               "150000", "--sources", "4", "--seed", "5", "--quiet"}),
                       site.directory() / "stream");
        const auto reload = [&] {
            site.configure(with_calibration(other_file(site)));
            const json answer = daemon.call("reload");
            INFO(answer.dump(1));
            CHECK(answer["needs_restart"] == json::array());
            CHECK(answer["calibration"]["sha256"] == (during_run ? first : second));
            if (during_run) {
                CHECK(answer["calibration"]["next"]["sha256"] == second);
            } else {
                CHECK(answer["calibration"]["next"].is_null());
            }
        };
        record(daemon, "one", during_run ? std::function<void()>(reload) : nullptr);
        if (!during_run) reload();
        record(daemon, "two");
        const json used = daemon.status()["calibration"];
        CHECK(used["sha256"] == second);
        CHECK(used["file"] == other_file(site));
        CHECK(used["made_by"] == "the test");
        CHECK(used["created_utc"] == "2026-01-02T03:04:05Z");
        CHECK(used["next"].is_null());
        CHECK(contains(daemon.log(), "is in use now"));
        stream.signal(SIGTERM);
        CHECK(daemon.status()["ledger"]["closed"] == true);
        CHECK(daemon.terminate() == 0);
    }
    CHECK(site.run_json("one")["calibration_sha256"] == first);
    CHECK(site.run_json("two")["calibration_sha256"] == second);
    CHECK(site.run_json("two")["configuration"]["calibration"] == other_file(site));
    CHECK(spectra_of(site, "one").calibration_sha256 == first);
    CHECK(spectra_of(site, "two").calibration_sha256 == second);

    replay_of(site, "two", "two-again");
    CHECK(same_records(site, "two", "two-again"));
    CHECK((spectra_of(site, "two") == spectra_of(site, "two-again")));
    replay_of(site, "one", "one-otherwise");
    CHECK_FALSE(same_records(site, "one", "one-otherwise"));
    site.configure(recording);
    replay_of(site, "one", "one-again");
    CHECK(same_records(site, "one", "one-again"));
    CHECK((spectra_of(site, "one") == spectra_of(site, "one-again")));
}

TEST_CASE("a bad calibration is refused, and the next run is as if nobody had tried", "[e2e][reload]") {
    const Site site;
    Daemon daemon(site);
    const std::string good = read_file(site.calibration());
    const std::string in_use = config::sha256_of_file(site.calibration());
    const auto refused = [&](const std::string& content, const std::string& why) {
        write_file(site.calibration(), content);
        const std::string refusal = daemon.refusal("reload");
        INFO(refusal);
        CHECK(contains(refusal, "small.h5"));
        CHECK(contains(refusal, why));
        CHECK(daemon.status()["calibration"]["sha256"] == in_use);
        CHECK(daemon.status()["calibration"]["next"].is_null());
    };
    refused("", "not an HDF5 file");
    refused("{}", "not an HDF5 file");
    refused(good.substr(0, good.size() / 2), "HDF5");
    const config::Scanner mouse = config::load_scanner(std::filesystem::path(PETACQ_SOURCE_DIR) / "config" /
                                                       "examples" / "mouse.scanner.json");
    config::Calibration wrong;
    wrong.position_table.resize(std::size_t{mouse.geometry.bdm_count} * mouse.geometry.du_count *
                                mouse.geometry.position_size * mouse.geometry.position_size);
    wrong.bins = 1;
    wrong.energy_factor.resize(mouse.geometry.crystal_count(), 0.25F);
    config::save_calibration(site.directory() / "mouse.h5", mouse.geometry, wrong);
    refused(read_file(site.directory() / "mouse.h5"), "expected u8");
    std::filesystem::remove(site.calibration());
    CHECK(contains(daemon.refusal("reload"), "small.h5"));
    write_file(site.calibration(), good);
    CHECK(daemon.call("reload")["changed"] == json::array());

    daemon.start("r");
    const json summary = simulate(site, short_stream(daemon));
    REQUIRE(daemon.received(summary["total"]["expected"]["datagrams_received"]));
    CHECK(daemon.stop()["ledger_closed"] == true);
    CHECK(site.run_json("r")["calibration_sha256"] == in_use);
    CHECK(payload_of(site.run("r") / "coincidences.plm") == undisturbed_payload({}));
    CHECK(daemon.terminate() == 0);
}

TEST_CASE("a calibration that waits for the end of a run can be given up", "[e2e][reload]") {
    Site site;
    write_other_calibration(site);
    Daemon daemon(site);
    const std::string in_use = config::sha256_of_file(site.calibration());
    daemon.start("r");
    site.configure({{"calibration", other_file(site)}});
    CHECK(daemon.call("reload")["calibration"]["next"]["file"] == other_file(site));
    site.configure(json::object());
    CHECK(daemon.call("reload")["calibration"]["next"].is_null());
    daemon.stop();
    daemon.start("next");
    daemon.stop();
    CHECK(site.run_json("next")["calibration_sha256"] == in_use);
    const Outcome petctl = run_program(PETCTL_PROGRAM, {"--socket", site.socket(), "reload"});
    CHECK(petctl.status == 0);
    CHECK(contains(petctl.out, "calibration in use: "));
    CHECK(contains(petctl.out, in_use));
    CHECK(daemon.terminate() == 0);
}
