#include "tools/petlm/reconstruction/projector/projector_cuda.hpp"

#include <cmath>
#include <numeric>
#include <stdexcept>

#include "gpu/cuda/base/memory.hpp"
#include "gpu/device_memory_error.hpp"
#include "tools/petlm/reconstruction/projector/compare_rows.hpp"

namespace petacq::image {
namespace {

using gpu::cuda::check;
using gpu::cuda::Memory;

constexpr const char* doing = "making an image";

/// Units of a prompt in the sums: a power of two, so small that all prompts together fit into 63 bits.
double units_of_prompt(double prompts) {
    constexpr int most_bits = 44;  // a prompt has 24 bits
    return std::ldexp(1, std::min(most_bits, 61 - std::ilogb(std::max(prompts, 1.0))));
}

class CudaProjector final : public Projector {
  public:
    CudaProjector(const Grid& grid, const config::LineGeometry& geometry)
        : voxels_(grid.voxels()), memory_(Memory::Purpose::use) {
        rows_.box = Box::of(grid);
        rows_.places = memory_.copy_of(std::span(geometry.places));
        rows_.depths = {geometry.kinds.front()};
        if (!geometry.kind_of_crystal.empty()) {
            rows_.depths.kinds = memory_.copy_of(std::span(geometry.kinds));
            rows_.depths.kind_of_crystal = memory_.copy_of(std::span(geometry.kind_of_crystal));
        }
        rows_.image = image_ = memory_.device<float>(voxels_);
        rows_.sums = memory_.device<std::uint64_t>(voxels_);
        back_ = memory_.device<float>(voxels_);
    }

    void use(const Rows& rows) override {
        of_rows_.reset();
        of_rows_ = std::make_unique<Memory>(Memory::Purpose::use);
        const TofTable tof(rows.tof);
        rows_.tof = tof.weights(of_rows_->copy_of(std::span(tof.nodes)));
        rows_.pairs = of_rows_->copy_of(rows.pairs);
        rows_.bins = rows.bins.empty() ? nullptr : of_rows_->copy_of(rows.bins);
        rows_.prompts = of_rows_->copy_of(rows.prompts);
        rows_.additive = of_rows_->copy_of(rows.additive);
        compared_ = of_rows_->device<Compared>(compared_blocks(rows.pairs.size()));
        rows_.scale = units_of_prompt(std::accumulate(rows.prompts.begin(), rows.prompts.end(), 0.0));
    }

    Compared compare(std::span<const float> image, std::size_t begin, std::size_t end,
                     std::span<float> back) override {
        copy(image_, image.data(), image.size_bytes(), cudaMemcpyHostToDevice);
        check(cudaMemsetAsync(rows_.sums, 0, voxels_ * sizeof(std::uint64_t), stream_), "cudaMemsetAsync",
              doing);
        compare_rows(rows_, begin, end, !back.empty(), compared_, stream_);
        if (!back.empty()) {
            back_of_sums(rows_, voxels_, back_, stream_);
            copy(back.data(), back_, back.size_bytes(), cudaMemcpyDeviceToHost);
        }
        of_blocks_.resize(compared_blocks(end - begin));
        copy(of_blocks_.data(), compared_, of_blocks_.size() * sizeof(Compared), cudaMemcpyDeviceToHost);
        Compared out;
        for (const Compared& part : of_blocks_) {
            out.log_likelihood += part.log_likelihood;
            out.outside += part.outside;
        }
        return out;
    }

  private:
    void copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) const {
        check(cudaMemcpyAsync(to, from, bytes, kind, stream_), "cudaMemcpyAsync", doing);
        check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize", doing);
    }

    std::size_t voxels_;
    Memory memory_;
    gpu::cuda::Stream stream_;
    DeviceRows rows_{};
    float* image_;
    float* back_;
    std::unique_ptr<Memory> of_rows_;
    Compared* compared_ = nullptr;
    std::vector<Compared> of_blocks_;
};

}  // namespace

std::unique_ptr<Projector> make_cuda_projector(const Grid& grid, const config::LineGeometry& geometry) {
    return std::make_unique<CudaProjector>(grid, geometry);
}

}  // namespace petacq::image
