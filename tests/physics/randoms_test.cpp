// Both estimates of the randoms against the truth: totals, and their distribution over detector units and
// pairs of modules.
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>

#include "config/base/words.hpp"
#include "config/scanner/scanner.hpp"
#include "gpu/randoms/randoms.hpp"
#include "tests/physics/phantoms.hpp"
#include "tests/physics/scanners.hpp"
#include "tests/physics/truth.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

constexpr std::array policies = {
    gpu::MultiplesPolicy::remove_multiples,       gpu::MultiplesPolicy::take_all_goods,
    gpu::MultiplesPolicy::take_winner_of_goods,   gpu::MultiplesPolicy::take_if_only_one_good,
    gpu::MultiplesPolicy::take_winner_if_is_good, gpu::MultiplesPolicy::take_winner_if_all_are_goods};

struct Example {
    config::Scanner scanner;
    gpu::CoincidenceRules rules;
};

/// The example scanners: "mouse" and "small".
Example example(const std::string& name) {
    const std::string file = PETACQ_SOURCE_DIR "/config/examples/" + name + ".scanner.json";
    Example e{config::load_scanner(file), {}};
    const bool mouse = name == "mouse";
    e.rules.window = mouse ? 400 : 320;
    e.rules.delay = mouse ? 10'000 : 6'400;
    e.rules.min_module_difference = mouse ? 2 : 1;
    return e;
}

/// Few wide modules: of nine, in two rings, or of six.
Example few_modules(std::uint32_t modules) {
    const bool nine = modules == 9;
    nlohmann::json bdms = nlohmann::json::array();
    for (std::uint32_t bdm = 0; bdm < (nine ? 18U : 6U); ++bdm)
        bdms.push_back(bdm);
    const nlohmann::json nine_modules = {{"channels", 9},
                                         {"modules", {{"y", 1}, {"z", 2}}},
                                         {"blocks", {{"y", 2}, {"z", 2}}},
                                         {"crystals", {{"y", 6}, {"z", 5}}},
                                         {"bdm_count", 18},
                                         {"du_count", 4},
                                         {"position_size", 90}};
    const nlohmann::json six_modules = {{"channels", 6},
                                        {"modules", {{"y", 1}, {"z", 1}}},
                                        {"blocks", {{"y", 3}, {"z", 4}}},
                                        {"crystals", {{"y", 6}, {"z", 4}}},
                                        {"bdm_count", 6},
                                        {"du_count", 12},
                                        {"position_size", 80}};
    Example e{config::scanner_from_json({{"name", nine ? "nine modules" : "six modules"},
                                         {"tick_ps", nine ? 30 : 55},
                                         {"geometry", nine ? nine_modules : six_modules},
                                         {"dimensions",
                                          {{"ring_radius_mm", nine ? 36 : 33},
                                           {"crystal_pitch_y_mm", nine ? 2.0 : 1.8},
                                           {"crystal_pitch_z_mm", 2.1},
                                           {"crystal_length_mm", 11},
                                           {"block_gap_y_mm", 0.5},
                                           {"block_gap_z_mm", 0.7},
                                           {"module_gap_z_mm", nine ? 2.0 : 0.0}}},
                                         {"sources", {{{"id", 0}, {"bdms", bdms}}}}}),
              {}};
    e.rules.window = nine ? 120 : 70;
    e.rules.delay = nine ? 4'000 : 2'900;
    return e;
}

/// A cylinder and a point, both off the axis.
sim::Options off_centre(const config::Scanner& scanner, double mbq, double duration_s) {
    const double radius = scanner.dimensions.ring_radius_mm;
    sim::ActivitySource cylinder;
    cylinder.shape = sim::Shape::cylinder;
    cylinder.at = {0.25 * radius, -0.1 * radius, 4};
    cylinder.radius_mm = 0.3 * radius;
    cylinder.length_mm = 30;
    cylinder.activity_mbq = 0.8 * mbq;
    sim::ActivitySource point;
    point.at = {-0.3 * radius, 0.2 * radius, -5};
    point.activity_mbq = 0.2 * mbq;
    sim::Options options;
    options.seed = 5;
    options.duration_s = duration_s;
    options.threads = 2;
    options.activity = {cylinder, point};
    return options;
}

/// Sum of (x - y)^2 / variance over the entries with enough counts.
struct ChiSquare {
    double sum = 0;
    double entries = 0;

    void add(double difference, double variance) {
        sum += difference * difference / variance;
        entries += 1;
    }
    [[nodiscard]] double per_degree() const { return entries > 0 ? sum / entries : 1; }
    /// At most 1.3, or three standard deviations above 1 if there are few entries.
    [[nodiscard]] bool good() const {
        return entries == 0 || per_degree() < std::max(1.3, 1 + 3 * std::sqrt(2 / entries));
    }
};

struct Compared {
    double truth = 0;
    double estimate = 0;
    double delayeds = 0;           ///< weighted
    double delayeds_variance = 0;  ///< of the same
    // By pairs of modules, and by crystal rows of detector units.
    ChiSquare modules;
    ChiSquare rows;
    ChiSquare delayeds_modules;
    ChiSquare delayeds_rows;
};

/// Counts of pairs in the entries of a table, and their variances. Pairs that overlap in time may come of the
/// same singles, so that their numbers scatter more than Poisson's: they count as one cluster, and the
/// variance is the sum of the squares of what clusters add to an entry.
class Table {
  public:
    explicit Table(std::size_t entries) : counts_(entries), variances_(entries), cluster_(entries) {}

    void add(std::size_t entry, std::uint64_t begin, std::uint64_t end) {
        if (begin > end_) finish();
        end_ = std::max(end_, end);
        cluster_[entry] += 1;
        touched_.push_back(entry);
    }
    void finish() {
        for (const std::size_t entry : touched_) {
            counts_[entry] += cluster_[entry];
            variances_[entry] += cluster_[entry] * cluster_[entry];
            cluster_[entry] = 0;
        }
        touched_.clear();
    }
    [[nodiscard]] double count(std::size_t entry) const { return counts_[entry]; }
    [[nodiscard]] double variance(std::size_t entry) const { return variances_[entry]; }

  private:
    std::vector<double> counts_;
    std::vector<double> variances_;
    std::vector<double> cluster_;  ///< counts of the latest cluster
    std::vector<std::size_t> touched_;
    std::uint64_t end_ = 0;
};

/// By pairs of modules around the ring, and by crystals of a detector unit in one ring.
struct Tables {
    const config::Geometry& geometry;
    Table modules{std::size_t{geometry.modules_in_ring()} * geometry.modules_in_ring()};
    Table rows{geometry.crystal_count() / geometry.crystals.y};

    void add(const gpu::Coincidence& c) {
        const auto module = [&](std::uint32_t crystal) {
            return crystal % geometry.crystals_in_ring() / geometry.crystals_per_module_y();
        };
        const std::size_t a = module(c.crystal_a);
        const std::size_t b = module(c.crystal_b);
        const std::uint64_t end = c.time + c.dt;
        modules.add(std::min(a, b) * geometry.modules_in_ring() + std::max(a, b), c.time, end);
        rows.add(c.crystal_a / geometry.crystals.y, c.time, end);
        rows.add(c.crystal_b / geometry.crystals.y, c.time, end);
    }
    void finish() {
        modules.finish();
        rows.finish();
    }
};

Compared compare(const TrueSingles& truth, const gpu::CoincidenceRules& rules) {
    const config::Geometry& g = truth.scanner.geometry;
    const Found found = find_pairs(truth, rules);
    const std::vector<bool> random = is_random(truth, found.pairs);
    Compared result;
    gpu::RandomsEstimator estimator(g, rules);
    gpu::ExpectedRandoms expected;
    double counted = 0;
    for (const FoundSecond& second : found.seconds) {
        gpu::ExpectedRandoms of_second;
        estimator.estimate(second.sums, second.range.ticks(), of_second);
        expected.add(of_second, 1);
        const auto delayeds = static_cast<double>(second.sums.counts.delayeds);
        const double weight = estimator.delayeds_weight();
        counted += delayeds;
        result.delayeds += weight * delayeds;
        result.delayeds_variance += weight * weight * delayeds;
    }
    result.estimate = expected.total;
    const double weight = counted > 0 ? result.delayeds / counted : 0;
    Tables truths{g};
    Tables delayeds{g};
    for (std::size_t i = 0; i < random.size(); ++i) {
        const gpu::Coincidence& c = found.pairs[i];
        if (c.kind == gpu::Kind::delayed) delayeds.add(c);
        if (!random[i]) continue;
        result.truth += 1;
        truths.add(c);
    }
    truths.finish();
    delayeds.finish();
    const auto add = [&](ChiSquare& of_estimate, ChiSquare& of_delayeds, const Table& true_table,
                         const Table& delayed_table, std::size_t entry, double here) {
        if (here < 30) return;
        const double count = true_table.count(entry);
        const double variance = std::max(here, true_table.variance(entry));
        of_estimate.add(count - here, variance);
        of_delayeds.add(count - weight * delayed_table.count(entry),
                        variance + weight * weight * delayed_table.variance(entry));
    };
    const std::size_t modules = g.modules_in_ring();
    for (std::size_t a = 0; a < modules; ++a) {
        for (std::size_t b = a; b < modules; ++b) {
            add(result.modules, result.delayeds_modules, truths.modules, delayeds.modules, a * modules + b,
                expected.module_pairs[a * modules + b]);
        }
    }
    for (std::size_t row = 0; row < g.crystal_count() / g.crystals.y; ++row) {
        const auto first = expected.per_crystal.begin() + static_cast<std::ptrdiff_t>(row * g.crystals.y);
        add(result.rows, result.delayeds_rows, truths.rows, delayeds.rows, row,
            std::accumulate(first, first + g.crystals.y, 0.0));
    }
    return result;
}

/// Within 1 %, or three standard deviations if statistics are smaller.
void check_totals(const Compared& c) {
    const double allowed = std::max(0.01 * c.truth, 3 * std::sqrt(c.truth));
    CHECK(std::abs(c.estimate - c.truth) <= allowed);
    const double sigma = std::sqrt(c.truth + c.delayeds_variance);
    CHECK(std::abs(c.delayeds - c.truth) <= std::max(0.01 * c.truth, 3 * sigma));
}

std::string summary(const TrueSingles& truth, const gpu::CoincidenceRules& rules, const Compared& c) {
    return truth.scanner.name + ", " + std::to_string(truth.per_second() / 1e6) + " Mcps, " +
           name_of(rules.mode) + ", " + name_of(rules.policy) + ": truth " + std::to_string(c.truth) +
           ", estimate / truth " + std::to_string(c.estimate / c.truth) + ", delayeds / truth " +
           std::to_string(c.delayeds / c.truth) + ", chi-square by pairs of modules " +
           std::to_string(c.modules.per_degree()) + " and " +
           std::to_string(c.delayeds_modules.per_degree()) + ", by rows " +
           std::to_string(c.rows.per_degree()) + " and " + std::to_string(c.delayeds_rows.per_degree());
}

template <class Check>
void for_each_policy(gpu::CoincidenceRules rules, const Check& check) {
    for (const gpu::WindowMode mode : {gpu::WindowMode::single, gpu::WindowMode::every}) {
        for (const gpu::MultiplesPolicy policy : policies) {
            rules.mode = mode;
            rules.policy = policy;
            check(rules);
        }
    }
}

void check_policies(const TrueSingles& truth, const gpu::CoincidenceRules& all_rules) {
    for_each_policy(all_rules, [&](const gpu::CoincidenceRules& rules) {
        const Compared c = compare(truth, rules);
        INFO(summary(truth, rules, c));
        check_totals(c);
        CHECK(c.modules.good());
        CHECK(c.rows.good());
        CHECK(c.delayeds_modules.good());
        CHECK(c.delayeds_rows.good());
    });
}

}  // namespace

TEST_CASE("randoms: both estimates under every policy and window mode", "[physics]") {
    const Example e = example("small");
    check_policies(simulate_singles(e.scanner, off_centre(e.scanner, 40, 0.05)), e.rules);
}

TEST_CASE("randoms: both estimates where distant rings make no pairs", "[physics]") {
    Example e = example("small");
    e.rules.max_ring_difference = 6;  // of 24
    check_policies(simulate_singles(e.scanner, off_centre(e.scanner, 40, 0.05)), e.rules);
}

TEST_CASE("randoms: both estimates where modules that see many pairs make none", "[physics]") {
    struct Run {
        std::uint32_t modules;
        std::uint32_t min_module_difference;
        std::uint32_t max_ring_difference;
    };
    const auto run = GENERATE(Run{6, 2, UINT32_MAX}, Run{6, 3, UINT32_MAX}, Run{9, 3, UINT32_MAX},
                              Run{9, 4, UINT32_MAX}, Run{9, 4, 7});
    Example e = few_modules(run.modules);
    e.rules.min_module_difference = run.min_module_difference;
    e.rules.max_ring_difference = run.max_ring_difference;
    sim::ActivitySource point;
    point.at = {-13, 10, 6};
    point.activity_mbq = 25;
    sim::ActivitySource cylinder;
    cylinder.shape = sim::Shape::cylinder;
    cylinder.at = {4, -15, -7};
    cylinder.radius_mm = 3;
    cylinder.length_mm = 16;
    cylinder.activity_mbq = 30;
    sim::Options options;
    options.seed = 61;
    options.duration_s = 0.05;
    options.threads = 2;
    options.activity = {point, cylinder};
    options.physics.scatter = 0.25;
    check_policies(simulate_singles(e.scanner, options), e.rules);
}

// Photons that scatter between crystals, and decays of Lu-176, give partners that share an energy.
TEST_CASE("randoms: both estimates where energies tell partners from others", "[physics]") {
    Example e = few_modules(9);
    e.rules.min_module_difference = 3;
    sim::ActivitySource point;
    point.at = {7, 12, -3};
    point.activity_mbq = 20;
    sim::Options options;
    options.seed = 62;
    options.duration_s = 0.25;
    options.threads = 2;
    options.activity = {point};
    options.physics.intrinsic_hz = 500;
    options.crystals.model = sim::CrystalModel::scatter;
    options.crystals.cascade = true;
    const TrueSingles truth = simulate_singles(e.scanner, options, 150);
    for_each_policy(e.rules, [&](const gpu::CoincidenceRules& rules) {
        const Compared c = compare(truth, rules);
        INFO(summary(truth, rules, c));
        // Some of these photons and decays leave three singles, which no formula knows.
        CHECK(std::abs(c.estimate - c.truth) <= 0.02 * c.truth + 2 * std::sqrt(c.truth));
        CHECK(std::abs(c.delayeds - c.truth) <=
              0.02 * c.truth + 2 * std::sqrt(c.truth + c.delayeds_variance));
    });
}

TEST_CASE("randoms: sums over a decaying source are right", "[physics]") {
    const Example e = example("small");
    sim::Options options = off_centre(e.scanner, 2, 6);
    for (sim::ActivitySource& source : options.activity)
        source.half_life_s = 3;
    const TrueSingles truth = simulate_singles(e.scanner, options);
    const Compared c = compare(truth, e.rules);
    INFO(summary(truth, e.rules, c));
    check_totals(c);
}

TEST_CASE("randoms: every policy and mode from 1 to 60 Mcps", "[.long]") {
    struct Run {
        const char* scanner;
        double mbq;
        double seconds;
    };
    const auto run = GENERATE(Run{"mouse", 1.5, 4}, Run{"mouse", 9, 0.8}, Run{"mouse", 38, 0.25},
                              Run{"mouse", 90, 0.1}, Run{"small", 2, 5}, Run{"small", 40, 0.3});
    const Example e = example(run.scanner);
    check_policies(simulate_singles(e.scanner, off_centre(e.scanner, run.mbq, run.seconds)), e.rules);
}

TEST_CASE("randoms: every policy and mode with a condition on rings", "[.long]") {
    struct Run {
        double mbq;
        double seconds;
        std::uint32_t max_ring_difference;  // of 120
    };
    const auto run = GENERATE(Run{16, 0.6, 25}, Run{16, 0.6, 60}, Run{98, 0.07, 25}, Run{98, 0.07, 60});
    Example e = example("mouse");
    e.rules.max_ring_difference = run.max_ring_difference;
    check_policies(simulate_singles(e.scanner, off_centre(e.scanner, run.mbq, run.seconds)), e.rules);
}

TEST_CASE("randoms: dead time and Lu-176 and low sensitivity and decay", "[.long]") {
    const auto name = GENERATE("mouse", "small");
    const Example e = example(name);
    SECTION("dead time") {
        sim::Options options = off_centre(e.scanner, 100, 0.1);
        options.physics.dead_time_ticks = static_cast<std::uint64_t>(1e6 / e.scanner.tick_ps);  // 1 us
        check_policies(simulate_singles(e.scanner, options), e.rules);
    }
    SECTION("Lu-176 and low sensitivity") {
        sim::Options options = off_centre(e.scanner, 10, 0.8);
        options.physics.intrinsic_hz = 60;
        options.physics.efficiency = 0.15;
        check_policies(simulate_singles(e.scanner, options), e.rules);
    }
    SECTION("five half-lives") {
        sim::Options options = off_centre(e.scanner, 3, 40);
        for (sim::ActivitySource& source : options.activity)
            source.half_life_s = 8;
        check_policies(simulate_singles(e.scanner, options), e.rules);
    }
}

TEST_CASE("randoms: totals of ten phantoms under every policy and mode", "[.long]") {
    const std::vector<WaterPhantom> all = water_phantoms(30);
    const auto i = GENERATE(range(std::size_t{0}, std::size_t{10}));
    REQUIRE(all.size() == 10);
    Example e{config::scanner_from_json(twelve_modules(10)), {}};
    e.rules.window = 120;
    e.rules.delay = 3'300;
    e.rules.min_module_difference = 2 + static_cast<std::uint32_t>(i % 4);
    sim::Options options;
    options.seed = 90 + i;
    options.duration_s = 0.3;
    options.threads = 2;
    options.activity = all[i].activity;
    options.object = sim::ScatteringObject{all[i].water};
    options.physics.intrinsic_hz = 40;
    const TrueSingles truth = simulate_singles(e.scanner, options);
    for_each_policy(e.rules, [&](const gpu::CoincidenceRules& rules) {
        const Compared c = compare(truth, rules);
        INFO(all[i].name << ", modules at least " << rules.min_module_difference
                         << " apart: " << summary(truth, rules, c));
        // One standard deviation is at most 0.9 % of the truth, and 1.4 % with the delayeds.
        CHECK(c.estimate == Approx(c.truth).epsilon(0.02));
        CHECK(c.delayeds == Approx(c.truth).epsilon(0.03));
    });
}

// Each decay may leave a beta and the gamma of 307 keV in two crystals, and few leave three singles.
TEST_CASE("randoms: both estimates where Lu-176 counts from 250 keV on", "[.long]") {
    struct Run {
        const char* scanner;
        double mbq;
        double intrinsic_hz;
        double seconds;
    };
    const auto run = GENERATE(Run{"mouse", 2, 80, 4}, Run{"nine modules", 20, 500, 1.5},
                              Run{"nine modules", 0.1, 4000, 0.8});
    Example e = run.scanner == std::string("mouse") ? example("mouse") : few_modules(9);
    e.rules.min_module_difference = 3;
    sim::ActivitySource point;
    point.at = {7, 12, -3};
    point.activity_mbq = run.mbq;
    sim::Options options;
    options.seed = 63;
    options.duration_s = run.seconds;
    options.threads = 2;
    options.activity = {point};
    options.physics.intrinsic_hz = run.intrinsic_hz;
    options.crystals.model = sim::CrystalModel::scatter;
    options.crystals.cascade = true;
    const TrueSingles truth = simulate_singles(e.scanner, options, 250);
    for_each_policy(e.rules, [&](const gpu::CoincidenceRules& rules) {
        const Compared c = compare(truth, rules);
        INFO(summary(truth, rules, c));
        CHECK(std::abs(c.estimate - c.truth) <= 0.02 * c.truth + std::sqrt(c.truth));
        CHECK(std::abs(c.delayeds - c.truth) <= 0.02 * c.truth + std::sqrt(c.truth + c.delayeds_variance));
    });
}
