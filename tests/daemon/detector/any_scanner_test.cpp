// The sums and the watch over the detector in scanners of the long form: units of different sizes, absent
// ones, BDMs with parts of several modules.
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <set>

#include "config/scanner.hpp"
#include "daemon/detector/detector_watch.hpp"
#include "daemon/seconds/live_sums.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using FaultKind = daemon::DetectorFault::FaultKind;

namespace {

constexpr std::uint64_t second_ticks = 100'000'000'000;

/// Six modules of two units, of 9 and 12 crystals. BDM 1 and unit 2 of BDM 0 do not exist; BDM 0 has units of
/// two modules, and module 5 is in two BDMs.
config::Scanner odd_scanner() {
    return config::scanner_from_json(nlohmann::json::parse(R"({
        "name": "odd", "tick_ps": 10, "position_size": 8,
        "module_types": [{"name": "block", "layers": [{"y": {"count": 7, "pitch_mm": 2}, "z": {"count": 3, "pitch_mm": 2}, "length_mm": 10}],
                          "units": [{"y": [0, 2]}, {"y": [3, 6]}]}],
        "modules": [{"type": "block", "ring": {"count": 6, "radius_mm": 30}}],
        "channel_map": {"units": [
            {"bdm": 0, "du": 0, "module": 0, "unit": 0}, {"bdm": 0, "du": 1, "module": 0, "unit": 1},
            {"bdm": 0, "du": 3, "module": 1, "unit": 1}, {"bdm": 2, "du": 0, "module": 1, "unit": 0},
            {"bdm": 3, "du": 0, "module": 2, "unit": 0}, {"bdm": 3, "du": 1, "module": 2, "unit": 1},
            {"bdm": 4, "du": 0, "module": 3, "unit": 0}, {"bdm": 4, "du": 1, "module": 3, "unit": 1},
            {"bdm": 5, "du": 0, "module": 4, "unit": 0}, {"bdm": 5, "du": 1, "module": 4, "unit": 1},
            {"bdm": 6, "du": 0, "module": 5, "unit": 0}, {"bdm": 7, "du": 1, "module": 5, "unit": 1}]}})"));
}

config::Scanner example_scanner(const std::string& name) {
    return config::load_scanner(PETACQ_SOURCE_DIR "/config/examples/scanners/" + name + ".scanner.json");
}

/// Singles in every crystal, a fifth of them in prompts.
struct CountingDetector {
    config::Geometry geometry;
    std::mt19937_64 random{3};
    std::vector<double> crystal = std::vector<double>(geometry.crystal_count(), 1.0);  ///< relative counts
    std::uint64_t at = 10 * second_ticks;

    daemon::Second next() {
        daemon::Second s = daemon::Second::none(geometry);
        s.range = {at, at + second_ticks};
        s.length_s = 1;
        at += second_ticks;
        s.randoms.per_crystal.assign(geometry.crystal_count(), 0);
        for (std::uint32_t c = 0; c < geometry.crystal_count(); ++c) {
            const auto draw = [&](double mean) {
                return static_cast<std::uint32_t>(std::poisson_distribution<long>(mean * crystal[c])(random));
            };
            s.sums.unpaired[c] = draw(400);
            s.sums.grouped[c] = draw(100);
            s.sums.prompts[c] = draw(100);
        }
        return s;
    }
};

struct WatchedScanner {
    CountingDetector detector;
    daemon::DetectorWatch watch;

    explicit WatchedScanner(const config::Scanner& scanner)
        : detector{scanner.geometry}, watch(scanner.geometry, second_ticks) {
        watch.start_run(detector.at);
    }
    const std::vector<daemon::DetectorFault>& after(int seconds) {
        for (; seconds > 0; --seconds)
            watch.observe(detector.next());
        return *watch.faults();
    }
    void silence(std::uint32_t bdm, std::uint32_t du) {
        const config::Geometry& g = detector.geometry;
        for (std::uint32_t local = 0; local < g.crystals_of_unit(bdm * g.du_count + du); ++local)
            detector.crystal[g.crystal(bdm, du, local)] = 0;
    }
};

}  // namespace

TEST_CASE("any scanner: sums by unit and module are those of its crystals") {
    for (const config::Scanner& scanner : {odd_scanner(), example_scanner("box"), example_scanner("insert"),
                                           example_scanner("phoswich"), example_scanner("unequal-blocks")}) {
        INFO(scanner.name);
        const config::Geometry& g = scanner.geometry;
        const auto crystals = daemon::crystals_by_unit(g);
        CHECK(std::set(crystals.begin(), crystals.end()).size() == g.crystal_count());
        CountingDetector detector{g};
        const daemon::Second second = detector.next();
        const daemon::DetectorSums sums = daemon::detector_sums(second, g, crystals);
        REQUIRE(sums.units.size() == g.unit_count());
        double singles = 0;
        for (std::uint32_t bdm = 0; bdm < g.bdm_count; ++bdm) {
            double of_module = 0;
            for (std::uint32_t du = 0; du < g.du_count; ++du) {
                const std::uint32_t unit = bdm * g.du_count + du;
                double of_unit = 0;
                for (std::uint32_t local = 0; local < g.crystals_of_unit(unit); ++local) {
                    const std::uint32_t c = g.crystal(bdm, du, local);
                    of_unit += second.sums.unpaired[c] + second.sums.grouped[c];
                }
                REQUIRE(sums.units[unit].singles == of_unit);
                of_module += of_unit;
            }
            REQUIRE(sums.modules[bdm].singles == of_module);
            singles += of_module;
        }
        double all = 0;
        for (std::uint32_t c = 0; c < g.crystal_count(); ++c)
            all += second.sums.unpaired[c] + second.sums.grouped[c];
        CHECK(singles == all);
    }
}

TEST_CASE("any scanner: units that do not exist are not silent, those that do are named") {
    WatchedScanner w(odd_scanner());
    CHECK(w.after(12).empty());
    w.silence(0, 3);
    const auto faults = w.after(2);
    REQUIRE(faults.size() == 1);
    CHECK(faults[0].kind == FaultKind::silent_units);
    CHECK(faults[0].bdm == 0);
    CHECK(faults[0].part == 3);
    CHECK(faults[0].size == 1);
    // Before any run, too.
    CountingDetector detector{odd_scanner().geometry};
    daemon::DetectorWatch idle(detector.geometry, second_ticks);
    idle.observe(detector.next());
    CHECK(idle.faults()->empty());
}

TEST_CASE("any scanner: examples that are well have no faults, and a noisy crystal is named") {
    for (const char* const name : {"box", "insert", "phoswich", "unequal-blocks"}) {
        INFO(name);
        WatchedScanner w(example_scanner(name));
        CHECK(w.after(12).empty());
        const config::Geometry& g = w.detector.geometry;
        const std::uint32_t bdm = g.bdm_count - 1;
        const std::uint32_t noisy = g.crystal(bdm, 0, g.crystals_of_unit(bdm * g.du_count) - 1);
        w.detector.crystal[noisy] = 20;
        const auto faults = w.after(1);
        REQUIRE(faults.size() == 1);
        CHECK(faults[0].kind == FaultKind::noisy_crystal);
        CHECK(faults[0].bdm == bdm);
        CHECK(faults[0].part == noisy);
    }
}

TEST_CASE("any scanner: the share of data that arrived is that of modules that exist") {
    const config::Geometry g = odd_scanner().geometry;
    CountingDetector detector{g};
    daemon::Second second = detector.next();
    for (std::uint32_t bdm = 0; bdm < g.bdm_count; ++bdm)
        if (g.module_exists(bdm)) second.live[bdm] = 0.5;
    second.lost = 0;
    daemon::LiveSums live;
    live.add(second, g);
    CHECK(live.mean() == 0.5);
    CHECK_FALSE(live.of(1));
}
