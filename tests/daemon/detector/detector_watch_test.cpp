// Faults of the detector are found within the second after them, with the right size; nothing else is.
#include <cmath>
#include <functional>
#include <random>

#include "daemon/detector/detector_watch.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using FaultKind = daemon::DetectorFault::FaultKind;

namespace {

constexpr std::uint64_t ticks_per_s = 16'000'000'000;  // 62.5 ps
constexpr double tick_ns = 0.0625;

/// A ring of eight modules, each of two units of 4 x 4 crystals.
config::Geometry ring() {
    config::Geometry g;
    g.channels = 8;
    g.blocks = {1, 2, 1};
    g.crystals = {1, 4, 4};
    g.bdm_count = 8;
    g.du_count = 2;
    g.position_size = 16;
    return g;
}

/// Makes seconds from rates. Each module pairs with the three opposite ones.
struct Detector {
    std::mt19937_64 random{7};
    double activity = 1;             ///< relative
    double pairs_per_second = 2000;  ///< of two modules that face each other
    std::vector<double> late_ns = std::vector<double>(8);
    std::vector<double> gain = std::vector<double>(8, 1.0);
    std::vector<double> crystal = std::vector<double>(ring().crystal_count(), 1.0);  ///< relative counts
    std::uint64_t at = 100 * ticks_per_s;

    double noisy(double mean) { return static_cast<double>(std::poisson_distribution<long>(mean)(random)); }

    daemon::Second next(double share_before = 0, const std::function<void()>& change = {}) {
        const config::Geometry g = ring();
        daemon::Second s = daemon::Second::none(g);
        s.range = {at, at + ticks_per_s};
        s.length_s = 1;
        at += ticks_per_s;
        s.randoms.per_crystal.assign(g.crystal_count(), 0);
        fill(s, share_before);
        if (change) change();
        fill(s, 1 - share_before);
        return s;
    }

    void fill(daemon::Second& s, double share) {
        const config::Geometry g = ring();
        std::vector<double> ends(8);
        for (std::uint32_t a = 0; a < 8; ++a) {
            for (const std::uint32_t b : {a + 3, a + 4, a + 5}) {
                if (b % 8 > a) pair(s, a, b % 8, share, ends);
            }
        }
        // A fifth of the singles makes prompts.
        for (std::uint32_t m = 0; m < 8; ++m) {
            const double mean = activity * share * pairs_per_second * 3 * 5 / 32;
            for (std::uint32_t i = 0; i < 32; ++i) {
                const std::uint32_t c = g.crystal(m, i / 16, i % 16);
                s.sums.unpaired[c] += static_cast<std::uint32_t>(noisy(mean * 0.8 * crystal[c]));
                s.sums.grouped[c] += static_cast<std::uint32_t>(noisy(mean * 0.2 * crystal[c]));
                // As many ends in each crystal, plus those random ones that the estimate expects.
                const double here = std::floor(ends[m] * (i + 1) / 32) - std::floor(ends[m] * i / 32);
                s.sums.prompts[c] += static_cast<std::uint32_t>(here);
            }
        }
    }

    void pair(daemon::Second& s, std::uint32_t a, std::uint32_t b, double share, std::vector<double>& ends) {
        const double trues = noisy(pairs_per_second * activity * share);
        const double randoms = noisy(pairs_per_second * activity * activity * 0.5 * share);
        std::normal_distribution<double> tof(0, 1);
        std::uniform_real_distribution<double> flat(-4, 4);
        std::normal_distribution<double> light(1, 0.05);
        const auto energy = [&](std::uint32_t m) {
            return static_cast<float>(511 * gain[m] * light(random));
        };
        for (int i = 0; i < trues + randoms; ++i) {
            const double dt = i < trues ? late_ns[b] - late_ns[a] + tof(random) : flat(random);
            const auto ticks = static_cast<std::int64_t>(std::lround(dt / tick_ns));
            s.sums.modules[a] += gpu::PromptEnds::of(ticks, energy(a));
            s.sums.modules[b] += gpu::PromptEnds::of(-ticks, energy(b));
        }
        for (const std::uint32_t m : {a, b}) {
            ends[m] += trues + randoms;
            s.randoms.per_crystal[ring().crystal(m, 0, 0)] +=
                pairs_per_second * activity * activity * 0.5 * share;
        }
    }
};

struct Watched {
    Detector detector;
    daemon::DetectorWatch watch;

    explicit Watched(std::shared_ptr<const daemon::DetectorBaseline> reference = nullptr)
        : watch(ring(), ticks_per_s, std::move(reference)) {
        watch.start_run(detector.at);
    }
    const std::vector<daemon::DetectorFault>& after(int seconds, double share_before = 0,
                                                    const std::function<void()>& change = {}) {
        for (int i = 0; i < seconds; ++i)
            watch.observe(detector.next(i == 0 ? share_before : 0, i == 0 ? change : nullptr));
        return *watch.faults();
    }
};

}  // namespace

TEST_CASE("a time step is found in the second that it fills, and named by its module only") {
    Watched w;
    REQUIRE(w.after(12).empty());
    w.after(1, 0.3, [&] { w.detector.late_ns[5] = 1; });
    for (int i = 0; i < 5; ++i) {
        const auto& faults = *w.watch.faults();
        REQUIRE(faults.size() == 1);
        CHECK(faults[0].kind == FaultKind::time_step);
        CHECK(faults[0].bdm == 5);
        CHECK(faults[0].since_s == 12);
        CHECK(faults[0].size == Approx(i == 0 ? 0.7 : 1).margin(0.06));
        w.after(1);
    }
    CHECK(w.watch.faults()->at(0).text().find("BDM 5: its times moved by +") == 0);
    CHECK(w.after(1, 0, [&] { w.detector.late_ns[5] = 0; }).empty());
}

TEST_CASE("two modules that move are both named") {
    Watched w;
    w.after(12);
    const auto& faults = w.after(1, 0, [&] {
        w.detector.late_ns[1] = -1.5;
        w.detector.late_ns[2] = -1;
    });
    REQUIRE(faults.size() == 2);
    CHECK(faults[0].bdm == 1);
    CHECK(faults[1].bdm == 2);
}

TEST_CASE("the time step of a weak source takes a few seconds") {
    Watched w;
    w.detector.activity = 0.01;
    w.after(12);
    const auto& faults = w.after(8, 0, [&] { w.detector.late_ns[5] = 2; });
    REQUIRE(faults.size() == 1);
    CHECK(faults[0].bdm == 5);
}

TEST_CASE("a gain step of 2 % is found") {
    Watched w;
    w.after(12);
    const auto& faults = w.after(1, 0.4, [&] { w.detector.gain[3] = 0.98; });
    REQUIRE(faults.size() == 1);
    CHECK(faults[0].kind == FaultKind::gain_step);
    CHECK(faults[0].bdm == 3);
    CHECK(faults[0].size == Approx(-0.02 * 0.6).margin(0.003));
    CHECK(w.after(1).at(0).size == Approx(-0.02).margin(0.003));
    CHECK(w.watch.faults()->at(0).since_s == 12);
}

TEST_CASE("a module off by more than the window has fewer prompts per single") {
    Watched w;
    w.after(12);
    daemon::Second s = w.detector.next();
    for (std::uint32_t i = 0; i < 32; ++i)
        s.sums.prompts[ring().crystal(2, i / 16, i % 16)] /= 3;
    w.watch.observe(s);
    REQUIRE(w.watch.faults()->size() == 1);
    CHECK(w.watch.faults()->at(0).kind == FaultKind::few_prompts);
    CHECK(w.watch.faults()->at(0).bdm == 2);
    CHECK(w.watch.faults()->at(0).size == Approx(-1).margin(0.05));
}

TEST_CASE("a unit that stops counting is found, in a run and outside") {
    const bool in_run = GENERATE(true, false);
    Watched w;
    if (!in_run) w.watch.end_run();
    REQUIRE(w.after(5).empty());
    const auto stop = [&] {
        for (std::uint32_t local = 0; local < 16; ++local)
            w.detector.crystal[ring().crystal(6, 1, local)] = 0;
    };
    // In a run the second in which it stops shows it if it is silent for more than 70 % of it.
    CHECK(w.after(1, 0.2, stop).size() == (in_run ? 1 : 0));
    const auto& faults = w.after(1);
    REQUIRE(faults.size() == 1);
    CHECK(faults[0].kind == FaultKind::silent_units);
    CHECK(faults[0].bdm == 6);
    CHECK(faults[0].part == 1);
    CHECK(faults[0].size == 1);
}

TEST_CASE("a run that starts at the very end of a second has no silent units") {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        INFO("seed " << seed);
        Watched w;
        w.detector.random.seed(seed);
        constexpr double part = 1.0 / 3000;  // five singles in a unit, more or less
        daemon::Second first = daemon::Second::none(ring());
        first.range = {w.detector.at - static_cast<std::uint64_t>(part * ticks_per_s), w.detector.at};
        first.length_s = part;
        first.randoms.per_crystal.assign(ring().crystal_count(), 0);
        w.detector.fill(first, part);
        w.watch.observe(first);
        CHECK(w.after(2).empty());
    }
}

TEST_CASE("a noisy crystal is found, in a run and outside") {
    const bool in_run = GENERATE(true, false);
    Watched w;
    if (!in_run) w.watch.end_run();
    REQUIRE(w.after(5).empty());
    const std::uint32_t crystal = ring().crystal(4, 0, 9);
    const auto& faults = w.after(1, 0.5, [&] { w.detector.crystal[crystal] = 40; });
    REQUIRE(faults.size() == 1);
    CHECK(faults[0].kind == FaultKind::noisy_crystal);
    CHECK(faults[0].bdm == 4);
    CHECK(faults[0].part == crystal);
    CHECK(faults[0].size == Approx(20.5).epsilon(0.1));
}

TEST_CASE("a decaying source, an injection and its noise are no faults") {
    Watched w;
    w.detector.pairs_per_second = 150;
    std::size_t faults = 0;
    for (int i = 0; i < 1000; ++i) {
        if (i == 300) w.detector.activity = 4;
        w.detector.activity *= 0.998;
        faults += w.after(1).size();
    }
    CHECK(faults == 0);
}

TEST_CASE("boards that start one after another are no fault") {
    Watched w;
    daemon::Second s = w.detector.next();
    s.sums.modules[3] = {};
    for (std::uint32_t local = 0; local < 16; ++local)
        s.sums.prompts[ring().crystal(3, 0, local)] = 0;
    w.watch.observe(s);
    CHECK(w.watch.faults()->empty());
    CHECK(w.after(20).empty());
}

TEST_CASE("the next run has its own start") {
    Watched w;
    w.after(12);
    REQUIRE(w.after(1, 0, [&] { w.detector.late_ns[5] = 1; }).size() == 1);
    w.watch.end_run();
    CHECK(w.watch.faults()->empty());
    CHECK(w.after(3).empty());
    w.watch.start_run(w.detector.at);
    CHECK(w.after(5).empty());
}

TEST_CASE("a clock and a gain that moved between two runs differ from the reference, all along") {
    Watched before;
    before.after(12);
    Watched w(std::make_shared<daemon::DetectorBaseline>(before.watch.baseline()));
    w.detector.late_ns[5] = -1;
    w.detector.gain[3] = 1.02;
    CHECK(w.after(1).empty());  // some boards may not have sent yet
    for (int i = 0; i < 15; ++i) {
        const auto& faults = w.after(1);
        REQUIRE(faults.size() == 2);
        CHECK(faults[0].kind == FaultKind::time_off);
        CHECK(faults[0].bdm == 5);
        CHECK(faults[0].size == Approx(-1).margin(0.1));
        CHECK(faults[1].kind == FaultKind::gain_off);
        CHECK(faults[1].bdm == 3);
        CHECK(faults[1].size == Approx(0.02).margin(0.004));
        CHECK(faults[0].since_s == 1);
    }
    CHECK(w.watch.baseline().length_s == 10);
    // A step shows in both comparisons.
    const auto& faults = w.after(1, 0, [&] { w.detector.late_ns[5] = 1; });
    REQUIRE(faults.size() == 3);
    CHECK(faults[0].kind == FaultKind::time_step);
    CHECK(faults[0].size == Approx(2).margin(0.1));
    CHECK(faults[0].since_s == 16);
    w.watch.end_run();
    CHECK(w.after(3).empty());
}

TEST_CASE("a module with other singles than in the baseline is not said to miss prompts") {
    Watched w;
    w.after(12);
    const auto without_prompts = [&](double singles) {
        for (std::uint32_t i = 0; i < 32; ++i)
            w.detector.crystal[ring().crystal(2, i / 16, i % 16)] = singles;
        daemon::Second s = w.detector.next();
        for (std::uint32_t i = 0; i < 32; ++i)
            s.sums.prompts[ring().crystal(2, i / 16, i % 16)] /= 3;
        w.watch.observe(s);
        return w.watch.faults()->size();
    };
    CHECK(without_prompts(2) == 0);
    CHECK(without_prompts(0.5) == 0);
    CHECK(without_prompts(1) == 1);
}
