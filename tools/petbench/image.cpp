// Suite "image": the time of each part of petlm's quick-look image, on the CPU and with CUDA.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "config/base/constants.hpp"
#include "tools/geometry/hit_finder.hpp"
#include "tools/petbench/base/measure.hpp"
#include "tools/petbench/base/suites.hpp"
#include "tools/petlm/reconstruction/image/image.hpp"
#include "tools/petlm/reconstruction/image/quick_look.hpp"

namespace petacq::bench {
namespace {

constexpr double window_ps = 4000;

/// Prompts of a cylinder that fills a third of the bore's width and half of its length, with time differences
/// of that resolution.
gpu::RecordVector<gpu::Coincidence> prompts_of(const config::Scanner& scanner, std::size_t count,
                                               double fwhm_ps) {
    const geometry::HitFinder finder(scanner);
    std::mt19937_64 random(1);
    std::normal_distribution<double> blur_ps(0, std::max(fwhm_ps, 1.0) / config::fwhm_per_sigma);
    const auto uniform = [&] { return static_cast<double>(random() >> 11U) * 0x1p-53; };
    const double radius = finder.radius_mm() / 3;
    const double length = (finder.axial_high_mm() - finder.axial_low_mm()) / 2;
    gpu::RecordVector<gpu::Coincidence> out;
    while (out.size() < count) {
        const double r = radius * std::sqrt(uniform());
        const double around = 2 * std::numbers::pi * uniform();
        const config::Vector3 from = {r * std::cos(around), r * std::sin(around), length * (uniform() - 0.5)};
        const double z = 2 * uniform() - 1;
        const double across = std::sqrt(1 - z * z);
        const double angle = 2 * std::numbers::pi * uniform();
        const auto a = finder.find(from, {across * std::cos(angle), across * std::sin(angle), z});
        const auto b = finder.find(from, {-across * std::cos(angle), -across * std::sin(angle), -z});
        if (!a || !b) continue;
        gpu::Coincidence c;
        const double later_ps = (b->distance_mm - a->distance_mm) / config::light_mm_per_ps + blur_ps(random);
        c.crystal_a = later_ps < 0 ? b->crystal : a->crystal;
        c.crystal_b = later_ps < 0 ? a->crystal : b->crystal;
        c.dt = static_cast<std::uint32_t>(std::min(std::abs(later_ps), window_ps) / scanner.tick_ps);
        out.push_back(c);
    }
    return out;
}

struct Times {
    std::vector<double> count;
    std::vector<double> sensitivity;
    std::vector<double> projections;
    std::vector<double> whole;
};

void print(const std::string& name, const image::QuickLook& look, const ImageSuite& suite, const Times& t) {
    std::printf("%s: %s\n", name.c_str(), look.backend.c_str());
    const TextTable table(22, {10, 9});
    const auto row = [&](const char* what, const std::vector<double>& seconds, double done,
                         const char* unit) {
        const double s = median(seconds);
        table.row(what, {fmt::format("{:.3f} s", s), fmt::format("{:.2f}", done / s)}, unit);
    };
    table.row("  pairs counted", {fmt::format("{:.3f} s", median(t.count))});
    table.row("  sensitivity", {fmt::format("{:.3f} s", median(t.sensitivity))});
    row("  iterations", t.projections, suite.millions * suite.iterations, " M prompts/s per iteration");
    row("  whole", t.whole, suite.millions, " M prompts/s");
}

}  // namespace

void run(const ImageSuite& suite) {
    const config::Scanner scanner = config::load_scanner(suite.scanner);
    const auto records =
        prompts_of(scanner, static_cast<std::size_t>(suite.millions * 1e6), suite.tof_fwhm_ps);
    image::TofBins tof;
    if (suite.tof_fwhm_ps > 0) {
        tof = image::TofBins::of(suite.tof_fwhm_ps, scanner.tick_ps,
                                 static_cast<std::uint32_t>(window_ps / scanner.tick_ps));
    }
    image::QuickLookOptions options;
    options.grid = image::choose_grid(scanner, {});
    options.iterations = suite.iterations;
    options.subsets = suite.subsets;
    options.max_memory = static_cast<std::uint64_t>(suite.max_memory_gb * 1e9);
    options.psf_mm = suite.psf_mm;
    options.smooth_mm = 2 * options.grid.voxel_mm;
    const corrections::LineFactors factors(scanner, config::DepthOfInteraction::fixed(0));
    net::WorkerPool pool(suite.threads != 0 ? suite.threads
                                            : std::max(1U, std::thread::hardware_concurrency()));
    const gpu::PairRule rule = gpu::PairRule::of(scanner.geometry, {});
    std::printf("%.2f M prompts in memory, %u x %u x %u voxels of %.3g mm, %u x %u subsets, median of %d\n",
                static_cast<double>(records.size()) / 1e6, options.grid.n[0], options.grid.n[1],
                options.grid.n[2], options.grid.voxel_mm, suite.iterations, suite.subsets, suite.rounds);

    std::vector<image::QuickLook> looks(suite.backends.size());
    for (std::size_t b = 0; b < suite.backends.size(); ++b) {
        options.backend = suite.backends[b];
        Times times;
        // The first round is not counted because it loads libraries.
        for (int round = 0; round < suite.rounds + 1; ++round) {
            double count = 0;
            const double whole = seconds_of([&] {
                image::PairCounts pairs(scanner.geometry.crystal_count(),
                                        image::pair_capacity(options.max_memory), pool, tof);
                count = seconds_of([&] {
                    pairs.add(records);
                    pairs.finish();
                });
                looks[b] = image::make_quick_look(scanner, rule, pairs, factors, {}, pool, options);
            });
            if (round == 0) continue;
            times.count.push_back(count);
            times.sensitivity.push_back(looks[b].sensitivity_s);
            times.projections.push_back(looks[b].em.projection_s);
            times.whole.push_back(whole);
        }
        print(suite.backends[b], looks[b], suite, times);
    }
    for (std::size_t b = 1; b < looks.size(); ++b) {
        double largest = 0;
        double difference = 0;
        for (std::size_t i = 0; i < looks[0].em.image.size(); ++i) {
            largest = std::max<double>(largest, looks[0].em.image[i]);
            difference = std::max(difference, std::abs(static_cast<double>(looks[b].em.image[i]) -
                                                       static_cast<double>(looks[0].em.image[i])));
        }
        std::printf("%s and %s: largest difference %.2g of the largest value\n", suite.backends[b].c_str(),
                    suite.backends[0].c_str(), difference / largest);
    }
}

}  // namespace petacq::bench
