// Spectra of runs, against a slow count over the frames of their captures.
#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <set>
#include <utility>

#include "config/calibration.hpp"
#include "config/scanner/scanner.hpp"
#include "config/spectra.hpp"
#include "tests/daemon/http/fixture.hpp"
#include "tests/end_to_end/daemon_fixture.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/eventually.hpp"

using namespace petacq;
using namespace petacq::test;
using nlohmann::json;

namespace {

const json counting = {{"listmode", {{"write_raw", true}}},
                       {"spectra", {{"enabled", true}}},
                       {"receive", {{"batch_count", 128}}}};  // the disk may take seconds

std::uint64_t big_endian(const std::string& bytes, std::size_t at, std::size_t count) {
    std::uint64_t number = 0;
    for (std::size_t i = at; i < at + count; ++i)
        number = number << 8 | static_cast<std::uint8_t>(bytes[i]);
    return number;
}

struct Tables {
    explicit Tables(const Site& site)
        : geometry(config::load_scanner(site.scanner()).geometry),
          calibration(config::load_calibration(site.calibration(), geometry)) {}
    config::Geometry geometry;
    config::Calibration calibration;

    void count(const std::string& bytes, std::size_t at, config::Spectra& spectra) const {
        const config::Geometry& g = geometry;
        const std::size_t size = g.position_size;
        const std::uint64_t head = big_endian(bytes, at, 1);
        const std::uint64_t bdm = big_endian(bytes, at + 1, 1);
        const std::uint64_t x = big_endian(bytes, at + 10, 1);
        const std::uint64_t y = big_endian(bytes, at + 11, 1);
        const std::uint64_t adc = big_endian(bytes, at + 12, 2);
        const std::uint64_t du = head % 16;
        if (head / 16 != 0xA || big_endian(bytes, at + 15, 1) % 16 != 5) return;
        if (bdm >= g.bdm_count || du >= g.du_count || x >= size || y >= size) return;
        const std::size_t unit = bdm * g.du_count + du;
        const std::size_t place = unit * size * size + x + y * size;
        ++spectra.floods.at(place);
        const std::uint32_t origin = calibration.position_table.at(place);
        if (origin >= g.crystals_per_du()) return;
        const std::uint32_t local = g.local_of_origin(origin);
        const std::uint32_t crystal =
            g.crystal(static_cast<std::uint32_t>(bdm), static_cast<std::uint32_t>(du), local);
        const std::size_t bin = std::min<std::size_t>(adc / 10, calibration.bins - 1);
        const float keV =
            static_cast<float>(adc) *
            calibration.energy_factor.at((unit * g.crystals_per_du() + local) * calibration.bins + bin);
        ++spectra.energies.at(crystal * std::size_t{256} +
                              static_cast<std::size_t>(std::min(keV / 4, 255.0F)));
    }
};

/// Counts, one by one, the frames of a capture whose times lie in the interval of its run. Copies of
/// datagrams do not count.
config::Spectra slow_count(const Site& site, const std::string& run) {
    const Tables tables(site);
    config::Spectra spectra = config::Spectra::none(tables.geometry);
    spectra.calibration_sha256 = site.run_json(run)["calibration_sha256"];
    const std::uint64_t start = site.run_json(run)["taken"]["start_ticks"];
    const std::uint64_t stop = site.run_json(run)["taken"]["stop_ticks"];
    const std::string bytes = read_file(site.run(run) / "raw.pcap");
    std::set<std::pair<std::uint64_t, std::uint64_t>> seen;
    for (std::size_t at = 24; at < bytes.size();) {
        std::uint32_t length = 0;
        std::memcpy(&length, bytes.data() + at + 8, 4);
        const std::size_t datagram = at + 16 + 28;
        at += 16 + length;
        if (at - datagram < 16 || (at - datagram) % 16 != 0 || bytes.compare(datagram, 5, "PETF\x01", 5) != 0)
            continue;
        if (!seen.emplace(big_endian(bytes, datagram + 6, 2), big_endian(bytes, datagram + 8, 8)).second)
            continue;
        for (std::size_t frame = datagram + 16; frame < at; frame += 16) {
            const std::uint64_t time = big_endian(bytes, frame + 2, 8);
            if (start <= time && time < stop) tables.count(bytes, frame, spectra);
        }
    }
    return spectra;
}

config::Spectra saved(const Site& site, const std::string& run) {
    CHECK(site.run_json(run)["spectra"] == json{{"file", "spectra.h5"}, {"failure", nullptr}});
    return config::load_spectra(site.run(run) / "spectra.h5", config::load_scanner(site.scanner()).geometry);
}

std::uint64_t sum(const std::vector<std::uint32_t>& counts) {
    std::uint64_t all = 0;
    for (const std::uint32_t count : counts)
        all += count;
    return all;
}

}  // namespace

TEST_CASE("spectra of a run are those of its frames, live and in every replay", "[e2e][spectra]") {
    Site site(counting);
    {
        Daemon daemon(site);
        daemon.start("live");
        const json summary = simulate(
            site, short_stream(daemon, {"--reorder", "0.2", "--duplicate", "0.1", "--loss", "0.01",
                                        "--corrupt", "magic:0.02", "--corrupt", "marker:0.05", "--corrupt",
                                        "bdm:0.05", "--corrupt", "time:0.01", "--tag-dead-time", "15:0.01"}));
        REQUIRE(daemon.received(summary["total"]["expected"]["datagrams_received"]));
        CHECK(daemon.stop()["ledger_closed"] == true);
        CHECK(daemon.terminate() == 0);
    }
    const config::Spectra live = saved(site, "live");
    CHECK((live == slow_count(site, "live")));
    // More than the accepted singles: energies outside the window, and places outside all crystals.
    const json frames = site.run_json("live")["ledger"]["frames"];
    const std::uint64_t in_crystals = sum(live.energies);
    CHECK(in_crystals > frames["accepted"].get<std::uint64_t>());
    CHECK(sum(live.floods) == in_crystals + frames["outside_crystal"].get<std::uint64_t>());
    replay_of(site, "live", "again");
    CHECK((saved(site, "again") == live));
    int number = 0;
    for (const json& pipeline :
         {json{{"slice_frames", 777}, {"threads", 1}}, json{{"slice_frames", 1'000'000}, {"threads", 3}}}) {
        const std::string name = "way" + std::to_string(number++);
        site.configure({{"spectra", {{"enabled", true}}}, {"pipeline", pipeline}});
        replay_of(site, "live", name);
        CHECK((saved(site, name) == live));
    }
}

TEST_CASE("spectra of runs within a stream", "[e2e][spectra]") {
    Site site(counting);
    two_runs_within_a_stream(site);
    for (const std::string name : {"one", "two"}) {
        const config::Spectra live = saved(site, name);
        CHECK(sum(live.floods) > 10'000);
        CHECK((live == slow_count(site, name)));
        site.configure({{"spectra", {{"enabled", true}}}, {"pipeline", {{"slice_frames", 2000}}}});
        replay_of(site, name, name + "-again");
        CHECK((saved(site, name + "-again") == live));
    }
}

TEST_CASE("spectra that cannot be saved fail the run and close nothing else", "[e2e][spectra]") {
    const Site site(counting);
    Daemon daemon(site);
    daemon.start("full");
    const json summary = simulate(site, short_stream(daemon));
    REQUIRE(daemon.received(summary["total"]["expected"]["datagrams_received"]));
    // A directory in the place of the file, not empty, so that nothing can replace it.
    std::filesystem::create_directories(site.run("full") / "spectra.h5" / "in the way");
    CHECK(daemon.stop()["ledger_closed"] == true);
    const json run = site.run_json("full");
    CHECK(run["state"] == "failed");
    CHECK(contains(run["spectra"]["failure"], "spectra.h5: cannot be written"));
    CHECK(contains(run["stop_reason"], "spectra.h5"));
    CHECK(run["ledger"]["pairs"]["written"] ==
          run["ledger"]["pairs"]["prompts_found"].get<std::uint64_t>() +
              run["ledger"]["pairs"]["delayeds_found"].get<std::uint64_t>());
    CHECK(std::filesystem::exists(site.run("full") / "histograms.json"));
    // The daemon goes on.
    std::filesystem::remove_all(site.run("full") / "spectra.h5");
    daemon.start("next");
    CHECK(daemon.stop()["ledger_closed"] == true);
    CHECK(site.run_json("next")["state"] == "complete");
    CHECK(sum(saved(site, "next").floods) == 0);
    CHECK(daemon.terminate() == 0);
}

TEST_CASE("spectra of a unit can be seen while the run is in progress", "[e2e][spectra]") {
    const Site site(json{{"spectra", {{"enabled", true}}}, {"http", {{"listen", "127.0.0.1:0"}}}});
    Daemon daemon(site);
    daemon.start("seen");
    const json summary = simulate(site, short_stream(daemon));
    REQUIRE(daemon.received(summary["total"]["expected"]["datagrams_received"]));
    json unit;
    std::uint64_t before = 0;
    double since = 0;
    // Until all frames have been counted: the same for three seconds.
    REQUIRE(eventually([&] {
        unit = json::parse(http_get(daemon.http_port(), "/spectra/7/2").body);
        const std::uint64_t frames =
            unit.is_null() ? 0 : sum(unit["flood"].get<std::vector<std::uint32_t>>());
        const double uptime = daemon.status()["uptime_s"];
        if (std::exchange(before, frames) != frames) since = uptime;
        return frames > 100 && uptime - since > 3;
    }));
    daemon.stop();
    CHECK(daemon.terminate() == 0);
    const config::Geometry g = config::load_scanner(site.scanner()).geometry;
    const config::Spectra saved_ones = saved(site, "seen");
    const std::ptrdiff_t positions = std::ptrdiff_t{g.position_size} * g.position_size;
    const auto flood = saved_ones.floods.begin() + (7 * g.du_count + 2) * positions;
    CHECK((unit["flood"].get<std::vector<std::uint32_t>>() == std::vector(flood, flood + positions)));
    for (std::uint32_t local = 0; local < g.crystals_per_du(); ++local) {
        const auto energies = saved_ones.energies.begin() + g.crystal(7, 2, local) * std::ptrdiff_t{256};
        CHECK((unit["energy_per_crystal"][local].get<std::vector<std::uint32_t>>() ==
               std::vector(energies, energies + 256)));
    }
}

TEST_CASE("without spectra there is no file", "[e2e][spectra]") {
    const Site site;
    Daemon daemon(site);
    daemon.start("none");
    daemon.stop();
    CHECK_FALSE(std::filesystem::exists(site.run("none") / "spectra.h5"));
    CHECK_FALSE(site.run_json("none").contains("spectra"));
}
