#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <tuple>
#include <vector>

#include "daemon/synchrony/synchrony.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using daemon::SynchronyReport;
using daemon::TimedSingle;
using SynchronyState = daemon::ModuleSynchrony::SynchronyState;

namespace {

constexpr double pi = 3.14159265358979;
constexpr double tick_ns = 1.0 / 64;

/// A scanner of thin modules, and what arrives from it.
struct Scene {
    std::uint32_t ring = 12;
    std::uint32_t rows = 2;
    double radius_mm = 40;
    double pitch_mm = 25;            ///< of the rows
    double trues_per_s = 40'000;     ///< coincidences
    double singles_per_s = 400'000;  ///< others
    double seconds = 0.2;
    double x_mm = 0;  ///< of a point source
    double y_mm = 0;
    double window_ns = 5;  ///< of coincidences
    double line_mm = 15;   ///< half of the length of a line along x, instead; 0: the point
    std::map<std::uint32_t, double> late_ns{};
    std::uint32_t seed = 1;

    [[nodiscard]] daemon::SynchronyOptions options() const {
        daemon::SynchronyOptions o;
        config::Scanner scanner;
        scanner.geometry.channels = ring;
        scanner.geometry.modules = {1, 1, rows};
        scanner.geometry.bdm_count = ring * rows;
        scanner.geometry.du_count = 1;
        scanner.dimensions.ring_radius_mm = radius_mm;
        scanner.dimensions.crystal_pitch_z_mm = pitch_mm;
        o.places = daemon::module_places(scanner);
        o.tick_ns = tick_ns;
        o.window = static_cast<std::uint32_t>(window_ns / tick_ns);
        o.diameter_mm = 2 * radius_mm;
        return o;
    }

    /// Both ends of a line through (x, y): module around the ring and ns on the way.
    [[nodiscard]] std::pair<std::uint32_t, double> end(double x, double y, double angle) const {
        const double along = x * std::cos(angle) + y * std::sin(angle);
        const double way = -along + std::sqrt(along * along - x * x - y * y + radius_mm * radius_mm);
        const double at = std::atan2(y + way * std::sin(angle), x + way * std::cos(angle));
        const double part = at / (2 * pi) + 1.0 + 0.5 / ring;
        return {static_cast<std::uint32_t>((part - std::floor(part)) * ring) % ring, way / 299.792458};
    }

    [[nodiscard]] std::vector<TimedSingle> hits() const {
        std::mt19937_64 random(seed);
        std::uniform_real_distribution<double> even(0, 1);
        std::normal_distribution<double> resolution(0, 0.2);
        std::vector<TimedSingle> hits;
        const auto add = [&](double time_ns, std::uint32_t module) {
            const auto late = late_ns.find(module);
            const double delay = late == late_ns.end() ? 0 : late->second;
            hits.push_back({static_cast<std::uint64_t>((time_ns + delay + 1e7) / tick_ns), module});
        };
        const auto draw = [&](double per_s) {
            return std::poisson_distribution<std::uint64_t>(per_s * seconds)(random);
        };
        for (std::uint64_t i = draw(trues_per_s); i > 0; --i) {
            const double time = even(random) * seconds * 1e9;
            const double angle = 2 * pi * even(random);
            const double x = line_mm > 0 ? line_mm * (2 * even(random) - 1) : x_mm;
            for (const double direction : {angle, angle + pi}) {
                const auto [module, way] = end(x, y_mm, direction);
                const auto row = static_cast<std::uint32_t>(even(random) * rows);
                add(time + way + resolution(random), row * ring + module);
            }
        }
        for (std::uint64_t i = draw(singles_per_s); i > 0; --i)
            add(even(random) * seconds * 1e9, static_cast<std::uint32_t>(even(random) * ring * rows));
        std::sort(hits.begin(), hits.end(),
                  [](const TimedSingle& a, const TimedSingle& b) { return a.time < b.time; });
        return hits;
    }

    [[nodiscard]] SynchronyReport judged() const { return judge_synchrony(hits(), options()); }
};

/// Modules that are reported, with ns by which they are late; NaN: without partners.
std::map<std::uint32_t, double> reported(const SynchronyReport& report) {
    std::map<std::uint32_t, double> found;
    for (std::uint32_t m = 0; m < report.modules.size(); ++m) {
        if (report.modules[m].state == SynchronyState::out_of_step)
            found[m] = report.modules[m].late_ticks * tick_ns;
        if (report.modules[m].state == SynchronyState::no_partners) found[m] = std::nan("");
    }
    return found;
}

void check_reports(const Scene& scene) {
    const auto found = reported(scene.judged());
    const std::string wanted = scene.late_ns.empty() ? "" : std::to_string(scene.late_ns.begin()->second);
    const std::string got = found.empty() ? "" : std::to_string(found.begin()->second);
    CAPTURE(wanted, got);
    REQUIRE(found.size() == scene.late_ns.size());
    for (const auto& [module, late] : scene.late_ns) {
        REQUIRE(found.count(module) == 1);
        CHECK(std::abs(found.at(module) - late) < 0.3);
    }
}

}  // namespace

TEST_CASE("pairs of hits are those of a plain search, also in bursts of one module", "[synchrony]") {
    std::mt19937 random(5);
    std::vector<TimedSingle> hits;
    for (std::uint64_t time = 1000; hits.size() < 3000; time += random() % 4) {
        const std::size_t row = random() % 5 == 0 ? random() % 40 : 1;
        hits.insert(hits.end(), row, {time, static_cast<std::uint32_t>(random() % 3)});
    }
    using Pair = std::tuple<std::uint32_t, std::uint32_t, std::int64_t>;
    for (const std::int64_t reach : {0, 1, 30}) {
        std::vector<Pair> expected;
        for (std::size_t i = 0; i < hits.size(); ++i) {
            for (std::size_t j = i + 1; j < hits.size(); ++j) {
                const auto apart = static_cast<std::int64_t>(hits[j].time - hits[i].time);
                if (apart <= reach && hits[i].module != hits[j].module)
                    expected.emplace_back(hits[i].module, hits[j].module, apart);
            }
        }
        std::vector<Pair> found;
        daemon::for_each_pair(hits, reach, [&](std::uint32_t a, std::uint32_t b, std::int64_t apart) {
            found.emplace_back(a, b, apart);
        });
        CHECK(found == expected);
    }
}

TEST_CASE("a module out of step is found with its offset", "[synchrony]") {
    for (const double late : {3.0, -3.0, 10.0, -10.0, 100.0, 1500.0, 5e3, -40e3, 4e5}) {
        Scene scene;
        scene.late_ns[7] = late;
        check_reports(scene);
    }
}

TEST_CASE("what is found does not depend on the coincidence window", "[synchrony]") {
    std::uint32_t seed = 0;
    for (const double window : {0.5, 2.0, 15.0, 40.0, 78.0, 300.0}) {
        CAPTURE(window);
        for (const double line : {0.0, 15.0}) {
            Scene scene;
            scene.window_ns = window;
            scene.line_mm = line;
            scene.seed = ++seed;
            check_reports(scene);
            scene.late_ns[7] = 10;
            check_reports(scene);
        }
    }
}

TEST_CASE("with a point at the centre, a module is compared with those opposite to it", "[synchrony]") {
    Scene scene;
    scene.line_mm = 0;
    CHECK(scene.judged().known() == 24);
    check_reports(scene);
    scene.late_ns = {{7, 10}, {20, -30}};
    check_reports(scene);
}

TEST_CASE("modules with delays of their own are found at once", "[synchrony]") {
    Scene scene;
    scene.late_ns = {{2, 10}, {3, -25}, {9, 400}, {20, 800}};
    check_reports(scene);
    scene.late_ns = {{2, 100}, {3, 100}, {9, 200}, {20, 300}};  // multiples of a period
    check_reports(scene);
    scene.late_ns = {{2, 30e3}, {3, 30e3}, {9, 60e3}};
    check_reports(scene);
}

TEST_CASE("half of the modules are found out of step with the half of module 0", "[synchrony]") {
    for (const double late : {10.0, 100.0, 5e3}) {
        for (const bool every_other : {false, true}) {
            Scene scene;
            scene.rows = 1;
            scene.ring = 12;
            // In the wide search, what is opposite to a module must be known.
            if (every_other && late > 2e3) continue;
            for (std::uint32_t m = 0; m < 12; ++m)
                if (every_other ? m % 2 == 1 : m >= 6) scene.late_ns[m] = late;
            check_reports(scene);
        }
    }
}

TEST_CASE("a module out of reach, or that sees no source, has no partners", "[synchrony]") {
    Scene scene;
    scene.late_ns[7] = 5e6;
    const auto report = scene.judged();
    CHECK(report.modules[7].state == SynchronyState::no_partners);
    CHECK(reported(report).size() == 1);
}

TEST_CASE("sources off the centre, lines, low rates and randoms are no modules out of step", "[synchrony]") {
    std::vector<Scene> healthy(12);
    for (std::size_t i = 1; i < 5; ++i)
        healthy[i].line_mm = 0;
    healthy[1].x_mm = 30;
    healthy[2].x_mm = 39;
    healthy[3].radius_mm = 400;
    healthy[3].x_mm = 390;
    healthy[4].radius_mm = 400;
    healthy[4].y_mm = -200;
    healthy[5].line_mm = 38;
    healthy[6].trues_per_s = 30;
    healthy[6].singles_per_s = 300;
    healthy[7].trues_per_s = 0;
    healthy[8].trues_per_s = 0;
    healthy[8].singles_per_s = 3e6;
    healthy[9].trues_per_s = 20'000;
    healthy[9].singles_per_s = 5e6;
    healthy[9].seconds = 0.05;
    healthy[10].ring = 2;
    healthy[11].ring = 4;
    healthy[11].radius_mm = 400;
    healthy[11].line_mm = 390;
    for (std::size_t i = 0; i < healthy.size(); ++i) {
        for (std::uint32_t seed = 1; seed <= 3; ++seed) {
            healthy[i].seed = seed;
            CAPTURE(i, seed);
            CHECK(reported(healthy[i].judged()).empty());
        }
    }
}

TEST_CASE("two modules that see little but each other are not out of step by a few stray pairs",
          "[synchrony]") {
    Scene scene;
    scene.rows = 1;
    scene.window_ns = 80;
    std::vector<TimedSingle> hits;
    std::uint64_t time = 0;
    const auto add = [&](std::uint32_t a, std::uint32_t b, int pairs, double late_ns) {
        for (; pairs > 0; --pairs) {
            time += static_cast<std::uint64_t>(1e6 / tick_ns);
            hits.push_back({time, a});
            hits.push_back({time + static_cast<std::uint64_t>(late_ns / tick_ns), b});
        }
    };
    for (const std::uint32_t m : {1, 2, 3, 4}) {
        add(m, m + 6, 100, 0);
        add(m, m + 7, 100, 0);
    }
    add(0, 6, 130, 0);
    add(0, 7, 3, 2.5);
    const SynchronyReport report = judge_synchrony(hits, scene.options());
    CHECK(reported(report).empty());
    CHECK(report.modules[0].error_ticks * tick_ns > 0.5);
    CHECK(report.modules[2].error_ticks * tick_ns < 0.5);
}

TEST_CASE("what is known of a healthy scanner", "[synchrony]") {
    const SynchronyReport report = Scene{}.judged();
    CHECK(report.complete);
    CHECK(report.known() == 24);
    for (const auto& module : report.modules) {
        CHECK(module.state == SynchronyState::in_step);
        CHECK(std::abs(module.late_ticks * tick_ns) < 0.2);
        CHECK(module.error_ticks * tick_ns < 0.05);
        CHECK(module.pairs > 200);
    }
    CHECK_FALSE(judge_synchrony({}, Scene{}.options()).complete);
}

namespace {

/// Coincidences of a line source along the axis and lone singles, in modules that face each other: in the
/// mean `coincidences` of each two of them.
std::vector<TimedSingle> hits_of(const std::vector<daemon::ModulePlace>& places,
                                 const std::map<std::uint32_t, double>& late_ns,
                                 std::size_t coincidences = 300) {
    std::mt19937_64 random(5);
    std::uniform_real_distribution<double> even(0, 1);
    std::vector<std::pair<std::uint32_t, std::uint32_t>> partners;
    for (std::uint32_t a = 0; a < places.size(); ++a) {
        for (std::uint32_t b = a + 1; b < places.size(); ++b) {
            const config::Vector3& p = places[a].middle_mm;
            const config::Vector3& q = places[b].middle_mm;
            const double across = p[0] * q[0] + p[1] * q[1];
            const double lengths = std::hypot(p[0], p[1]) * std::hypot(q[0], q[1]);
            if (places[a].exists && places[b].exists && across < -0.4 * lengths) partners.emplace_back(a, b);
        }
    }
    std::vector<TimedSingle> hits;
    const auto add = [&](double time_ns, std::uint32_t module) {
        const auto late = late_ns.find(module);
        const double delay = late == late_ns.end() ? 0 : late->second;
        hits.push_back({static_cast<std::uint64_t>((time_ns + delay + 1e7) / tick_ns), module});
    };
    for (std::size_t i = 0; i < coincidences * partners.size(); ++i) {
        const auto [a, b] = partners[random() % partners.size()];
        const double time = even(random) * 2e8;
        add(time + 0.4 * even(random), a);
        add(time + 0.4 * even(random), b);
        const auto lone = static_cast<std::uint32_t>(random() % places.size());
        if (places[lone].exists) add(even(random) * 2e8, lone);
    }
    std::sort(hits.begin(), hits.end(),
              [](const TimedSingle& a, const TimedSingle& b) { return a.time < b.time; });
    return hits;
}

}  // namespace

TEST_CASE("modules out of step are found in any arrangement", "[synchrony]") {
    for (const char* const name : {"box", "two-heads", "phoswich", "insert", "unequal-blocks", "hexagon",
                                   "partial-ring", "two-rings"}) {
        CAPTURE(name);
        const config::Scanner scanner = config::load_scanner(PETACQ_SOURCE_DIR "/config/examples/scanners/" +
                                                             std::string(name) + ".scanner.json");
        daemon::SynchronyOptions options;
        options.places = daemon::module_places(scanner);
        options.tick_ns = tick_ns;
        options.window = static_cast<std::uint32_t>(5 / tick_ns);
        options.diameter_mm = 200;
        REQUIRE(options.places.size() == scanner.geometry.bdm_count);
        CHECK(reported(judge_synchrony(hits_of(options.places, {}), options)).empty());
        const auto found = reported(judge_synchrony(hits_of(options.places, {{1, 20}}), options));
        REQUIRE(found.size() == 1);
        CHECK(std::abs(found.at(1) - 20) < 0.3);
    }
}

TEST_CASE("modules: beyond a thousand, those in a row are compared as one", "[synchrony]") {
    const config::Scanner scanner = config::scanner_from_json(nlohmann::json::parse(R"({
        "name": "many", "tick_ps": 10, "position_size": 4, "frame_version": 2,
        "module_types": [{"name": "block", "layers": [{"y": {"count": 1, "pitch_mm": 4}, "z": {"count": 1, "pitch_mm": 4}, "length_mm": 10}]}],
        "modules": [{"type": "block", "ring": {"count": 128, "radius_mm": 120}, "along_z": {"count": 17, "pitch_mm": 5}}]})"));
    REQUIRE(scanner.geometry.bdm_count == 2176);
    daemon::SynchronyOptions options;
    options.places = daemon::module_places(scanner);
    REQUIRE(options.places.size() == 544);
    CHECK(daemon::compared_modules(scanner.geometry).of_module(2175) == 543);
    CHECK(options.places[543].middle_mm[2] == Approx(40));
    CHECK(options.places[543].row == 16);
    options.tick_ns = tick_ns;
    options.window = static_cast<std::uint32_t>(5 / tick_ns);
    options.diameter_mm = 300;
    const auto report = judge_synchrony(hits_of(options.places, {{7, 20}}, 3), options);
    CHECK(report.modules.size() == 544);
    const auto found = reported(report);
    REQUIRE(found.size() == 1);
    CHECK(std::abs(found.at(7) - 20) < 0.3);
}

TEST_CASE("places of modules: rows along the axis, lines across it, and gaps between numbers",
          "[synchrony]") {
    const config::Scanner ring =
        config::load_scanner(PETACQ_SOURCE_DIR "/config/examples/small.scanner.json");
    const auto places = daemon::module_places(ring);
    const std::uint32_t around = ring.geometry.modules_in_ring();
    for (std::uint32_t m = 0; m < places.size(); ++m) {
        CHECK(places[m].exists);
        CHECK(places[m].row == m / around);
        CHECK(places[m].line == m % around);
    }
    const config::Scanner gaps = config::scanner_from_json(nlohmann::json::parse(R"({
        "name": "gaps", "tick_ps": 10, "position_size": 8,
        "module_types": [{"name": "block", "layers": [{"y": {"count": 2, "pitch_mm": 4}, "z": {"count": 2, "pitch_mm": 4}, "length_mm": 10}]}],
        "modules": [{"type": "block", "ring": {"count": 4, "radius_mm": 20}}],
        "channel_map": {"units": [{"bdm": 0, "du": 0, "module": 0}, {"bdm": 2, "du": 0, "module": 1},
                                  {"bdm": 3, "du": 0, "module": 2}, {"bdm": 3, "du": 1, "module": 3}]}})"));
    const auto of_gaps = daemon::module_places(gaps);
    REQUIRE(of_gaps.size() == 4);
    CHECK(of_gaps[0].exists);
    CHECK_FALSE(of_gaps[1].exists);
    CHECK(of_gaps[0].middle_mm[0] == Approx(30));
    CHECK(of_gaps[0].length_mm == Approx(8));
    CHECK(of_gaps[3].middle_mm[0] == Approx(-15));  // of two modules, at (-30, 0) and (0, -30)
}
