// The error of an image: replicates against scans made again and again, and the budget of its mean.
#include <numeric>

#include "tests/tools/petlm/reconstruction/image/support.hpp"
#include "tools/normalisation/normalisation.hpp"
#include "tools/petlm/reconstruction/errors/error_budget.hpp"
#include "tools/petlm/reconstruction/errors/spread.hpp"
#include "tools/petlm/reconstruction/image/positions.hpp"

using namespace petacq;
using namespace petacq::test;

TEST_CASE("image: intervals of 95 % from replicates hold the mean of a region in 95 % of scans",
          "[petlm][image]") {
    constexpr std::size_t scans = 200;
    constexpr std::size_t records_of_scan = 2'400;  // a third of them delayeds
    constexpr std::uint64_t replicates = 20;
    constexpr double t_95 = 2.093;  // Student's t, 19 degrees of freedom
    const config::Scanner scanner = short_scanner();
    const gpu::PairRule rule = gpu::PairRule::of(scanner.geometry, {});
    const corrections::LineFactors factors(scanner, config::DepthOfInteraction::fixed(0));
    net::WorkerPool pool(2);
    image::QuickLookOptions how;
    how.grid = {{13, 13, 7}, 5};
    how.iterations = 2;
    how.subsets = 2;
    how.backend = "cpu";
    how.max_memory = 200'000'000;
    std::vector<std::size_t> region;  // half of the cylinder
    for (std::size_t i = 0; i < how.grid.voxels(); ++i) {
        const double x = how.grid.centre(0, i % 13);
        const double y = how.grid.centre(1, i / 13 % 13);
        const double z = how.grid.centre(2, i / 169);
        if (x > 0 && std::hypot(x - 5, y - 2) < 12 && std::abs(z) < 8) region.push_back(i);
    }
    REQUIRE(region.size() > 20);
    const auto mean_in = [&](std::span<const float> image) {
        double sum = 0;
        for (const std::size_t i : region)
            sum += image[i];
        return sum / static_cast<double>(region.size());
    };
    const auto records = cylinder_source(scanner, {5, 2, 0}, 12, 16, scans * records_of_scan);
    std::vector<float> sensitivity;
    std::vector<double> means;
    std::vector<double> errors;
    for (std::size_t scan = 0; scan < scans; ++scan) {
        // As many counts as a scan of a fixed time has.
        std::mt19937_64 random(scan);
        const std::size_t count =
            std::min<std::size_t>(records_of_scan, std::poisson_distribution<std::size_t>(2'000)(random));
        image::PairCounts counts(scanner.geometry.crystal_count(), 1U << 16U, pool);
        counts.add(std::span(records).subspan(scan * records_of_scan, count));
        counts.finish();
        const auto imaged_of = [&](const image::PairCounts& pairs) {
            image::QuickLook look =
                image::make_quick_look(scanner, rule, pairs, factors, {}, pool, how, sensitivity);
            sensitivity = look.sensitivity;
            return std::move(look.em.image);
        };
        means.push_back(mean_in(imaged_of(counts)));
        image::Spread spread(1);
        for (std::uint64_t i = 1; i <= replicates; ++i) {
            const auto mean = static_cast<float>(mean_in(imaged_of(counts.resampled(scan * 1000 + i))));
            spread.add({&mean, 1});
        }
        errors.push_back(spread.deviation().front());
    }
    const double truth = std::accumulate(means.begin(), means.end(), 0.0) / scans;
    std::size_t inside = 0;
    for (std::size_t i = 0; i < scans; ++i)
        inside += std::abs(means[i] - truth) < t_95 * errors[i] ? 1 : 0;
    CAPTURE(truth, inside);
    CHECK(inside >= 184);
    CHECK(inside <= 196);
}

TEST_CASE("image: the error of overlapping positions is that of their weighted mean", "[petlm][image]") {
    const image::Grid grid{{1, 1, 4}, 2};
    std::vector<image::Part> parts(2);
    parts[0].bed_mm = -2;
    parts[1].bed_mm = 2;
    image::CombinedImage combined(grid, parts);
    const std::vector<float> sensitivity(4, 1);
    combined.add(parts[0], {1, 1, 1, 1}, {0.3F, 0.3F, 0.3F, 0.3F}, sensitivity, 1);
    combined.add(parts[1], {1, 1, 1, 1}, {0.4F, 0.4F, 0.4F, 0.4F}, sensitivity, 1);
    const std::vector<float> deviation = combined.deviation();
    REQUIRE(deviation.size() == 6);
    // Planes that one position sees have its error; those of both that of the mean, 0.5 / 2.
    std::vector<float> sorted = deviation;
    std::sort(sorted.begin(), sorted.end());
    CHECK(sorted[0] == Approx(0.25));
    CHECK(sorted[1] == Approx(0.25));
    CHECK(sorted[2] == Approx(0.3));
    CHECK(sorted[5] == Approx(0.4));
}

TEST_CASE("image: the budget of errors follows from counts, and names what is not known", "[petlm][image]") {
    image::ErrorCauses causes;
    causes.prompts = 10'000;
    causes.randoms = 1'000;
    causes.scatter = 1'000;
    causes.scatter_error = 0.04;
    causes.normalised = true;
    causes.efficiency_error = 0.02;
    causes.crystals = 400;
    causes.calibrated = true;
    causes.activity_error = 0.03;
    const auto find = [](const std::vector<image::ErrorShare>& shares, const std::string& name) {
        const auto found =
            std::find_if(shares.begin(), shares.end(), [&](const auto& s) { return s.name == name; });
        REQUIRE(found != shares.end());
        return found->relative;
    };
    const auto known = image::error_budget(causes);
    CHECK(*find(known, "counting") == Approx(100.0 / 8'000));
    CHECK(*find(known, "normalisation") == Approx(2 * 0.02 / 20));
    CHECK(*find(known, "scatter") == Approx(0.04 / 8));
    CHECK(*find(known, "randoms") == Approx(0.01 / 8));
    CHECK(*find(known, "dead time") == 0);
    CHECK(*find(known, "calibration") == 0.03);
    CHECK(image::total_error(known) == Approx(std::sqrt(0.0125 * 0.0125 + 0.002 * 0.002 + 0.005 * 0.005 +
                                                        0.00125 * 0.00125 + 0.03 * 0.03)));
    // Every second pair is used.
    causes.share = 0.5;
    causes.prompts = 5'000;
    CHECK(*find(image::error_budget(causes), "counting") == Approx(std::sqrt(5'000.0) / 4'000));
    causes.delayeds = 400;
    causes.dead_time = 1.2;
    causes.scatter_error.reset();
    causes.activity_error.reset();
    causes.efficiency_error.reset();
    const auto unknown = image::error_budget(causes);
    CHECK(*find(unknown, "randoms") == Approx(0.05 / 8));
    for (const char* name : {"scatter", "dead time", "calibration", "normalisation"})
        CHECK_FALSE(find(unknown, name));
}

TEST_CASE("petlm image: replicates give the error of each value, and image.json that of the mean",
          "[petlm][image]") {
    const TemporaryDirectory directory;
    const config::Scanner scanner = short_scanner();
    write_run(directory / "run", cylinder_source(scanner, {0, 0, 0}, 8, 10, 20'000), scanner);
    const auto made = [&](const std::string& options) {
        const Outcome outcome = imaged(directory / "run", directory / "out",
                                       "--force --voxel-mm 4 --smooth-mm 0 --iterations 2 " + options);
        INFO(outcome.out);
        REQUIRE(outcome.status == 0);
        return nlohmann::json::parse(read_file(directory / "out/image.json"));
    };
    const auto about = made("--replicates 20");
    const Volume image(directory / "out/image.nii");
    const Volume error(directory / "out/uncertainty.nii");
    REQUIRE(error.n == image.n);
    // 13,334 prompts, a part of them randoms.
    CHECK(about.at("errors").at("counting").at("relative").get<double>() >= 1 / std::sqrt(13'334.0));
    CHECK(about.at("errors").at("counting").at("relative").get<double>() < 0.03);
    CHECK(about.at("errors").at("calibration").at("relative").is_null());
    double value = 0;
    double deviation = 0;
    for (std::size_t i = 0; i < image.values.size(); ++i) {
        CHECK(error.values[i] >= 0);
        if (std::hypot(image.place(i)[0], image.place(i)[1]) > 6) continue;
        value += image.values[i];
        deviation += error.values[i];
    }
    CHECK(deviation > 0.01 * value);
    CHECK(deviation < 0.5 * value);
    made("");
    CHECK_FALSE(std::filesystem::exists(directory / "out/uncertainty.nii"));
    const Outcome refused = imaged(directory / "run", directory / "out2", "--replicates 1");
    CHECK(refused.status == 64);
    CHECK_THAT(refused.out, contains("--replicates: expected 2 to 1000, or 0, found 1"));
}
