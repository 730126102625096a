// Projections and EM: adjoint, likelihood, counts, threads, pieces, and the GPU against the CPU.
#include <numeric>

#include "gpu/device_memory_error.hpp"
#include "tests/tools/petlm/reconstruction/image/support.hpp"
#include "tools/petlm/reconstruction/em/matrix_pieces.hpp"
#include "tools/petlm/reconstruction/projector/backend.hpp"
#ifdef PETACQ_HAVE_CUSPARSE
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

/// A x for all lines, and A^T y.
struct Projected {
    std::vector<float> lines;
    std::vector<float> image;
};

Projected projected(image::Projector& projector, EmInput& input, const std::vector<float>& x,
                    const std::vector<float>& y) {
    Projected out{std::vector<float>(y.size()), std::vector<float>(x.size())};
    projector.set_image(x);
    projector.clear_sums();
    image::MatrixPieces pieces(projector, input.grid, input.geometry, input.lines, input.pool);
    for (const auto& piece : pieces.of_subset(0)) {
        const auto part = [&](auto& values) {
            return std::span(values).subspan(piece.begin, piece.end - piece.begin);
        };
        auto& matrix = pieces.matrix(piece);
        matrix.forward(part(out.lines));
        matrix.back(part(y));
    }
    projector.read_sums(out.image);
    return out;
}

}  // namespace

TEST_CASE("image: back-projection is the adjoint of projection", "[petlm][image]") {
    EmInput input(some_records(), 1);
    const auto x = random_values(input.grid.voxels(), 1);
    const auto y = random_values(input.lines.pairs.size(), 2);
    const auto projector = image::make_host_projector(input.grid, input.geometry, input.pool, UINT64_MAX);
    const Projected both = projected(*projector, input, x, y);
    const double forward = product(both.lines, y);
    CHECK(forward > 0);
    CHECK(forward == Approx(product(x, both.image)).epsilon(1e-6));
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

TEST_CASE("image: the same for every number of threads and every division of the matrix", "[petlm][image]") {
    const auto& records = some_records();
    EmInput input(records, 2, 1);
    const auto expected = input.run(2);
    CHECK(expected.matrix_kept);
    for (const std::uint32_t threads : {2U, 3U, 7U}) {
        EmInput other(records, 2, threads);
        CHECK(other.run(2).image == expected.image);
    }
    const auto projector = image::make_host_projector(input.grid, input.geometry, input.pool, 0);
    const std::uint64_t smallest = projector->matrix_bytes(image::matrix_step, 64 * image::matrix_step);
    const auto cut = input.run(2, smallest);
    CHECK_FALSE(cut.matrix_kept);
    CHECK(cut.image == expected.image);
    CHECK(cut.nonzeros == expected.nonzeros);
    CHECK_THROWS_WITH(input.run(1, 100'000), contains("smallest piece"));
}

namespace {

/// The CPU projector standing in for a GPU whose memory others hold.
class ShortDevice final : public image::Projector {
  public:
    ShortDevice(EmInput& input, std::uint64_t budget, bool builds)
        : host_(image::make_host_projector(input.grid, input.geometry, input.pool, budget)),
          builds_(builds) {}
    void set_image(std::span<const float> image) override { host_->set_image(image); }
    void clear_sums() override { host_->clear_sums(); }
    void read_sums(std::span<float> sums) override { host_->read_sums(sums); }
    std::unique_ptr<image::SystemMatrix> build(std::span<const image::Pair> pairs,
                                               std::span<const std::uint32_t> row_start) override {
        if (!builds_) throw gpu::DeviceMemoryError("memory of the GPU: none left");
        return host_->build(pairs, row_start);
    }
    [[nodiscard]] std::uint64_t matrix_budget() const override { return host_->matrix_budget(); }
    [[nodiscard]] std::uint64_t matrix_bytes(std::uint64_t lines, std::uint64_t nonzeros) const override {
        return host_->matrix_bytes(lines, nonzeros);
    }
    [[nodiscard]] bool on_device() const override { return true; }

  private:
    std::unique_ptr<image::Projector> host_;
    bool builds_;
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
            [&] { return image::make_host_projector(input.grid, input.geometry, input.pool, UINT64_MAX); },
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
    const auto with = [&](std::uint64_t budget, bool builds) {
        cuda.make = [&input, budget, builds](const image::Grid&, const config::LineGeometry&) {
            return std::make_unique<ShortDevice>(input, budget, builds);
        };
    };
    with(100'000, true);
    falls_back("smallest piece");
    with(UINT64_MAX, false);
    falls_back("none left");
    cuda.make = [](const image::Grid&, const config::LineGeometry&) -> std::unique_ptr<image::Projector> {
        throw gpu::DeviceMemoryError("memory of the GPU: allocating");
    };
    falls_back("allocating");
    with(UINT64_MAX, true);
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

#ifdef PETACQ_HAVE_CUSPARSE
TEST_CASE("image: a GPU makes the image of the CPU", "[petlm][image][cuda]") {
    if (const auto reason = image::cuda_projector_unusable_reason()) {
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
    EmInput input(some_records(), 1);
    const auto x = random_values(input.grid.voxels(), 1);
    const auto y = random_values(input.lines.pairs.size(), 2);
    const auto host = image::make_host_projector(input.grid, input.geometry, input.pool, UINT64_MAX);
    const auto device = image::make_cuda_projector(input.grid, input.geometry);
    const Projected expected = projected(*host, input, x, y);
    const Projected found = projected(*device, input, x, y);
    close(found.lines, expected.lines, 1e-5);
    close(found.image, expected.image, 1e-5);
    CHECK(product(found.lines, y) == Approx(product(x, found.image)).epsilon(1e-6));

    EmInput subsets(some_records(), 4);
    const auto on_cpu = subsets.run(3);
    const auto on_gpu = subsets.run(3, *image::make_cuda_projector(subsets.grid, subsets.geometry));
    CHECK(on_gpu.matrix_kept);
    close(on_gpu.image, on_cpu.image, 1e-3);
    CHECK(on_gpu.log_likelihood.back() == Approx(on_cpu.log_likelihood.back()).epsilon(1e-5));
    // The same every time, and in pieces that are rebuilt for every use.
    const auto again = subsets.run(3, *image::make_cuda_projector(subsets.grid, subsets.geometry));
    CHECK(again.image == on_gpu.image);
    const auto small = image::make_cuda_projector(
        subsets.grid, subsets.geometry, device->matrix_bytes(image::matrix_step, 64 * image::matrix_step));
    const auto cut = subsets.run(3, *small);
    CHECK_FALSE(cut.matrix_kept);
    close(cut.image, on_cpu.image, 1e-3);
}
#endif
