#include <algorithm>
#include <cmath>

#include "net/base/huge_pages.hpp"
#include "tools/petlm/reconstruction/projector/for_each_on.hpp"
#include "tools/petlm/reconstruction/projector/projector.hpp"

namespace petacq::image {
namespace {

constexpr std::size_t rows_at_a_time = 1024;
constexpr std::size_t voxels_at_a_time = 1U << 15U;

/// A voxel of the image, and what is added up for it: side by side, so that one access to memory has both.
struct Voxel {
    float value;
    float sum;
};

/// Number of volumes in which rows are added up, each by one thread at a time. More of them keep more threads
/// busy, but take memory, and the time to fill them.
std::size_t most_volumes(std::size_t voxels) {
    constexpr std::size_t most = 16;
    constexpr std::size_t bytes = 1'500'000'000;
    return std::clamp<std::size_t>(bytes / (voxels * sizeof(Voxel)), 2, most);
}
std::size_t volumes_for(std::size_t rows, std::size_t voxels) {
    constexpr std::size_t voxels_of_row = 100;  // are filled and read in much less time than a row takes
    return std::clamp<std::size_t>(rows * voxels_of_row / voxels, 1, most_volumes(voxels));
}

/// The voxels of a row, with their weights.
class Trace {
  public:
    explicit Trace(const Box& box) {
        std::size_t most = 0;
        for (const std::int32_t n : box.n)
            most += static_cast<std::size_t>(n);
        voxel_.resize(LinesOfPair::most * (most + 1));
        weight_.resize(LinesOfPair::most * (most + 1));
    }
    void begin() { size_ = 0; }
    void add(std::uint32_t voxel, float weight) {
        voxel_[size_] = voxel;
        weight_[size_++] = weight;
    }
    /// The sum of weight times value.
    [[nodiscard]] float product(const Voxel* volume) const {
        float sums[4] = {};  // NOLINT(modernize-avoid-c-arrays): four sums, so that none waits for another
        std::size_t i = 0;
        for (; i + 4 <= size_; i += 4) {
            for (std::size_t k = 0; k < 4; ++k)
                sums[k] += weight_[i + k] * volume[voxel_[i + k]].value;
        }
        for (; i < size_; ++i)
            sums[0] += weight_[i] * volume[voxel_[i]].value;
        return (sums[0] + sums[1]) + (sums[2] + sums[3]);
    }
    void add_to(Voxel* volume, float factor) const {
        for (std::size_t i = 0; i < size_; ++i)
            volume[voxel_[i]].sum += weight_[i] * factor;
    }

  private:
    std::vector<std::uint32_t> voxel_;
    std::vector<float> weight_;
    std::size_t size_ = 0;
};

class HostProjector final : public Projector {
  public:
    HostProjector(const Grid& grid, const config::LineGeometry& geometry, net::WorkerPool& pool)
        : voxels_(grid.voxels()), box_(Box::of(grid)), geometry_(geometry), pool_(pool) {}

    void use(const Rows& rows) override {
        rows_ = rows;
        tof_ = TofTable(rows.tof);
    }

    Compared compare(std::span<const float> image, std::size_t begin, std::size_t end,
                     std::span<float> back) override {
        const std::size_t volumes = volumes_for(end - begin, voxels_);
        if (memory_.size() < volumes * voxels_) memory_.resize(volumes * voxels_);
        std::vector<Compared> parts(volumes);
        for_each_on(pool_, volumes, [&](std::size_t v) {
            Voxel* const volume = memory_.data() + v * voxels_;
            for (std::size_t i = 0; i < voxels_; ++i)
                volume[i] = {image[i], 0};
            Trace trace(box_);
            for (std::size_t at = begin + v * rows_at_a_time; at < end; at += volumes * rows_at_a_time) {
                for (std::size_t row = at; row < std::min(end, at + rows_at_a_time); ++row)
                    compare_row(row, trace, volume, parts[v], !back.empty());
            }
        });
        for_each_piece(pool_, back.size(), voxels_at_a_time, [&](std::size_t first, std::size_t last) {
            for (std::size_t i = first; i < last; ++i)
                back[i] = memory_[i].sum;
            for (std::size_t v = 1; v < volumes; ++v) {
                for (std::size_t i = first; i < last; ++i)
                    back[i] += memory_[v * voxels_ + i].sum;
            }
            for (std::size_t i = first; i < last; ++i)
                if (!(image[i] > 0)) back[i] = 0;
        });
        Compared out;
        for (const Compared& part : parts) {
            out.log_likelihood += part.log_likelihood;
            out.outside += part.outside;
        }
        return out;
    }

  private:
    void compare_row(std::size_t row, Trace& trace, Voxel* volume, Compared& out, bool back) const {
        trace.begin();
        walk_row(box_, lines_of(geometry_, rows_.pairs[row], box_.voxel), tof_.weights(tof_.nodes.data()),
                 rows_.bins.empty() ? std::int16_t{0} : rows_.bins[row],
                 [&](std::uint32_t voxel, float weight) {
                     __builtin_prefetch(volume + voxel, 1);
                     trace.add(voxel, weight);
                 });
        const float along = trace.product(volume);
        const float prompts = rows_.prompts[row];
        const float expected = along + rows_.additive[row];
        if (!(along > 0)) out.outside += static_cast<double>(prompts);
        if (!(expected > 0)) return;
        out.log_likelihood += static_cast<double>(prompts) * std::log(static_cast<double>(expected));
        if (back) trace.add_to(volume, prompts / expected);
    }

    std::size_t voxels_;
    Box box_;
    const config::LineGeometry& geometry_;
    net::WorkerPool& pool_;
    Rows rows_;
    TofTable tof_{{}};
    net::HugeVector<Voxel> memory_;  // [volume][voxel]
};

}  // namespace

std::uint64_t host_projector_bytes(const Grid& grid) {
    return most_volumes(grid.voxels()) * grid.voxels() * sizeof(Voxel);
}

std::unique_ptr<Projector> make_host_projector(const Grid& grid, const config::LineGeometry& geometry,
                                               net::WorkerPool& pool) {
    return std::make_unique<HostProjector>(grid, geometry, pool);
}

}  // namespace petacq::image
