#include <algorithm>
#include <cmath>

#include "net/base/huge_pages.hpp"
#include "tools/petlm/reconstruction/projector/for_each_on.hpp"
#include "tools/petlm/reconstruction/projector/projector.hpp"
#include "tools/petlm/reconstruction/projector/trace.hpp"

namespace petacq::image {
namespace {

constexpr std::size_t rows_at_a_time = 1024;

/// A voxel of the image, and what is added up for it: side by side, so that one access to memory has both. In
/// a volume z runs fastest: the lines of two columns of crystals cross the same columns of voxels.
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

class HostProjector final : public Projector {
  public:
    HostProjector(const Grid& grid, const config::LineGeometry& geometry, net::WorkerPool& pool)
        : box_(Box::of(grid)), voxels_(grid.voxels()), geometry_(geometry), pool_(pool), image_(voxels_) {
        box_.z_first = true;
    }

    void use(const Rows& rows) override {
        rows_ = rows;
        tof_ = TofTable(rows.tof);
    }

    Compared compare(std::span<const float> image, std::size_t begin, std::size_t end,
                     std::span<float> back) override {
        const std::size_t volumes = volumes_for(end - begin, voxels_);
        if (memory_.size() < volumes * voxels_) memory_.resize(volumes * voxels_);
        each_slice([&](std::size_t i, std::size_t in_volume) { image_[in_volume] = image[i]; });
        std::vector<Compared> parts(volumes);
        for_each_on(pool_, volumes, [&](std::size_t v) {
            Voxel* const volume = memory_.data() + v * voxels_;
            for (std::size_t i = 0; i < voxels_; ++i)
                volume[i] = {image_[i], 0};
            Trace trace(box_);
            for (std::size_t at = begin + v * rows_at_a_time; at < end; at += volumes * rows_at_a_time) {
                for (std::size_t row = at; row < std::min(end, at + rows_at_a_time); ++row)
                    compare_row(row, trace, volume, parts[v], !back.empty());
            }
        });
        if (!back.empty()) {
            each_slice([&](std::size_t i, std::size_t in_volume) {
                float sum = 0;
                for (std::size_t v = 0; v < volumes; ++v)
                    sum += memory_[v * voxels_ + in_volume].sum;
                back[i] = image[i] > 0 ? sum : 0;
            });
        }
        Compared out;
        for (const Compared& part : parts) {
            out.log_likelihood += part.log_likelihood;
            out.outside += part.outside;
        }
        return out;
    }

  private:
    /// Calls use(index in an image, index in a volume) for all voxels, each once.
    template <class Use>
    void each_slice(const Use& use) const {
        const auto x_count = static_cast<std::size_t>(box_.n[0]);
        const auto y_count = static_cast<std::size_t>(box_.n[1]);
        const auto z_count = static_cast<std::size_t>(box_.n[2]);
        for_each_on(pool_, y_count, [&](std::size_t y) {
            for (std::size_t x = 0; x < x_count; ++x) {
                for (std::size_t z = 0; z < z_count; ++z)
                    use((z * y_count + y) * x_count + x, (y * x_count + x) * z_count + z);
            }
        });
    }

    void compare_row(std::size_t row, Trace& trace, Voxel* volume, Compared& out, bool back) const {
        const TofWeights tof = tof_.weights(tof_.nodes.data());
        trace.follow(box_, lines_of(geometry_, rows_.pairs[row], box_.voxel), tof,
                     rows_.bins.empty() ? std::int16_t{0} : rows_.bins[row]);
        const auto voxels = trace.voxels();
        const auto weights = trace.weights();
        float sums[4] = {};  // NOLINT(modernize-avoid-c-arrays): four sums, so that none waits for another
        std::size_t i = 0;
        for (; i + 4 <= voxels.size(); i += 4) {
            for (std::size_t k = 0; k < 4; ++k)
                sums[k] += weights[i + k] * volume[voxels[i + k]].value;
        }
        for (; i < voxels.size(); ++i)
            sums[0] += weights[i] * volume[voxels[i]].value;
        const float along = (sums[0] + sums[1]) + (sums[2] + sums[3]);
        const float prompts = rows_.prompts[row];
        const float expected = along + rows_.additive[row];
        if (!(along > 0)) out.outside += static_cast<double>(prompts);
        if (!(expected > 0)) return;
        out.log_likelihood += static_cast<double>(prompts) * std::log(static_cast<double>(expected));
        if (!back) return;
        const float factor = prompts / expected;
        trace.each([&](std::size_t voxel, float weight) { volume[voxel].sum += weight * factor; });
    }

    Box box_;
    std::size_t voxels_;
    const config::LineGeometry& geometry_;
    net::WorkerPool& pool_;
    Rows rows_;
    TofTable tof_{{}};
    net::HugeVector<float> image_;   // as in a volume
    net::HugeVector<Voxel> memory_;  // [volume][voxel]
};

}  // namespace

std::uint64_t host_projector_bytes(const Grid& grid) {
    return grid.voxels() * sizeof(float) + most_volumes(grid.voxels()) * grid.voxels() * sizeof(Voxel);
}

std::unique_ptr<Projector> make_host_projector(const Grid& grid, const config::LineGeometry& geometry,
                                               net::WorkerPool& pool) {
    return std::make_unique<HostProjector>(grid, geometry, pool);
}

}  // namespace petacq::image
