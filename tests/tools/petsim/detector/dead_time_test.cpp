// Pile-up in a block and both kinds of dead time, against a plain simulation of each unit.
#include <algorithm>
#include <cmath>

#include "tests/support/catch.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/tools/petsim/common.hpp"
#include "tools/petsim/detector/make_detector.hpp"

#include <nlohmann/json.hpp>

using namespace petacq;

namespace {

struct Reading {
    std::uint64_t time;
    int x;
    int y;
    int adc;
    int hits;
    bool operator==(const Reading&) const = default;
};

using ByUnit = std::map<std::pair<int, int>, std::vector<Reading>>;

ByUnit readings(const test::Recorded& run) {
    ByUnit out;
    const auto frames = test::frames_of(run);
    for (std::size_t i = 0; i < frames.size(); ++i) {
        const auto& f = frames[i];
        out[{f.bdm, f.du}].push_back({f.time, f.x, f.y, f.energy, run.truth[i].hits});
    }
    for (auto& [unit, list] : out)
        std::stable_sort(list.begin(), list.end(),
                         [](const Reading& a, const Reading& b) { return a.time < b.time; });
    return out;
}

/// What a unit makes of all its hits.
struct Plain {
    std::vector<Reading> frames;
    std::uint64_t lost = 0;
    std::uint64_t piled_up = 0;
};

Plain plain(const std::vector<Reading>& hits, std::uint64_t window, std::uint64_t dead, bool paralysable) {
    Plain out;
    std::uint64_t ready = 0;
    std::vector<bool> used(hits.size());
    for (std::size_t i = 0; i < hits.size(); ++i) {
        if (used[i]) continue;
        if (hits[i].time < ready) {
            ++out.lost;
            if (paralysable) ready = hits[i].time + dead;
            continue;
        }
        ready = hits[i].time + dead;
        Reading pile = hits[i];
        double light = pile.adc;
        double x = light * pile.x;
        double y = light * pile.y;
        for (std::size_t j = i + 1; j < hits.size() && hits[j].time < hits[i].time + window; ++j) {
            used[j] = true;
            ++pile.hits;
            ++out.piled_up;
            if (paralysable) ready = hits[j].time + dead;
            light += hits[j].adc;
            x += static_cast<double>(hits[j].adc) * hits[j].x;
            y += static_cast<double>(hits[j].adc) * hits[j].y;
        }
        if (pile.hits > 1) {
            pile.adc = static_cast<int>(std::min(light, 65535.0));
            pile.x = static_cast<int>(std::floor(x / light + 0.5));
            pile.y = static_cast<int>(std::floor(y / light + 0.5));
        }
        out.frames.push_back(pile);
    }
    return out;
}

sim::Options busy(double duration_s) {
    auto o = test::point_options(0, duration_s);
    o.physics.intrinsic_hz = 10'000;  // 200,000 per second and unit
    return o;
}

}  // namespace

TEST_CASE("pile-up and dead time are those of a plain simulation of each unit", "[petsim][detector]") {
    const auto scanner = test::small_scanner();
    const auto calibration = test::small_calibration();
    const auto detector = sim::make_detector(scanner, {});
    const sim::Detector* const with = GENERATE(false, true) ? &detector : nullptr;
    const bool paralysable = GENERATE(false, true);
    const double window_ns = GENERATE(0.0, 300.0, 2000.0);
    CAPTURE(with != nullptr, paralysable, window_ns);
    auto options = busy(0.002);
    const auto all = readings(test::record(scanner, calibration, options, with));
    options.physics.dead_time_ticks = 100'000;  // 1.6 us
    options.physics.paralysable = paralysable;
    options.physics.block_pile_up_ns = window_ns;
    const auto run = test::record(scanner, calibration, options, with);
    const auto found = readings(run);
    std::uint64_t lost = 0;
    std::uint64_t piled_up = 0;
    std::uint64_t hits = 0;
    const std::uint64_t window = config::ticks_of(window_ns * 1e-9, scanner);
    for (const auto& [unit, list] : all) {
        const Plain expected = plain(list, window, options.physics.dead_time_ticks, paralysable);
        REQUIRE(found.at(unit) == expected.frames);
        lost += expected.lost;
        piled_up += expected.piled_up;
        hits += list.size();
    }
    const auto total = run.statistics.total();
    CHECK(total.hits == hits);
    CHECK(total.dead_time == lost);
    CHECK(total.piled_up == piled_up);
    CHECK(total.hits == total.frames + total.dead_time + total.piled_up + total.silenced);
    if (window_ns > 0) CHECK(piled_up > 300);
    std::uint64_t in_truth = 0;
    for (const auto& t : run.truth)
        in_truth += t.hits - 1U;
    CHECK(in_truth == piled_up);
}

TEST_CASE("dead time takes its share of a Poisson process", "[petsim][detector]") {
    const auto scanner = test::small_scanner();
    auto options = busy(0.02);
    options.physics.dead_time_ticks = 200'000;
    options.physics.paralysable = GENERATE(false, true);
    const auto run = test::record(options);
    const auto total = run.statistics.total();
    const double tau = 200'000 * scanner.tick_ps * 1e-12;
    const double n = static_cast<double>(total.hits) / options.duration_s / (24.0 * 6);
    const double m = static_cast<double>(total.frames) / options.duration_s / (24.0 * 6);
    REQUIRE(n * tau > 0.4);
    CHECK(m ==
          Approx(options.physics.paralysable ? n * std::exp(-n * tau) : n / (1 + n * tau)).epsilon(0.01));
}

TEST_CASE("tags of dead time count the blind time of a paralysable unit", "[petsim][detector]") {
    const auto scanner = test::small_scanner();
    auto options = busy(0.02);
    options.physics.dead_time_ticks = 200'000;
    options.physics.paralysable = true;
    options.tags.dead_time = {5, 0.019};
    const auto run = test::record(options);
    const double tau = 200'000 * scanner.tick_ps * 1e-12;
    const double n = static_cast<double>(run.statistics.total().hits) / options.duration_s / (24.0 * 6);
    std::size_t tags = 0;
    for (const auto& t : run.truth) {
        if ((t.flags & sim::truth_tag) == 0) continue;
        ++tags;
        const double ticks = static_cast<double>(t.annihilation & 0xFFFFFFFFU);
        // A unit is ready if no hit came within the last tau.
        CHECK(ticks * scanner.tick_ps * 1e-12 / 0.019 == Approx(1 - std::exp(-n * tau)).epsilon(0.03));
    }
    CHECK(tags == 24);
}

TEST_CASE("truth files of both versions", "[petsim][detector]") {
    const test::TemporaryDirectory dir;
    const bool with_hits = GENERATE(false, true);
    std::vector<sim::TruthRecord> records(1000);
    for (std::uint32_t i = 0; i < records.size(); ++i) {
        records[i].annihilation = i;
        records[i].epoch = static_cast<std::uint16_t>(i);
        records[i].true_crystal = 7 * i;
        records[i].true_energy = 0.5F * static_cast<float>(i);
        records[i].hits = 2;
    }
    {
        sim::TruthWriter writer(dir / "truth", {{"a", 1}}, with_hits);
        writer.add(records);
        writer.close();
    }
    CHECK(std::filesystem::file_size(dir / "truth") == 64 + records.size() * (with_hits ? 64U : 40U));
    const auto found = sim::read_truth(dir / "truth");
    REQUIRE(found.size() == records.size());
    for (std::size_t i = 0; i < records.size(); ++i) {
        REQUIRE(found[i].annihilation == i);
        REQUIRE(found[i].epoch == i);
        REQUIRE(found[i].true_crystal == (with_hits ? 7 * i : 0));
        REQUIRE(found[i].hits == (with_hits ? 2 : 0));
    }
}
