// The time of flight: bins, places along lines, and the image with it against the image without.
#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "tests/tools/petlm/reconstruction/image/support.hpp"
#include "tools/petlm/reconstruction/em/line_sums.hpp"

using namespace petacq;
using namespace petacq::test;
using image::TofBins;

namespace {

constexpr std::uint32_t window = 64;  // ticks of 15.625 ps
constexpr double fwhm_ps = 100;

/// A cylinder as cylinder_source() makes, with time differences of `fwhm_ps`; of the pairs, `randoms` come at
/// any time difference in the window, and the rest of them from the cylinder. The earlier single comes first.
gpu::RecordVector<gpu::Coincidence> timed_cylinder(const config::Scanner& scanner, double radius,
                                                   double length, std::size_t count, double randoms) {
    const geometry::HitFinder finder(scanner);
    std::mt19937_64 random(21);
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<double> uniform(-1, 1);
    const auto direction = [&] {
        config::Vector3 u = {normal(random), normal(random), normal(random)};
        const double norm = std::hypot(u[0], u[1], u[2]);
        for (double& x : u)
            x /= norm;
        return u;
    };
    gpu::RecordVector<gpu::Coincidence> out;
    const auto add = [&](std::uint32_t a, std::uint32_t b, std::int64_t ticks) {
        if (a == b || std::abs(ticks) > window) return;
        if (ticks < 0) std::swap(a, b);
        gpu::Coincidence c;
        c.time = run_start + 1000 * out.size();
        c.crystal_a = a;
        c.crystal_b = b;
        c.dt = static_cast<std::uint32_t>(std::abs(ticks));
        out.push_back(c);
    };
    while (out.size() < count) {
        const config::Vector3 u = direction();
        const config::Vector3 from = {uniform(random), uniform(random), uniform(random)};
        if (std::hypot(from[0], from[1]) > 1) continue;
        const config::Vector3 place = {radius * from[0], radius * from[1], length / 2 * from[2]};
        const auto a = finder.find(place, u);
        const auto b = finder.find(place, {-u[0], -u[1], -u[2]});
        if (!a || !b) continue;
        const double ps = (b->distance_mm - a->distance_mm) / config::light_mm_per_ps +
                          normal(random) * fwhm_ps / config::fwhm_per_sigma;
        if (uniform(random) < 1 - 2 * randoms) {
            add(a->crystal, b->crystal, std::lround(ps / scanner.tick_ps));
            continue;
        }
        // A random pair: both ends anywhere.
        const auto crystals = scanner.geometry.crystal_count();
        add(static_cast<std::uint32_t>(random() % crystals), static_cast<std::uint32_t>(random() % crystals),
            static_cast<std::int64_t>(random() % (2 * window + 1)) - window);
    }
    return out;
}

TofBins some_bins() {
    return TofBins::of(fwhm_ps, export_scanner().tick_ps, window);
}

}  // namespace

TEST_CASE("image: bins of the time of flight are about a third of the resolution, and even around 0",
          "[petlm][image][tof]") {
    for (const double ps : {20.0, 100.0, 400.0, 5000.0}) {
        CAPTURE(ps);
        const TofBins bins = TofBins::of(ps, 15.625, 640);
        CHECK(bins.ticks % 2 == 1);
        CHECK(bins.ticks * 15.625 <= std::max(ps / 3 + 2 * 15.625, 15.625));
        double window_shares = 0;
        std::map<int, int> ticks;
        for (int difference = -640; difference <= 640; ++difference) {
            ++ticks[bins.bin(difference)];
            CHECK(bins.bin(-difference) == -bins.bin(difference));
        }
        for (const auto& [bin, number] : ticks) {
            const double share = bins.share_of_window(static_cast<std::int16_t>(bin));
            CHECK(share == Approx(number / 1281.0));
            window_shares += share;
        }
        CHECK(window_shares == Approx(1));
    }
}

TEST_CASE("image: the chances of all bins add up to 1 at every place, also in the table",
          "[petlm][image][tof]") {
    const TofBins bins = some_bins();
    const image::TofTable table(bins);
    const auto weights = table.weights(table.nodes.data());
    for (int i = -54; i <= 54; ++i) {
        const double place = 0.37 * i;
        double exact = 0;
        double tabled = 0;
        for (int bin = -200; bin <= 200; ++bin) {
            exact += bins.chance(place - bin * bins.bin_mm());
            tabled += static_cast<double>(weights.chance(static_cast<float>(place - bin * bins.bin_mm())));
        }
        CHECK(exact == Approx(1));
        CHECK(tabled == Approx(1).epsilon(1e-4));
    }
    // The mean is that of many places.
    for (const auto& [from, to] : {std::pair(-500.0, 400.0), std::pair(-3.0, 8.0), std::pair(12.0, 90.0)}) {
        double sum = 0;
        constexpr int places = 20'000;
        for (int i = 0; i < places; ++i)
            sum += bins.chance(from + (to - from) * (i + 0.5) / places);
        CHECK(bins.mean_chance(from, to) == Approx(sum / places).epsilon(1e-3).margin(1e-9));
    }
}

TEST_CASE("image: the time of flight places a pair near the annihilation, whichever single came first",
          "[petlm][image][tof]") {
    const config::Scanner scanner = export_scanner();
    const config::Vector3 where = {14, -9, 5};
    auto records = of_kind(point_source(scanner, where, 3000), gpu::Kind::prompt);
    net::WorkerPool pool(1);
    const image::Grid grid{{66, 66, 54}, 0.95};
    const image::Box box = image::Box::of(grid);
    const config::LineGeometry geometry(scanner, config::DepthOfInteraction::fixed(0));
    const TofBins bins = TofBins::of(40, scanner.tick_ps, window);
    const image::TofTable table(bins);
    image::PairCounts counts(scanner.geometry.crystal_count(), 1U << 20U, pool, bins);
    counts.add(records);
    counts.finish();
    const auto rows = counts.measured();
    CHECK(counts.prompts() == records.size());
    CHECK(std::any_of(rows.bins.begin(), rows.bins.end(), [](auto bin) { return bin < 0; }));
    CHECK(std::any_of(rows.bins.begin(), rows.bins.end(), [](auto bin) { return bin > 0; }));
    for (std::size_t i = 0; i < rows.pairs.size(); ++i) {
        double sum = 0;
        config::Vector3 mean{};
        image::walk_row(
            box, image::lines_of(geometry, rows.pairs[i], grid.voxel_mm), table.weights(table.nodes.data()),
            rows.bins[i], [&](std::uint32_t voxel, float weight) {
                const std::array<std::size_t, 3> at = {voxel % 66, voxel / 66 % 66, voxel / 66 / 66};
                sum += static_cast<double>(weight);
                for (std::size_t axis = 0; axis < 3; ++axis)
                    mean[axis] += static_cast<double>(weight) * grid.centre(axis, at[axis]);
            });
        REQUIRE(sum > 0);
        for (double& x : mean)
            x /= sum;
        // Half a bin, and half a tick at each end.
        REQUIRE(Volume::distance(mean, where) < bins.bin_mm() / 2 + 3.5);
    }
    // Without it, the same records make the same pairs with the same counts.
    image::PairCounts plain(scanner.geometry.crystal_count(), 1U << 20U, pool);
    plain.add(records);
    plain.finish();
    const image::PairCounts merged = counts.without_tof();
    CHECK(merged.counts() == plain.counts());
    CHECK(merged.prompts() == plain.prompts());
    REQUIRE(merged.pairs().size() == plain.pairs().size());
    for (std::size_t i = 0; i < plain.pairs().size(); ++i)
        REQUIRE((merged.pairs()[i].a == plain.pairs()[i].a && merged.pairs()[i].b == plain.pairs()[i].b));
}

TEST_CASE("image: with and without the time of flight, an image has the same means within 1 %, with randoms",
          "[petlm][image][tof]") {
    const config::Scanner scanner = export_scanner();
    constexpr double random_share = 0.15;
    const auto records = timed_cylinder(scanner, 14, 40, 220'000, random_share);
    const gpu::PairRule rule = gpu::PairRule::of(scanner.geometry, {});
    const image::Grid grid{{33, 33, 27}, 1.9};
    net::WorkerPool pool(2);
    const corrections::LineFactors factors(scanner, config::DepthOfInteraction::fixed(0));
    const auto sensitivity = image::sum_of_lines(factors, grid, rule, {}, pool);
    const double crystals = scanner.geometry.crystal_count();
    const double of_pair =
        random_share * static_cast<double>(records.size()) / (crystals * (crystals - 1) / 2);
    struct Made {
        double mean = 0;
        double outside = 0;
    };
    const auto made = [&](const TofBins& bins) {
        image::PairCounts counts(scanner.geometry.crystal_count(), 1U << 20U, pool, bins);
        counts.add(records);
        counts.finish();
        const image::Lines lines = image::make_lines(factors, grid, counts.measured(),
                                                     {[&](image::Pair) { return of_pair; }, {}, {}}, 4);
        image::EmOptions options;
        options.iterations = 6;
        const auto projector = image::make_host_projector(grid, factors.geometry(), pool);
        const auto image = image::reconstruct(*projector, grid, lines, sensitivity, pool, options).image;
        Made out;
        std::size_t inside = 0;
        std::size_t far = 0;
        for (std::size_t i = 0; i < image.size(); ++i) {
            const double x = grid.centre(0, i % 33);
            const double y = grid.centre(1, i / 33 % 33);
            if (std::abs(grid.centre(2, i / 33 / 33)) > 14) continue;
            const double r = std::hypot(x, y);
            if (r < 11) out.mean += image[i], ++inside;
            if (r > 18 && r < 26) out.outside += image[i], ++far;
        }
        out.mean /= static_cast<double>(inside);
        out.outside /= static_cast<double>(far);
        return out;
    };
    const Made without = made({});
    const Made with = made(some_bins());
    CHECK(with.mean == Approx(without.mean).epsilon(0.01));
    // The randoms of lines beside the cylinder are where they belong: nowhere.
    CHECK(with.outside < 0.05 * with.mean);
}

TEST_CASE(
    "image: two photons that start together have the time differences of spurious pairs, on the line "
    "or not",
    "[petlm][image][tof]") {
    const config::Scanner scanner = export_scanner();
    const corrections::LineFactors factors(scanner, config::DepthOfInteraction::fixed(0));
    const geometry::HitFinder finder(scanner);
    const TofBins bins = some_bins();
    std::mt19937_64 random(8);
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<double> uniform(-1, 1);
    // Decays are in two rods on different sides of the axis.
    const auto place = [&]() -> config::Vector3 {
        const double side = uniform(random) < -0.3 ? -1 : 1;
        return {side * 9 + 3 * uniform(random), side * 4 + 3 * uniform(random), 15 * uniform(random)};
    };
    std::vector<config::Vector3> places(32);
    std::generate(places.begin(), places.end(), place);
    const auto direction = [&]() -> config::Vector3 {
        config::Vector3 u = {normal(random), normal(random), normal(random)};
        const double norm = std::hypot(u[0], u[1], u[2]);
        for (double& x : u)
            x /= norm;
        return u;
    };
    // The lines pass near the axis, at some distance from it, and far from it.
    constexpr int last = 60;
    struct Shares {
        std::map<int, double> found;
        std::map<int, double> expected;
        double all = 0;
    };
    std::array<Shares, 3> groups;
    for (int i = 0; i < 40'000; ++i) {
        const config::Vector3 at = place();
        const auto a = finder.find(at, direction());
        const auto b = finder.find(at, direction());
        if (!a || !b || a->crystal == b->crystal) continue;
        const bool swapped = b->crystal < a->crystal;
        const image::Pair pair{std::min(a->crystal, b->crystal), std::max(a->crystal, b->crystal)};
        const auto [p, q] = factors.ends(pair.a, pair.b);
        const double across = std::hypot(q[0] - p[0], q[1] - p[1]);
        if (across < 20) continue;  // does not cross the field of view
        const double beside = std::abs(p[0] * q[1] - p[1] * q[0]) / across;
        Shares& group = groups.at(beside < 8 ? 0 : beside < 16 ? 1 : 2);
        const double longer = (b->distance_mm - a->distance_mm) * (swapped ? -1 : 1);
        const double ps =
            longer / config::light_mm_per_ps + normal(random) * fwhm_ps / config::fwhm_per_sigma;
        ++group.all;
        ++group.found[bins.bin(std::lround(ps / scanner.tick_ps))];
        for (int bin = -last; bin <= last; ++bin) {
            group.expected[bin] +=
                image::share_of_spurious(factors, pair, bins, static_cast<std::int16_t>(bin), places);
        }
    }
    for (Shares& group : groups) {
        REQUIRE(group.all > 1000);
        CAPTURE(group.all);
        double sum = 0;
        double apart = 0;
        for (const auto& [bin, expected] : group.expected) {
            sum += expected / group.all;
            apart += std::abs(expected - group.found[bin]) / group.all / 2;
        }
        CHECK(sum == Approx(1).epsilon(1e-3));
        CHECK(apart < 0.08);
    }
}

TEST_CASE("image: randoms and scatter of a pair are shared among its bins, and none is lost",
          "[petlm][image][tof]") {
    const config::Scanner scanner = export_scanner();
    const corrections::LineFactors factors(scanner, config::DepthOfInteraction::fixed(0),
                                           {{}, {"4,-3,0,12,30"}});
    const TofBins bins = some_bins();
    const image::Grid grid{{16, 16, 16}, 4};
    std::vector<image::Pair> pairs;
    std::vector<std::uint32_t> counts;
    std::vector<std::int16_t> at;
    const std::vector<image::Pair> lines = {{0, 150}, {3, 170}, {7, 100}, {1, 400}};
    constexpr int last = 60;
    for (const image::Pair pair : lines) {
        for (int bin = -last; bin <= last; ++bin) {
            pairs.push_back(pair);
            counts.push_back(1);
            at.push_back(static_cast<std::int16_t>(bin));
        }
    }
    const auto sums_of = [&](double randoms, double scatter) {
        const image::Lines made = image::make_lines(
            factors, grid, {pairs, counts, at, bins},
            {[&](image::Pair) { return randoms; }, {}, [&](image::Pair) { return scatter; }}, 1);
        std::vector<double> sums;
        const double scale = image::weight_scale(factors, grid);
        for (const image::Pair pair : lines) {
            double sum = 0;
            double middle = 0;
            for (std::size_t i = 0; i < made.pairs.size(); ++i) {
                if (made.pairs[i].a != pair.a || made.pairs[i].b != pair.b) continue;
                const double expected = made.additive[i] * factors.solid_angle(pair.a, pair.b, scale);
                sum += expected;
                middle += expected * made.bins[i];
            }
            sums.push_back(sum);
            sums.push_back(middle / sum);
        }
        return sums;
    };
    const auto randoms = sums_of(2, 0);
    const auto scatter = sums_of(0, 3);
    for (std::size_t i = 0; i < lines.size(); ++i) {
        CHECK(randoms[2 * i] == Approx(2).epsilon(1e-3));
        CHECK(randoms[2 * i + 1] == Approx(0).margin(1e-3));
        CHECK(scatter[2 * i] == Approx(3).epsilon(1e-2));
        // Around the place on the line that is nearest to the middle of the object.
        const auto [a, b] = factors.ends(lines[i].a, lines[i].b);
        const double across = std::hypot(b[0] - a[0], b[1] - a[1]);
        const double length = std::hypot(across, b[2] - a[2]);
        const double along =
            ((4 - a[0]) * (b[0] - a[0]) + (-3 - a[1]) * (b[1] - a[1])) / (across * across) * length;
        CHECK(scatter[2 * i + 1] * bins.bin_mm() == Approx(length / 2 - along).margin(0.3));
    }
}
