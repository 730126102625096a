#include <algorithm>

#include "net/base/huge_pages.hpp"
#include "tools/petlm/reconstruction/projector/for_each_on.hpp"
#include "tools/petlm/reconstruction/projector/projector.hpp"
#include "tools/petlm/reconstruction/projector/ray.hpp"

namespace petacq::image {
namespace {

/// Number of volumes for back-projections: piece i of the lines goes to volume i modulo this.
constexpr std::size_t volumes = 16;
constexpr std::size_t lines_at_a_time = 1024;
static_assert(matrix_step % (volumes * lines_at_a_time) == 0, "the next matrix starts with volume 0");
constexpr std::size_t voxels_at_a_time = 1U << 15U;

/// Left uninitialised: the thread that fills a part of it is the first to touch it.
template <class T>
class HugeArray {
  public:
    explicit HugeArray(std::size_t size) : size_(size), data_(Allocator().allocate(size)) {}
    ~HugeArray() { Allocator().deallocate(data_, size_); }
    HugeArray(const HugeArray&) = delete;
    HugeArray& operator=(const HugeArray&) = delete;
    T& operator[](std::size_t i) { return data_[i]; }
    const T& operator[](std::size_t i) const { return data_[i]; }

  private:
    using Allocator = net::HugePageAllocator<T>;
    std::size_t size_;
    T* data_;
};

/// Voxels and lengths of a matrix.
struct ForwardScratch {
    std::size_t capacity;
    HugeArray<std::uint32_t> voxel;
    HugeArray<float> length;

    explicit ForwardScratch(std::size_t nonzeros) : capacity(nonzeros), voxel(nonzeros), length(nonzeros) {}
};

class HostProjector final : public Projector {
  public:
    HostProjector(const Grid& grid, const config::LineGeometry& geometry, net::WorkerPool& pool,
                  std::uint64_t matrix_budget)
        : voxels_(grid.voxels()),
          box_(Box::of(grid)),
          geometry_(geometry),
          pool_(pool),
          budget_(matrix_budget),
          image_(voxels_),
          sums_(volumes * voxels_) {}

    void set_image(std::span<const float> image) override {
        std::copy(image.begin(), image.end(), image_.begin());
    }
    void clear_sums() override {
        for_each_piece(pool_, sums_.size(), voxels_at_a_time, [&](std::size_t begin, std::size_t end) {
            std::fill(sums_.begin() + static_cast<std::ptrdiff_t>(begin),
                      sums_.begin() + static_cast<std::ptrdiff_t>(end), 0.0F);
        });
    }
    void read_sums(std::span<float> sums) override {
        for_each_piece(pool_, voxels_, voxels_at_a_time, [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; ++i)
                sums[i] = sums_[i];
            for (std::size_t v = 1; v < volumes; ++v) {
                for (std::size_t i = begin; i < end; ++i)
                    sums[i] += sums_[v * voxels_ + i];
            }
        });
    }
    std::unique_ptr<SystemMatrix> build(std::span<const Pair> pairs,
                                        std::span<const std::uint32_t> row_start) override;

    [[nodiscard]] std::uint64_t matrix_budget() const override { return budget_; }
    [[nodiscard]] std::uint64_t matrix_bytes(std::uint64_t lines, std::uint64_t nonzeros) const override {
        return (lines + 1) * sizeof(std::uint32_t) + nonzeros * (sizeof(std::uint32_t) + sizeof(float));
    }

  private:
    friend class HostMatrix;
    /// Reuses the storage of the last matrix if it is large enough: getting fresh memory takes longer than
    /// tracing the rows.
    std::unique_ptr<ForwardScratch> storage(std::size_t nonzeros) {
        if (spare_ && spare_->capacity >= nonzeros) return std::move(spare_);
        spare_.reset();
        return std::make_unique<ForwardScratch>(nonzeros);
    }

    std::size_t voxels_;
    Box box_;
    const config::LineGeometry& geometry_;
    net::WorkerPool& pool_;
    std::uint64_t budget_;
    net::HugeVector<float> image_;
    std::unique_ptr<ForwardScratch> spare_;
    net::HugeVector<float> sums_;  // [volume][voxel]
};

class HostMatrix final : public SystemMatrix {
  public:
    HostMatrix(HostProjector& of, std::span<const Pair> pairs, std::span<const std::uint32_t> row_start)
        : of_(of), row_start_(row_start.begin(), row_start.end()), storage_(of.storage(row_start.back())) {
        for_each_piece(of.pool_, pairs.size(), lines_at_a_time, [&](std::size_t begin, std::size_t end) {
            for (std::size_t line = begin; line < end; ++line) {
                const Ray ray(of.box_, of.geometry_.ends(pairs[line].a, pairs[line].b));
                std::size_t at = row_start_[line];
                ray.walk([&](std::uint32_t voxel, float length) {
                    storage_->voxel[at] = voxel;
                    storage_->length[at++] = length;
                });
            }
        });
    }

    ~HostMatrix() override { of_.spare_ = std::move(storage_); }

    void forward(std::span<float> lines) override {
        const ForwardScratch& at = *storage_;
        const float* image = of_.image_.data();
        for_each_piece(of_.pool_, lines.size(), lines_at_a_time, [&](std::size_t begin, std::size_t end) {
            for (std::size_t line = begin; line < end; ++line) {
                float sum = 0;
                for (std::size_t i = row_start_[line]; i < row_start_[line + 1]; ++i)
                    sum += at.length[i] * image[at.voxel[i]];
                lines[line] = sum;
            }
        });
    }

    void back(std::span<const float> lines) override {
        const ForwardScratch& at = *storage_;
        const std::size_t pieces = (lines.size() + lines_at_a_time - 1) / lines_at_a_time;
        for_each_on(of_.pool_, std::min(volumes, pieces), [&](std::size_t volume) {
            float* sums = of_.sums_.data() + volume * of_.voxels_;
            for (std::size_t piece = volume; piece < pieces; piece += volumes) {
                const std::size_t end = std::min(lines.size(), (piece + 1) * lines_at_a_time);
                for (std::size_t line = piece * lines_at_a_time; line < end; ++line) {
                    const float value = lines[line];
                    if (value == 0) continue;
                    for (std::size_t i = row_start_[line]; i < row_start_[line + 1]; ++i)
                        sums[at.voxel[i]] += at.length[i] * value;
                }
            }
        });
    }

  private:
    HostProjector& of_;
    std::vector<std::uint32_t> row_start_;
    std::unique_ptr<ForwardScratch> storage_;
};

std::unique_ptr<SystemMatrix> HostProjector::build(std::span<const Pair> pairs,
                                                   std::span<const std::uint32_t> row_start) {
    return std::make_unique<HostMatrix>(*this, pairs, row_start);
}

}  // namespace

std::uint64_t host_projector_bytes(const Grid& grid) {
    return (volumes + 1) * grid.voxels() * sizeof(float);
}

std::unique_ptr<Projector> make_host_projector(const Grid& grid, const config::LineGeometry& geometry,
                                               net::WorkerPool& pool, std::uint64_t matrix_budget) {
    return std::make_unique<HostProjector>(grid, geometry, pool, matrix_budget);
}

}  // namespace petacq::image
