// EM: projections, likelihood, counts, blur, threads, and the GPU against the CPU.
#include <numeric>

#include "gpu/device_memory_error.hpp"
#include "tests/tools/petlm/reconstruction/image/support.hpp"
#include "tools/petlm/reconstruction/projector/backend.hpp"
#include "tools/petlm/reconstruction/projector/gaussian.hpp"
#ifdef PETACQ_HAVE_CUDA
#include "gpu/cuda/cuda_pipeline.hpp"
#include "tools/petlm/reconstruction/projector/projector_cuda.hpp"
#endif

using namespace petacq;
using namespace petacq::test;

namespace {

/// A cylinder and a point.
const gpu::RecordVector<gpu::Coincidence>& some_records() {
    static const auto records = [] {
        auto all = cylinder_source(export_scanner(), {-5, 4, -6}, 9, 16, 70'000);
        const auto point = point_source(export_scanner(), {9, -6, 8}, 20'000);
        all.insert(all.end(), point.begin(), point.end());
        return all;
    }();
    return records;
}

gpu::RecordVector<gpu::Coincidence> prompts_alone() {
    return of_kind(some_records(), gpu::Kind::prompt);
}

std::vector<float> random_values(std::size_t count, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<float> out(count);
    for (float& v : out)
        v = static_cast<float>(random() % 1000) / 1000;
    return out;
}

double product(const std::vector<float>& a, const std::vector<float>& b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0, std::plus<>(),
                              [](float x, float y) { return static_cast<double>(x) * y; });
}

/// What a projector makes of all rows at once.
struct Projected {
    std::vector<float> back;
    image::Compared compared;
};

Projected projected(image::Projector& projector, const EmInput& input, const std::vector<float>& x) {
    Projected out{std::vector<float>(x.size()), {}};
    projector.use(input.lines.rows());
    out.compared = projector.compare(x, 0, input.lines.pairs.size(), out.back);
    return out;
}

}  // namespace

TEST_CASE("image: a projector back-projects prompts / expected along the rows that it projects",
          "[petlm][image]") {
    const image::TofBins tof = image::TofBins::of(180, 10, 400);
    for (const image::TofBins& bins : {image::TofBins{}, tof}) {
        EmInput input(some_records(), 1, 2, bins);
        const auto& lines = input.lines;
        const auto x = random_values(input.grid.voxels(), 1);
        const Projected found =
            projected(*image::make_host_projector(input.grid, input.geometry, input.pool), input, x);
        // The slow way, in double precision.
        const image::Box box = image::Box::of(input.grid);
        const image::TofTable table(bins);
        std::vector<double> back(x.size());
        double likelihood = 0;
        for (std::size_t i = 0; i < lines.pairs.size(); ++i) {
            const auto walk = [&](const auto& use) {
                image::walk_row(box, image::lines_of(input.geometry, lines.pairs[i], box.voxel),
                                table.weights(table.nodes.data()),
                                bins.used() ? lines.bins[i] : std::int16_t{0}, use);
            };
            double along = 0;
            walk([&](std::uint32_t voxel, float w) { along += double{w} * x[voxel]; });
            const double expected = along + lines.additive[i];
            if (!(expected > 0)) continue;
            likelihood += lines.prompts[i] * std::log(expected);
            walk([&](std::uint32_t voxel, float w) { back[voxel] += w * lines.prompts[i] / expected; });
        }
        const double largest = *std::max_element(back.begin(), back.end());
        REQUIRE(largest > 0);
        for (std::size_t i = 0; i < x.size(); ++i) {
            if (x[i] > 0) REQUIRE(found.back[i] == Approx(back[i]).margin(1e-5 * largest));
        }
        CHECK(found.compared.log_likelihood == Approx(likelihood).epsilon(1e-6));
    }
}

TEST_CASE("image: EM raises the likelihood and keeps the counts", "[petlm][image]") {
    const auto records = prompts_alone();
    EmInput input(records, 1);
    const auto result = input.run(8);
    REQUIRE(result.log_likelihood.size() == 9);
    for (std::size_t i = 1; i < result.log_likelihood.size(); ++i)
        CHECK(result.log_likelihood[i] > result.log_likelihood[i - 1]);
    CHECK(result.outside < records.size() / 1000);
    CHECK(*std::min_element(result.image.begin(), result.image.end()) >= 0);
    CHECK(product(result.image, input.sensitivity) ==
          Approx(static_cast<double>(records.size() - result.outside)).epsilon(1e-4));
}

TEST_CASE("image: with randoms EM raises the likelihood, and the image has the prompts minus the randoms",
          "[petlm][image]") {
    EmInput input(some_records(), 1);
    const auto result = input.run(8);
    for (std::size_t i = 1; i < result.log_likelihood.size(); ++i)
        CHECK(result.log_likelihood[i] > result.log_likelihood[i - 1]);
    const double prompts = static_cast<double>(prompts_alone().size());
    const double counts = product(result.image, input.sensitivity);
    CHECK(counts < 0.999 * prompts);
    CHECK(counts > 0.5 * prompts);
}

TEST_CASE("image: a step with all lines after the subsets keeps the counts", "[petlm][image]") {
    EmInput input(prompts_alone(), 8);
    // All subsets but the last have twice as many.
    for (std::size_t i = 0; i < input.lines.subset_start[7]; ++i)
        input.lines.prompts[i] *= 2;
    const double prompts = std::accumulate(input.lines.prompts.begin(), input.lines.prompts.end(), 0.0);
    image::EmOptions options;
    options.iterations = 2;
    const auto run = [&] {
        const auto projector = image::make_host_projector(input.grid, input.geometry, input.pool);
        const image::EmResult result =
            image::reconstruct(*projector, input.grid, input.lines, input.sensitivity, input.pool, options);
        return product(result.image, input.sensitivity) / (prompts - static_cast<double>(result.outside));
    };
    CHECK(run() < 0.8);
    options.end_with_all_lines = true;
    CHECK(run() == Approx(1).epsilon(1e-4));
}

TEST_CASE("image: subsets reach about the same image sooner", "[petlm][image]") {
    EmInput one(prompts_alone(), 1);
    EmInput eight(prompts_alone(), 8);
    const auto slow = one.run(16).image;
    const auto fast = eight.run(2).image;
    const auto again = one.run(2).image;
    const auto apart = [&](const std::vector<float>& a) {
        double sum = 0;
        for (std::size_t i = 0; i < a.size(); ++i)
            sum += std::abs(static_cast<double>(a[i]) - slow[i]);
        return sum / std::accumulate(slow.begin(), slow.end(), 0.0);
    };
    CHECK(apart(fast) < 0.25);
    CHECK(apart(again) > 2 * apart(fast));
}

TEST_CASE("image: the same for every number of threads", "[petlm][image]") {
    const auto& records = some_records();
    const image::TofBins tof = image::TofBins::of(200, 10, 400);
    EmInput input(records, 2, 1, tof);
    const auto expected = input.run(2, 3.0);
    for (const std::uint32_t threads : {2U, 3U, 7U}) {
        EmInput other(records, 2, threads, tof);
        const auto found = other.run(2, 3.0);
        CHECK(found.image == expected.image);
        CHECK(found.log_likelihood == expected.log_likelihood);
    }
}

TEST_CASE("image: with a blur in its model EM raises the likelihood, keeps the counts, and sharpens",
          "[petlm][image]") {
    const auto records = prompts_alone();
    EmInput input(records, 1);
    const auto plain = input.run(12);
    const auto sharp = input.run(12, 4.0);
    for (std::size_t i = 1; i < sharp.log_likelihood.size(); ++i)
        CHECK(sharp.log_likelihood[i] > sharp.log_likelihood[i - 1]);
    // The counts are those of the blurred image.
    std::vector<float> blurred = sharp.image;
    image::blur(blurred, input.grid, 4.0, input.pool);
    CHECK(product(blurred, input.sensitivity) == Approx(records.size() - sharp.outside).epsilon(0.02));
    // The image before a blur, so its blur is no sharper than the image without one.
    CHECK(*std::max_element(blurred.begin(), blurred.end()) <
          1.5F * *std::max_element(plain.image.begin(), plain.image.end()));
    CHECK(sharp.image != plain.image);
}

namespace {

/// The CPU projector standing in for a GPU whose memory others hold.
class ShortDevice final : public image::Projector {
  public:
    ShortDevice(EmInput& input, bool room)
        : host_(image::make_host_projector(input.grid, input.geometry, input.pool)), room_(room) {}
    void use(const image::Rows& rows) override {
        if (!room_) throw gpu::DeviceMemoryError("memory of the GPU: none left");
        host_->use(rows);
    }
    image::Compared compare(std::span<const float> image, std::size_t begin, std::size_t end,
                            std::span<float> back) override {
        return host_->compare(image, begin, end, back);
    }

  private:
    std::unique_ptr<image::Projector> host_;
    bool room_;
};

}  // namespace

TEST_CASE("image: a GPU with too little memory leaves the work to the CPU, unless it was asked for",
          "[petlm][image]") {
    EmInput input(some_records(), 2);
    const auto expected = input.run(2).image;
    image::CudaProjectors cuda;
    std::vector<float> found;
    const auto on = [&](const std::string& name) {
        found.clear();
        return image::compute_on(
            name, cuda, input.grid, input.geometry,
            [&] { return image::make_host_projector(input.grid, input.geometry, input.pool); },
            [&](image::Projector& projector) { found = input.run(2, projector).image; });
    };
    const auto falls_back = [&](const std::string& why) {
        CAPTURE(why);
        const image::Computed computed = on("auto");
        CHECK_FALSE(computed.cuda);
        CHECK_THAT(computed.why, contains("auto: CUDA cannot be used: memory of the GPU: "));
        CHECK_THAT(computed.why, contains(why));
        CHECK(computed.why.find("--max-memory-gb") == std::string::npos);
        CHECK(found == expected);
        CHECK_THROWS_AS(on("cuda"), gpu::DeviceMemoryError);
        CHECK(on("cpu").why == "asked for");
    };
    const auto with = [&](bool room) {
        cuda.make = [&input, room](const image::Grid&, const config::LineGeometry&) {
            return std::make_unique<ShortDevice>(input, room);
        };
    };
    with(false);
    falls_back("none left");
    cuda.make = [](const image::Grid&, const config::LineGeometry&) -> std::unique_ptr<image::Projector> {
        throw gpu::DeviceMemoryError("memory of the GPU: allocating");
    };
    falls_back("allocating");
    with(true);
    CHECK(on("auto").cuda);
    CHECK(found == expected);
    CHECK(on("cuda").why == "asked for");
    // Other failures are passed on.
    cuda.make = [](const image::Grid&, const config::LineGeometry&) -> std::unique_ptr<image::Projector> {
        throw std::runtime_error("the GPU fell off the bus");
    };
    CHECK_THROWS_WITH(on("auto"), contains("fell off"));
    cuda.unusable = "there is none";
    CHECK(on("auto").why == "auto: CUDA cannot be used: there is none");
    CHECK_THROWS_WITH(on("cuda"), contains("there is none"));
}

#ifdef PETACQ_HAVE_CUDA
TEST_CASE("image: a GPU makes the image of the CPU", "[petlm][image][cuda]") {
    if (const auto reason = gpu::cuda_unusable_reason()) {
        WARN("skipped: " << *reason);
        return;
    }
    // Sums of floats in another order: 1e-5 of the largest value for a product, 1e-3 for an image.
    const auto close = [](const std::vector<float>& a, const std::vector<float>& b, double tolerance) {
        REQUIRE(a.size() == b.size());
        const double largest = *std::max_element(b.begin(), b.end());
        REQUIRE(largest > 0);
        double difference = 0;
        for (std::size_t i = 0; i < a.size(); ++i)
            difference = std::max(difference, std::abs(static_cast<double>(a[i]) - b[i]));
        CHECK(difference <= tolerance * largest);
    };
    for (const image::TofBins& tof : {image::TofBins{}, image::TofBins::of(180, 10, 400)}) {
        EmInput input(some_records(), 1, 2, tof);
        const auto x = random_values(input.grid.voxels(), 1);
        const auto host = image::make_host_projector(input.grid, input.geometry, input.pool);
        const auto device = image::make_cuda_projector(input.grid, input.geometry);
        const Projected expected = projected(*host, input, x);
        const Projected found = projected(*device, input, x);
        close(found.back, expected.back, 1e-5);
        CHECK(found.compared.log_likelihood == Approx(expected.compared.log_likelihood).epsilon(1e-6));
        CHECK(found.compared.outside == expected.compared.outside);

        EmInput subsets(some_records(), 4, 2, tof);
        const auto on_cpu = subsets.run(3, 2.5);
        const auto on_gpu = subsets.run(3, *image::make_cuda_projector(subsets.grid, subsets.geometry), 2.5);
        close(on_gpu.image, on_cpu.image, 1e-3);
        CHECK(on_gpu.log_likelihood.back() == Approx(on_cpu.log_likelihood.back()).epsilon(1e-5));
        // The same every time.
        const auto again = subsets.run(3, *image::make_cuda_projector(subsets.grid, subsets.geometry), 2.5);
        CHECK(again.image == on_gpu.image);
        CHECK(again.log_likelihood == on_gpu.log_likelihood);
    }
}
#endif
