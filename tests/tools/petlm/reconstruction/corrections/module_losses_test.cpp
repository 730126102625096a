// What boards lost, by pair of modules, from seconds whose losses are known.
#include "tools/petlm/reconstruction/corrections/module_losses.hpp"

#include "daemon/seconds/file.hpp"
#include "tests/tools/petlm/support.hpp"
#include "tools/petlm/reconstruction/corrections/run_randoms.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

constexpr std::uint64_t ticks_of_second = 64'000'000'000;
constexpr std::size_t modules = 8;

config::Scanner eight_modules() {
    config::Scanner scanner = export_scanner();
    scanner.geometry.modules = {1, 2, 1};
    scanner.geometry.bdm_count = modules;
    scanner.geometry.crystals = {1, 2, 2};
    return scanner;
}

/// Seconds of a decaying source that lies near module 2, without randoms.
struct Lossy {
    config::Scanner scanner = eight_modules();
    std::vector<daemon::Second> seconds;
    /// [m * modules + n] by the trues of all seconds.
    std::vector<double> all = std::vector<double>(modules * modules);
    std::vector<double> arrived = std::vector<double>(modules * modules);

    /// live(second, module): 0 to 1.
    template <class Live>
    Lossy(std::size_t count, Live live) {
        for (std::size_t i = 0; i < count; ++i) {
            daemon::Second s = daemon::Second::none(scanner.geometry);
            s.range = {ticks_of_second * (i + 1), ticks_of_second * (i + 2)};
            s.length_s = 1;
            s.pile_up = 1;
            const double level = 1e6 * std::exp(-0.03 * static_cast<double>(i));
            for (std::size_t m = 0; m < modules; ++m) {
                s.live[m] = live(i, m);
                for (std::size_t n = 0; n < m; ++n) {
                    const double trues = level * (m == 2 || n == 2 ? 1 : 0.1);
                    const double found = trues * live(i, m) * live(i, n);
                    all[n * modules + m] += trues;
                    arrived[n * modules + m] += found;
                    s.sums.module_pairs[m * modules + n] = static_cast<std::uint32_t>(found / 2);
                    s.sums.module_pairs[n * modules + m] = static_cast<std::uint32_t>(found / 2);
                    s.sums.counts.prompts += 2 * static_cast<std::uint64_t>(found / 2);
                }
            }
            seconds.push_back(std::move(s));
        }
    }
    [[nodiscard]] petlm::RunRandoms read(const std::filesystem::path& file) const {
        {
            daemon::SecondsFile out(file, scanner.geometry, file_description(scanner),
                                    config::Compression::none, std::chrono::seconds(1));
            for (const daemon::Second& s : seconds)
                out.append(s);
            out.finish();
        }
        gpu::CoincidenceRules rules;
        rules.window = 300;
        petlm::CoveredSeconds covered(file);
        return {covered, scanner, rules,
                [](const gpu::TickRange& range) { return static_cast<double>(range.ticks()); }};
    }
};

}  // namespace

TEST_CASE("loss: pairs of modules have the share of their trues that arrived", "[petlm][loss]") {
    const TemporaryDirectory directory;
    const Lossy run(60, [](std::size_t second, std::size_t module) {
        if (second == 20 || module == 7) return 0.0;  // nothing of anybody; never anything
        if (module == 2 && second >= 30) return 0.0;  // where most of the source is
        return module == 5 ? 0.8 : 0.95;
    });
    const petlm::RunRandoms found = run.read(directory / "seconds.plm");
    const config::Geometry& g = run.scanner.geometry;
    for (std::uint32_t m = 0; m < modules; ++m) {
        for (std::uint32_t n = 0; n < m; ++n) {
            CAPTURE(m, n);
            const double expected = run.arrived[n * modules + m] / run.all[n * modules + m];
            CHECK(found.arrived(g.crystal(m, 0, 0), g.crystal(n, 0, 1)) == Approx(expected).margin(1e-3));
            CHECK(found.live(g.crystal(m, 0, 0), g.crystal(n, 0, 1)) ==
                  found.arrived(g.crystal(n, 0, 1), g.crystal(m, 0, 0)));
        }
    }
    double lost = 0;
    for (const daemon::Second& s : run.seconds) {
        for (const double live : s.live)
            lost += (1 - live) / modules / static_cast<double>(run.seconds.size());
    }
    CHECK(found.loss().lost == Approx(lost));
    CHECK(found.loss().silent_pairs == Approx(2.0 / modules));
    REQUIRE(found.live_times().size() == run.seconds.size());
    for (std::size_t i = 0; i < run.seconds.size(); ++i) {
        CAPTURE(i);
        double trues = 0;
        double of_second = 0;
        for (std::size_t m = 0; m + 1 < modules; ++m) {  // nobody knows of pairs of the one that was silent
            for (std::size_t n = 0; n < m; ++n) {
                const double of_pair = m == 2 || n == 2 ? 1 : 0.1;
                trues += of_pair;
                of_second += of_pair * run.seconds[i].live[m] * run.seconds[i].live[n];
            }
        }
        const petlm::LiveTime& one = found.live_times()[i];
        CHECK(one.time == run.seconds[i].range);
        CHECK(one.live == Approx(of_second / trues).margin(1e-3));
    }
    const std::string sentence = sentence_of(found.loss());
    CHECK_THAT(sentence, contains("% of the data of the boards did not arrive"));
    CHECK_THAT(sentence, contains("silent all the time count as dead: 25 % of all"));
}

TEST_CASE("loss: where a scanner turns, decays weight its seconds, not what its angle lets it find",
          "[petlm][loss][rotation]") {
    const TemporaryDirectory directory;
    // A third of the time at angles that see three times as much, and a half of that is lost.
    const auto at_second_angle = [](std::size_t second) { return second % 3 == 2; };
    Lossy run(30, [&](std::size_t second, std::size_t module) {
        return module == 5 && at_second_angle(second) ? 0.5 : 1.0;
    });
    for (std::size_t i = 0; i < run.seconds.size(); ++i) {
        if (!at_second_angle(i)) continue;
        gpu::IntervalSums& sums = run.seconds[i].sums;
        for (std::uint32_t& pairs : sums.module_pairs)
            pairs *= 3;
        sums.counts.prompts *= 3;
    }
    run.scanner.rotation = config::Rotation{1, 360, 0};
    const petlm::RunRandoms found = run.read(directory / "seconds.plm");
    const config::Geometry& g = run.scanner.geometry;
    CHECK(found.arrived(g.crystal(5, 0, 0), g.crystal(2, 0, 1)) == Approx(5.0 / 6));
    CHECK(found.arrived(g.crystal(1, 0, 0), g.crystal(2, 0, 1)) == Approx(1));
}

TEST_CASE("loss: none is said to be none, and what is not known is named", "[petlm][loss]") {
    const TemporaryDirectory directory;
    Lossy run(5, [](std::size_t, std::size_t) { return 1.0; });
    const petlm::RunRandoms all = run.read(directory / "all.plm");
    CHECK(all.loss().lost == 0);
    CHECK(all.arrived(0, 9) == 1);
    CHECK_THAT(sentence_of(all.loss()), contains("all data of the boards arrived"));
    for (daemon::Second& s : run.seconds)
        s.live[3] = daemon::Second::unknown;
    CHECK_THAT(sentence_of(run.read(directory / "partly.plm").loss()), contains("not known of some BDMs"));
    for (daemon::Second& s : run.seconds)
        s.live.assign(modules, daemon::Second::unknown);
    const petlm::RunRandoms unknown = run.read(directory / "unknown.plm");
    CHECK(unknown.arrived(0, 9) == 1);
    CHECK_THAT(sentence_of(unknown.loss()), contains("do not tell which data did not arrive"));
    // Nothing arrived at all.
    for (daemon::Second& s : run.seconds) {
        s.live.assign(modules, 0);
        s.sums = gpu::IntervalSums::none(run.scanner.geometry);
    }
    const petlm::RunRandoms silent = run.read(directory / "silent.plm");
    CHECK(silent.loss().lost == 1);
    CHECK(silent.arrived(0, 9) == 0);
}

TEST_CASE("loss: a scanner whose pairs of modules do not fit into memory is told so", "[petlm][loss]") {
    config::Scanner scanner = eight_modules();
    scanner.geometry.channels = petlm::ModuleLosses::max_modules / 2 + 1;
    scanner.geometry.bdm_count = scanner.geometry.channels * 2;
    petlm::ModuleLosses losses(scanner, 1);
    petlm::RunDeadTime dead_time;
    petlm::RunLoss loss;
    std::vector<petlm::LiveTime> live_times;
    losses.finish({}, dead_time, loss, live_times);
    CHECK(live_times.empty());
    CHECK(loss.too_many_modules);
    CHECK(loss.arrived.empty());
    CHECK(dead_time.factor.empty());
    CHECK(petlm::sentence_of(loss) ==
          "Loss: not corrected, as it is found for scanners of at most 4096 BDMs.");
}

TEST_CASE("loss: dead time is that of the modules that told it, and multiplies", "[petlm][loss]") {
    const TemporaryDirectory directory;
    Lossy run(20,
              [](std::size_t second, std::size_t module) { return module == 1 && second >= 10 ? 0.0 : 1.0; });
    for (std::size_t i = 0; i < run.seconds.size(); ++i) {
        // A silent board tells nothing.
        run.seconds[i].dead_time.assign(modules, 0.1 * ticks_of_second);
        if (i >= 10) run.seconds[i].dead_time[1] = daemon::Second::unknown;
    }
    const petlm::RunRandoms found = run.read(directory / "seconds.plm");
    const config::Geometry& g = run.scanner.geometry;
    REQUIRE_FALSE(found.dead_time().factor.empty());
    const std::uint32_t a = g.crystal(1, 0, 0);
    const std::uint32_t b = g.crystal(5, 0, 0);
    CHECK(found.seen(a, b) == Approx(0.81));
    CHECK(found.live(a, b) == Approx(0.81 * found.arrived(a, b)));
    CHECK(found.arrived(a, b) < 0.7);
}

TEST_CASE("loss: a module that is heard later lost what came before", "[petlm][loss]") {
    const TemporaryDirectory directory;
    Lossy run(10,
              [](std::size_t second, std::size_t module) { return module == 3 && second < 5 ? 0.0 : 1.0; });
    for (std::size_t i = 0; i < 5; ++i)
        run.seconds[i].live[3] = daemon::Second::unknown;
    const petlm::RunRandoms found = run.read(directory / "seconds.plm");
    const config::Geometry& g = run.scanner.geometry;
    CHECK(found.loss().lost == Approx(0.5 / modules));
    CHECK_FALSE(found.loss().unknown_modules);
    const double expected = run.arrived[5 + 3 * modules] / run.all[5 + 3 * modules];
    CHECK(found.arrived(g.crystal(3, 0, 0), g.crystal(5, 0, 1)) == Approx(expected).margin(1e-3));
}

TEST_CASE("loss: what is lost beside modules of which nothing is known is the least", "[petlm][loss]") {
    const TemporaryDirectory directory;
    Lossy run(5, [](std::size_t, std::size_t module) { return module == 1 ? 0.5 : 1.0; });
    for (daemon::Second& s : run.seconds)
        s.live[3] = daemon::Second::unknown;
    CHECK_THAT(sentence_of(run.read(directory / "seconds.plm").loss()), contains("at least"));
}

TEST_CASE("loss: modules of one board lose the same data", "[petlm][loss]") {
    const TemporaryDirectory directory;
    Lossy run(10, [](std::size_t, std::size_t module) { return module < 4 ? 0.5 : 1.0; });
    run.scanner.sources.resize(2);
    run.scanner.sources[0].bdms = {0, 1, 2, 3};
    run.scanner.sources[1].bdms = {4, 5, 6, 7};
    const petlm::RunRandoms found = run.read(directory / "seconds.plm");
    const config::Geometry& g = run.scanner.geometry;
    CHECK(found.arrived(g.crystal(0, 0, 0), g.crystal(2, 0, 0)) == Approx(0.5));
    CHECK(found.arrived(g.crystal(0, 0, 0), g.crystal(6, 0, 0)) == Approx(0.5));
    CHECK(found.arrived(g.crystal(4, 0, 0), g.crystal(6, 0, 0)) == Approx(1));
}

TEST_CASE("loss: units of a board are dead for what they have of its singles", "[petlm][loss]") {
    const TemporaryDirectory directory;
    Lossy run(4, [](std::size_t, std::size_t) { return 1.0; });
    run.scanner.sources.resize(2);
    run.scanner.sources[0].bdms = {0, 1, 2, 3};
    run.scanner.sources[1].bdms = {4, 5, 6, 7};
    const config::Geometry& g = run.scanner.geometry;
    REQUIRE(g.du_count > 1);
    // Hits per second of each unit, which takes one of them and is blind for a microsecond. One is broken.
    const auto hits = [&](std::uint32_t bdm, std::uint32_t du) {
        return bdm == 6 && du == 0 ? 0.0 : 5e4 * (1 + bdm + 3 * du);
    };
    const auto seen = [&](std::uint32_t bdm, std::uint32_t du) { return 1 / (1 + 1e-6 * hits(bdm, du)); };
    for (daemon::Second& s : run.seconds) {
        std::vector<double> dead(2);
        for (std::uint32_t bdm = 0; bdm < modules; ++bdm) {
            for (std::uint32_t du = 0; du < g.du_count; ++du) {
                dead[bdm / 4] += (1 - seen(bdm, du)) / (4 * g.du_count);
                // A third of what it takes lies in the energy window.
                s.sums.unpaired[g.crystal(bdm, du, 0)] =
                    static_cast<std::uint32_t>(hits(bdm, du) * seen(bdm, du) / 4);
                s.sums.grouped[g.crystal(bdm, du, 1)] =
                    static_cast<std::uint32_t>(hits(bdm, du) * seen(bdm, du) / 12);
            }
        }
        for (std::size_t bdm = 0; bdm < modules; ++bdm)
            s.dead_time[bdm] = dead[bdm / 4] * ticks_of_second;
    }
    const petlm::RunRandoms found = run.read(directory / "seconds.plm");
    for (std::uint32_t m = 0; m < modules; ++m) {
        CAPTURE(m);
        if (m != 6)
            CHECK(found.seen(g.crystal(m, 0, 0), g.crystal(2, 1, 1)) ==
                  Approx(seen(m, 0) * seen(2, 1)).epsilon(1e-3));
        CHECK(found.seen(g.crystal(m, 1, 1), g.crystal(5, 1, 1)) ==
              Approx(seen(m, 1) * seen(5, 1)).epsilon(1e-3));
    }
    CHECK(found.dead_time().most ==
          Approx(1 / (seen(7, g.du_count - 1) * seen(7, g.du_count - 1))).epsilon(1e-3));
    CHECK(found.dead_time().least == Approx(1 / (seen(0, 0) * seen(0, 0))).epsilon(1e-3));
}
