// From a run directory and its calibration to the next calibration.
#include "tools/petcal/steps/derive_time.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "config/base/error.hpp"
#include "config/calibration.hpp"
#include "daemon/listmode/writer.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/tools/petcal/estimate/drawn_pairs.hpp"
#include "tests/tools/petcal/estimate/simulated_scan.hpp"
#include "tests/tools/petsim/common.hpp"
#include "tools/petcal/report/reports.hpp"

using namespace petacq;

namespace {

/// As the daemon pairs singles with a calibration, without its window; every tenth prompt has a delayed.
gpu::RecordVector<gpu::Coincidence> records_of(const std::vector<test::SimulatedPair>& pairs,
                                               const config::Calibration& calibration) {
    gpu::RecordVector<gpu::Coincidence> out;
    std::uint64_t time = 1'000'000;
    for (const test::SimulatedPair& p : pairs) {
        gpu::Coincidence c;
        c.time = time += 1000;
        c.crystal_a = p.a;
        c.crystal_b = p.b;
        auto dt =
            static_cast<std::int64_t>(p.ticks) + calibration.time_offset[p.b] - calibration.time_offset[p.a];
        if (dt < 0) {
            std::swap(c.crystal_a, c.crystal_b);
            dt = -dt;
        }
        c.dt = static_cast<std::uint32_t>(dt);
        out.push_back(c);
        if (time % 10'000 != 0) continue;
        c.kind = gpu::Kind::delayed;
        c.dt = 77;
        out.push_back(c);
    }
    return out;
}

void write_run(const std::filesystem::path& run, const std::vector<test::SimulatedPair>& pairs,
               const config::Calibration& calibration) {
    std::filesystem::create_directories(run);
    test::write_file(run / "run.json", nlohmann::json{{"calibration_sha256", calibration.sha256}}.dump());
    daemon::ListModeWriter writer(run / "coincidences.plm", {}, nlohmann::json::object());
    writer.append(records_of(pairs, calibration));
    writer.finish();
}

}  // namespace

TEST_CASE("derive time: mistakes of the scan are named") {
    const test::TemporaryDirectory dir;
    const config::Scanner scanner = test::small_scanner();
    const config::Geometry& g = scanner.geometry;
    config::save_calibration(dir / "c.h5", g, test::small_calibration(20));
    const auto calibration = config::load_calibration(dir / "c.h5", g);
    sim::DetectorModel model;
    model.seed = 17;
    model.time_spread_ps = 100;
    const sim::Detector detector = sim::make_detector(scanner, model);
    const auto refusal = [&](const std::string& name, const std::vector<test::SimulatedPair>& pairs,
                             const std::vector<double>& cylinder) -> std::string {
        write_run(dir / name, pairs, calibration);
        try {
            (void)petcal::derive_times(scanner, {dir / "c.h5", dir / name, dir / "next.h5", cylinder, {}});
        } catch (const config::Error& e) {
            return e.what();
        }
        return "";
    };
    sim::Options scan = test::cylinder_scan(9, 20, 5, 0.1, 1);
    scan.seed = 17;
    const auto pairs = test::simulate_pairs(scanner, scan, detector, 640);
    CHECK_THAT(
        refusal("moved", pairs, {3, -2, 0, 9, 20}),
        petacq::test::contains("the source is not where it was said to be: its prompts come from around ") &&
            petacq::test::contains("--cylinder says 3, -2, 0: 3.") &&
            petacq::test::contains("mm off across the axis"));

    const auto exchanged = [&](std::uint32_t crystal) {
        for (const auto& [from, to] : {std::pair(4U, 15U), std::pair(15U, 4U)})
            for (std::uint32_t du = 0; du < g.du_count; ++du)
                for (std::uint32_t local = 0; local < g.crystals_per_du(); ++local)
                    if (g.crystal(from, du, local) == crystal) return g.crystal(to, du, local);
        return crystal;
    };
    std::vector<std::uint32_t> names;
    for (std::uint32_t i = 0; i < g.crystal_count(); ++i)
        names.push_back(exchanged(i));
    auto wrong = pairs;
    for (test::SimulatedPair& p : wrong)
        p = {names[p.a], names[p.b], p.ticks, p.random};
    CHECK_THAT(refusal("exchanged", wrong, {0, 0, 0, 9, 20}),
               petacq::test::contains("BDMs 4 and 15 seem to be exchanged: ") &&
                   petacq::test::contains("check their cables and numbers"));

    scan.activity[0].at = {0, 0, -12};
    const auto at_one_end = test::simulate_pairs(scanner, scan, detector, 640);
    CHECK_THAT(refusal("short", at_one_end, {0, 0, -12, 9, 20}),
               petacq::test::contains("the source does not reach all crystals: rings ") &&
                   petacq::test::contains(" to 23 of 24 have less than a fifth of the prompts") &&
                   petacq::test::contains("--cylinder says -22 to -2 mm"));
    CHECK(!std::filesystem::exists(dir / "next.h5"));
}

TEST_CASE("derive time: the extent of the source is not resolution, and may hide it") {
    petcal::DerivedTimes times;
    times.tick_ps = 10;
    times.offsets.sigma_ticks = 13;
    times.source_ps2 = 50 * 50;
    CHECK(std::abs(times.fwhm_ps() - 120 * 2.35482) < 0.01);
    times.source_ps2 = 125 * 125;
    CHECK(times.fwhm_ps() == 0);
}

TEST_CASE("derive time: few prompts are said, with how many would do") {
    petcal::DerivedTimes times;
    times.prompts = 30'000;
    times.offsets.pairs = {900, 50, 60, 70, 0};
    CHECK(petcal::advice_on_prompts(times) ==
          "few prompts: 60 for each crystal (median); 200, about 100000 in all, make offsets that move the "
          "peak of a "
          "pair by less than a tenth of its sigma");
    times.offsets.pairs = {900, 200, 0};
    CHECK(petcal::advice_on_prompts(times).empty());
}

TEST_CASE("derive time: the next calibration has the true offsets") {
    const test::TemporaryDirectory dir;
    const config::Scanner scanner = test::small_scanner();
    config::Calibration old = test::small_calibration(40);
    config::save_calibration(dir / "old.h5", scanner.geometry, old);
    old = config::load_calibration(dir / "old.h5", scanner.geometry);

    sim::DetectorModel model;
    model.time_spread_ps = 1000;
    const sim::Detector detector = sim::make_detector(scanner, model);
    sim::Options scan = test::cylinder_scan(10, 50, 5, 0.4, 1);
    scan.activity[0].at = {10, 0, 0};
    const auto pairs = test::simulate_pairs(scanner, scan, detector, 640);
    const auto run = dir / "run";
    write_run(run, pairs, old);

    petcal::DeriveTimeOptions options{dir / "old.h5", run, dir / "next.h5", {10, 0, 0, 10, 50}, {}};
    const auto found = petcal::derive_times(scanner, options);
    CHECK(found.prompts == pairs.size());
    CHECK(found.missed < found.prompts / 8);
    CHECK(found.tick_ps == scanner.tick_ps);
    const auto next = config::load_calibration(dir / "next.h5", scanner.geometry);
    CHECK(next.origin.at("calibration_sha256") == old.sha256);
    CHECK(next.position_table == old.position_table);
    CHECK(next.energy_factor == old.energy_factor);
    test::Moments error;
    for (std::size_t i = 0; i < next.time_offset.size(); ++i)
        error.add(next.time_offset[i] * scanner.tick_ps - double{detector.crystals[i].time_offset_ps});
    CAPTURE(2 * pairs.size() / next.time_offset.size());
    CHECK(error.sigma() < 30);

    // Two photons of 400 ps each.
    CHECK(std::abs(found.fwhm_ps() / (400 * std::sqrt(2.0)) - 1) < 0.05);
    REQUIRE(next.coincidence_fwhm_ps());
    CHECK(std::abs(*next.coincidence_fwhm_ps() - found.fwhm_ps()) < 0.1);
    CHECK_FALSE(old.coincidence_fwhm_ps());
    // Most chords of the cylinder are 10 to 20 mm: (chord / c)^2 / 3.
    CHECK(found.source_ps2 > 370);
    CHECK(found.source_ps2 < 1490);

    // The report shows the same. Randoms and scatter lie outside of the peak.
    const auto in_peak = [](const std::vector<double>& ps) {
        return std::count_if(ps.begin(), ps.end(), [](double d) { return std::abs(d) < 500; });
    };
    CHECK(found.before_ps.size() > 10'000);
    CHECK(found.after_ps.size() == found.before_ps.size());
    CHECK(in_peak(found.after_ps) > 2 * in_peak(found.before_ps));
    petcal::write_time_report(dir / "times.html", scanner, found);
    const std::string page = test::read_file(dir / "times.html");
    for (const char* text : {"Time offsets of ", "All crystals have an offset.", "data:image/png;base64,",
                             "Changes of the offsets"}) {
        INFO(text);
        CHECK(page.find(text) != std::string::npos);
    }

    // A run that was taken with another calibration.
    options.calibration = dir / "next.h5";
    CHECK_THROWS_WITH(petcal::derive_times(scanner, options),
                      petacq::test::contains("taken with the calibration of SHA-256"));
    options.calibration = dir / "old.h5";
    options.cylinder[3] = 0;
    CHECK_THROWS_WITH(petcal::derive_times(scanner, options),
                      petacq::test::contains("a radius and a length"));
    options.cylinder.clear();
    CHECK_THROWS_WITH(petcal::derive_times(scanner, options),
                      petacq::test::contains("--cylinder or --point"));
    options.point = {10, 0, 0};
    std::filesystem::remove(run / "coincidences.plm");
    CHECK_THROWS_AS(petcal::derive_times(scanner, options), config::Error);
}

TEST_CASE("derive time: modules of the long form that no pair joins are named") {
    const test::TemporaryDirectory dir;
    // The box, with crystals so large that few pairs do.
    nlohmann::json described = config::to_json(test::example_of_long_form("box"));
    nlohmann::json& type = described["module_types"][0];
    for (const char* const row : {"y", "z"})
        type["layers"][0][row].merge_patch({{"count", 4}, {"pitch_mm", 6}});
    type["units"] = nlohmann::json::parse(R"([{"y": [0, 1]}, {"y": [2, 3]}])");
    const config::Scanner scanner = config::scanner_from_json(described);
    config::Calibration old;
    const config::Geometry& g = scanner.geometry;
    old.position_table.assign(std::size_t{g.unit_count()} * g.position_size * g.position_size, 255);
    old.bins = 1;
    old.energy_factor.assign(std::size_t{g.unit_count()} * g.crystals_per_du(), 1);
    old.time_offset.assign(g.crystal_count(), 0);
    config::save_calibration(dir / "old.h5", g, old);
    old = config::load_calibration(dir / "old.h5", g);

    // Panels pair with the opposite ones alone.
    const auto is_x = [&](std::uint32_t crystal) {
        return std::abs(crystal_place(scanner, crystal).outward[0]) > 0.5;
    };
    test::DrawnPairs drawn(scanner, 4);
    std::vector<test::SimulatedPair> pairs;
    for (int i = 0; i < 200'000; ++i) {
        const auto pair = drawn.next({0, 0, 0, 14, 60});
        if (pair && is_x(pair->a) == is_x(pair->b))
            pairs.push_back({pair->a, pair->b, static_cast<float>(pair->ticks), false});
    }
    write_run(dir / "run", pairs, old);
    const petcal::DeriveTimeOptions options{
        dir / "old.h5", dir / "run", dir / "next.h5", {0, 0, 0, 14, 60}, {}};
    const auto found = petcal::derive_times(scanner, options);
    CHECK(found.offsets.groups == 2);
    std::set<std::uint32_t> along_x;
    for (std::uint32_t module = 0; module < scanner.arrangement->modules().size(); ++module)
        if (is_x(scanner.arrangement->modules()[module].first_crystal)) along_x.insert(module);
    const std::string text = petcal::groups_text(g, found.offsets);
    CAPTURE(text);
    CHECK(std::count(text.begin(), text.end(), ';') == 1);
    for (const std::uint32_t module : along_x)
        for (std::uint32_t du = 0; du < g.du_count; ++du)
            for (std::uint32_t local = 0; local < g.crystals_of_unit(module * g.du_count + du); local += 3) {
                const std::uint32_t crystal = g.crystal(module, du, local);
                if (std::isfinite(found.offsets.error_ticks[crystal]))
                    REQUIRE(found.offsets.group_of[crystal] ==
                            found.offsets.group_of[g.crystal(*along_x.begin(), 0, 3)]);
            }
    petcal::write_time_report(dir / "times.html", scanner, found);
    CHECK_THAT(test::read_file(dir / "times.html"),
               petacq::test::contains("Nothing is known of the offsets between the groups: BDMs "));
}
