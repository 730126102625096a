// The randoms of each pair of crystals from the seconds of a run, against the estimates of the seconds.
#include "tools/petlm/reconstruction/corrections/run_randoms.hpp"

#include "daemon/seconds/file.hpp"
#include "gpu/randoms/pair_cells.hpp"
#include "gpu/randoms/randoms.hpp"
#include "tests/support/configuration.hpp"
#include "tests/tools/petlm/support.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

constexpr std::uint64_t second_ticks = 64'000'000'000;

gpu::CoincidenceRules rules_of_test(std::uint32_t window = 300) {
    gpu::CoincidenceRules rules;
    rules.window = window;
    rules.min_module_difference = 2;
    rules.max_ring_difference = 7;
    return rules;
}

/// Singles that decay, in crystals that differ, and whose distribution drifts a little.
struct Decay {
    config::Scanner scanner;
    std::vector<daemon::Second> seconds;
    std::vector<gpu::RandomsByPair> by_pair;
    double total = 0;

    explicit Decay(std::size_t count, const config::Scanner& scanner_used) : scanner(scanner_used) {
        std::mt19937_64 random(11);
        gpu::RandomsEstimator estimator(scanner.geometry, rules_of_test());
        for (std::size_t i = 0; i < count; ++i) {
            daemon::Second s = daemon::Second::none(scanner.geometry);
            // The run starts and stops within a second.
            const std::uint64_t ticks = i == 0 || i + 1 == count ? second_ticks / 3 : second_ticks;
            const std::uint64_t start = seconds.empty() ? run_start : seconds.back().range.end;
            s.range = {start, start + ticks};
            s.length_s = static_cast<double>(ticks) / second_ticks;
            const double level = std::exp(-0.02 * static_cast<double>(i)) * s.length_s;
            for (std::size_t crystal = 0; crystal < s.sums.unpaired.size(); ++crystal) {
                const double shape = 1 + static_cast<double>(crystal % 7) / 7 +
                                     0.001 * static_cast<double>(i) * static_cast<double>(crystal % 3);
                s.sums.unpaired[crystal] =
                    std::poisson_distribution<std::uint32_t>(2'000 * shape * level)(random);
                s.sums.grouped[crystal] =
                    std::poisson_distribution<std::uint32_t>(400 * shape * level)(random);
                s.sums.counts.unpaired += s.sums.unpaired[crystal];
                s.sums.counts.decided += s.sums.unpaired[crystal] + s.sums.grouped[crystal];
            }
            s.sums.counts.prompts = (s.sums.counts.decided - s.sums.counts.unpaired) / 2;
            s.sums.counts.groups = s.sums.counts.unpaired + s.sums.counts.prompts;
            s.sums.modules[0].abs_dt = 40 * s.sums.counts.prompts;
            for (std::size_t a = 0; a < s.sums.modules.size(); ++a) {
                for (std::size_t b = 0; b < s.sums.modules.size(); ++b) {
                    s.sums.module_pairs[a * s.sums.modules.size() + b] = static_cast<std::uint32_t>(
                        s.sums.counts.prompts / s.sums.module_pairs.size() + (a + 2 * b) % 7);
                }
            }
            estimator.estimate(s.sums, ticks, s.randoms);
            by_pair.push_back(estimator.by_pair());
            total += s.randoms.total;
            seconds.push_back(std::move(s));
        }
    }
    void write(const std::filesystem::path& file) const {
        daemon::SecondsFile out(file, scanner.geometry, file_description(scanner), config::Compression::none,
                                std::chrono::seconds(1));
        for (const daemon::Second& s : seconds)
            out.append(s);
        out.finish();
    }
};

template <class Use>
void for_each_pair(const config::Geometry& g, Use use) {
    for (std::uint32_t a = 0; a < g.crystal_count(); ++a) {
        for (std::uint32_t b = 0; b < a; ++b)
            use(a, b);
    }
}

}  // namespace

TEST_CASE("randoms of a run: pairs add up to the totals of the seconds", "[petlm][randoms]") {
    const TemporaryDirectory directory;
    const std::size_t count = GENERATE(1, 2, 16, 17, 70);
    config::Scanner scanner = export_scanner();
    scanner.geometry.crystals = {1, 2, 2};
    const Decay run(count, scanner);
    run.write(directory / "seconds.plm");
    petlm::CoveredSeconds reader(directory / "seconds.plm");
    const petlm::RunRandoms randoms(reader, run.scanner, rules_of_test(), {});
    CHECK(randoms.total() == Approx(run.total).epsilon(1e-12));

    const auto cells = gpu::PairCells::of(run.scanner.geometry, rules_of_test());
    double sum = 0;
    double worst = 0;
    for_each_pair(run.scanner.geometry, [&](std::uint32_t a, std::uint32_t b) {
        const double of_pair = randoms.sum(a, b);
        sum += of_pair;
        if (!cells.rule.good(a, b)) {
            worst = std::max(worst, of_pair);
            return;
        }
        double exact = 0;
        for (const gpu::RandomsByPair& of_second : run.by_pair)
            exact += of_second.of(cells, a, b);
        worst =
            std::max({worst, std::abs(of_pair / exact - 1), std::abs(randoms.sum(b, a) / of_pair - 1) * 1e6});
    });
    CHECK(sum == Approx(run.total).epsilon(1e-9));
    CHECK(worst < 0.02);
}

TEST_CASE("pile-up of a run: the seconds weighted with their trues", "[petlm][randoms]") {
    const TemporaryDirectory directory;
    config::Scanner scanner = export_scanner();
    scanner.geometry.crystals = {1, 2, 2};
    Decay run(40, scanner);
    const auto pile_up_of = [&](const std::string& name) {
        run.write(directory / name);
        petlm::CoveredSeconds reader(directory / name);
        return petlm::RunRandoms(reader, scanner, rules_of_test(), {}).pile_up();
    };
    double found = 0;
    double without_losses = 0;
    // A second without trues has no weight.
    run.seconds[5].sums = gpu::IntervalSums::none(scanner.geometry);
    run.seconds[5].pile_up = 9;
    for (daemon::Second& s : run.seconds) {
        if (s.sums.counts.prompts == 0) continue;
        const double trues = static_cast<double>(s.sums.counts.prompts) - s.randoms.total;
        REQUIRE(trues > 0);
        s.pile_up = 1 + 1e-6 * trues / s.length_s;
        found += trues;
        without_losses += s.pile_up * trues;
    }
    const petlm::RunPileUp pile_up = pile_up_of("known.plm");
    CHECK(pile_up.mean == Approx(without_losses / found).epsilon(1e-12));
    CHECK(pile_up.most > pile_up.mean);
    CHECK(pile_up.most < 9);
    CHECK(pile_up.least < pile_up.mean);
    run.seconds[3].pile_up = daemon::Second::unknown;
    CHECK(std::isnan(pile_up_of("unknown.plm").mean));
}

TEST_CASE("petlm export: the seconds of a run give randoms to castor and stir", "[petlm][randoms]") {
    const TemporaryDirectory directory;
    const Decay run(20, export_scanner());
    const auto records = point_source(run.scanner, {8, 5, -3}, 300);
    write_run(directory / "run", records, run.scanner);
    run.write(directory / "run/seconds.plm");
    nlohmann::json document = nlohmann::json::parse(read_file(directory / "run/run.json"));
    document["configuration"] =
        *configuration_with(
             {{"coincidence",
               {{"window_ticks", 300}, {"min_module_difference", 2}, {"max_ring_difference", 7}}}})
             .document;
    document["expected_randoms"] = {{"pairs", run.total}};
    document["stop_ticks"] = run.seconds.back().range.end;
    write_file(directory / "run/run.json", document.dump());

    const Outcome stir = exported("stir", directory / "run", directory / "stir");
    INFO(stir.out);
    REQUIRE(stir.status == 0);
    Bytes data(directory / "stir/randoms.s");
    double sum = 0;
    while (!data.at_end())
        sum += static_cast<double>(data.take<float>());
    CHECK(sum == Approx(run.total).epsilon(1e-5));

    REQUIRE(exported("castor", directory / "run", directory / "castor").status == 0);
    CHECK(contains(read_file(directory / "castor/prompts.cdh"), "Random correction flag: 1"));
    const double seconds = std::stod(key_values(directory / "castor/prompts.cdh", ": ").at("Duration (s)"));
    Bytes events(directory / "castor/prompts.cdf");
    petlm::CoveredSeconds reader(directory / "run/seconds.plm");
    const petlm::RunRandoms randoms(reader, run.scanner, rules_of_test(), {});
    for (const gpu::Coincidence& c : of_kind(records, gpu::Kind::prompt)) {
        events.take<std::uint32_t>();
        REQUIRE(events.take<float>() * seconds ==
                Approx(randoms.sum(c.crystal_a, c.crystal_b)).epsilon(1e-5));
        events.take<std::uint64_t>();
    }

    // Seconds without an end tell nothing.
    const std::string whole = read_file(directory / "run/seconds.plm");
    write_file(directory / "run/seconds.plm", whole.substr(0, whole.size() - 100));
    REQUIRE(exported("stir", directory / "run", directory / "cut").status == 0);
    CHECK_FALSE(std::filesystem::exists(directory / "cut/randoms.s"));
    CHECK(contains(read_file(directory / "cut/README.txt"), "no randoms by pairs of crystals: "));
}

namespace {

/// A run with seconds, and files of parts of it that say what they cover.
struct CoveredRun {
    TemporaryDirectory directory;
    Decay decay{12, [] {
                    config::Scanner scanner = export_scanner();
                    scanner.geometry.crystals = {1, 2, 2};
                    return scanner;
                }()};
    daemon::Coverage whole;

    CoveredRun() {
        const auto configuration = configuration_with(
            {{"coincidence",
              {{"window_ticks", 300}, {"min_module_difference", 2}, {"max_ring_difference", 7}}}});
        whole.tick_ps = decay.scanner.tick_ps;
        whole.intervals = daemon::Intervals(
            gpu::TickRange{decay.seconds.front().range.start, decay.seconds.back().range.end});
        whole.rules = {configuration.coincidence, configuration.energy};
        whole.origin.runs = {{"test-run", {}}};
        std::filesystem::create_directory(directory / "run");
        const nlohmann::json run = {{"run_id", "test-run"},
                                    {"state", "complete"},
                                    {"scanner", config::to_json(decay.scanner)},
                                    {"coverage", daemon::to_json(whole)}};
        write_file(directory / "run/run.json", run.dump());
        write_seconds(0, decay.seconds.size());
    }
    void write_seconds(std::size_t from, std::size_t to) const {
        const auto file = directory / "run/seconds.plm";
        std::filesystem::remove(file);
        daemon::SecondsFile out(file, decay.scanner.geometry, description(whole), config::Compression::none,
                                std::chrono::seconds(1));
        for (std::size_t i = from; i < to; ++i)
            out.append(decay.seconds[i]);
        out.finish();
    }
    [[nodiscard]] nlohmann::json description(const daemon::Coverage& coverage) const {
        nlohmann::json out = file_description(decay.scanner);
        out["coverage"] = daemon::to_json(coverage);
        return out;
    }
    /// Null with `why`, or the randoms of a file that covers this.
    std::unique_ptr<petlm::RunRandoms> of(const daemon::Coverage& coverage, std::string& why) const {
        const auto file = directory / "run/part.plm";
        std::filesystem::remove(file);
        write_plm(file, {}, description(coverage));
        return petlm::RunRandoms::of(petlm::ExportSource(file), decay.scanner, why);
    }
};

}  // namespace

TEST_CASE("randoms of parts: cuts and phases add up to the run", "[petlm][randoms]") {
    const CoveredRun run;
    std::string why;
    const auto whole = run.of(run.whole, why);
    INFO(why);
    REQUIRE(whole);
    CHECK(whole->known() == 1);
    CHECK(whole->total() == Approx(run.decay.total).epsilon(1e-12));
    const gpu::TickRange span = run.whole.span();
    const std::uint64_t length = span.ticks();

    // Pieces that take turns, as phases do, and three cuts.
    std::vector<daemon::Intervals> parts(4);
    for (std::uint64_t i = 0; i < 200; ++i) {
        parts[i % 4] = parts[i % 4].unite(daemon::Intervals(
            gpu::TickRange{span.start + length * i / 200, span.start + length * (i + 1) / 200}));
    }
    for (const auto& [from, to] : {std::pair(0.0, 0.13), std::pair(0.13, 0.6), std::pair(0.6, 1.0)}) {
        const auto at = [&](double share) {
            return span.start + static_cast<std::uint64_t>(share * static_cast<double>(length));
        };
        parts.emplace_back(gpu::TickRange{at(from), to == 1 ? span.end : at(to)});
    }
    double phases = 0;
    double phases_of_pair = 0;
    double cuts = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const auto part = run.of(daemon::part_of(run.whole, parts[i]), why);
        INFO(why);
        REQUIRE(part);
        CHECK(part->known() == Approx(1));
        (i < 4 ? phases : cuts) += part->total();
        if (i < 4) phases_of_pair += part->sum(1, 40);
    }
    CHECK(phases == Approx(whole->total()).epsilon(1e-9));
    CHECK(cuts == Approx(whole->total()).epsilon(1e-9));
    CHECK(phases_of_pair == Approx(whole->sum(1, 40)).epsilon(1e-9));
}

TEST_CASE("randoms of cuts of two runs of the same detector time", "[petlm][randoms]") {
    CoveredRun run;
    const auto other = run.directory / "other";
    std::filesystem::copy(run.directory / "run", other);
    nlohmann::json document = nlohmann::json::parse(read_file(other / "run.json"));
    document["run_id"] = "other";
    write_file(other / "run.json", document.dump());
    std::string why;
    const double whole = run.of(run.whole, why)->total();

    daemon::Coverage of_other = run.whole;
    of_other.origin.runs = {{"other", other}};
    const std::uint64_t middle = run.decay.seconds[5].range.start + 12345;
    const daemon::Coverage both =
        daemon::united(std::vector{daemon::part_of(run.whole, gpu::TickRange{0, middle}),
                                   daemon::part_of(of_other, gpu::TickRange{middle, UINT64_MAX})});
    const auto merged = run.of(both, why);
    INFO(why);
    REQUIRE(merged);
    CHECK(merged->known() == Approx(1));
    CHECK(merged->total() == Approx(whole).epsilon(1e-9));
    // Where the file does not say which run has which times, nobody knows.
    daemon::Coverage unsaid = both;
    for (daemon::OriginRun& one : unsaid.origin.runs)
        one.times.reset();
    CHECK_FALSE(run.of(unsaid, why));
    CHECK_THAT(why, contains("several of its runs cover the same time"));
}

TEST_CASE("randoms of parts: seconds that do not belong to the records are refused", "[petlm][randoms]") {
    CoveredRun run;
    std::string why;
    const auto refused = [&](const daemon::Coverage& coverage, const std::string& with) {
        why.clear();
        CHECK_FALSE(run.of(coverage, why));
        CHECK_THAT(why, contains(with));
    };
    daemon::Coverage other = run.whole;
    other.rules.coincidence->max_ring_difference = 3;
    refused(other, "made by other rules than the records: coincidence.max_ring_difference: 7 and 3");
    CHECK_THAT(why, !contains("window_ticks"));
    other = run.whole;
    other.origin.runs = {{"another", {}}};
    refused(other, "\"another\" is neither beside it nor");
    other = run.whole;
    other.intervals.reset();
    refused(other, "not known when its records were taken");

    // Most of the time is enough; it stands for all.
    const double all = run.of(run.whole, why)->total();
    run.write_seconds(0, 11);
    const auto most = run.of(run.whole, why);
    REQUIRE(most);
    CHECK(most->known() < 1);
    CHECK(most->known() > 0.9);
    CHECK(most->total() == Approx(all).epsilon(0.1));
    run.write_seconds(0, 7);
    refused(run.whole, "% of its time");
    run.write_seconds(0, 0);
    refused(run.whole, "% of its time");
    std::filesystem::remove(run.directory / "run/seconds.plm");
    refused(run.whole, "has no seconds.plm");
}

TEST_CASE("loss of a file of other rules than its run is that of the run", "[petlm][loss]") {
    CoveredRun run;
    for (daemon::Second& s : run.decay.seconds)
        s.live.assign(run.decay.scanner.geometry.bdm_count, 0.5);
    run.write_seconds(0, run.decay.seconds.size());
    daemon::Coverage narrow = run.whole;
    narrow.rules.coincidence->window_ticks = 200;
    std::string why;
    CHECK_FALSE(run.of(narrow, why));
    const petlm::ExportSource source(run.directory / "run/part.plm");
    const auto losses = petlm::PairLosses::of(source, source.coverage(), run.decay.scanner, why);
    REQUIRE(losses);
    CHECK(losses->loss().lost == Approx(0.5));
    CHECK(losses->arrived(1, 40) == Approx(0.25));
}
