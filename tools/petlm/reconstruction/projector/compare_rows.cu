#include "gpu/cuda/base/check.hpp"
#include "tools/petlm/reconstruction/projector/compare_rows.hpp"

namespace petacq::image {
namespace {

constexpr unsigned block_size = 128;

unsigned blocks_of(std::size_t count) {
    return static_cast<unsigned>((count + block_size - 1) / block_size);
}

__device__ Compared compare_row(const DeviceRows& rows, std::size_t row, bool back) {
    const LinesOfPair lines = lines_of(rows.places, rows.depths, rows.pairs[row], rows.box.voxel);
    const std::int16_t bin = rows.bins == nullptr ? std::int16_t{0} : rows.bins[row];
    float along = 0;
    walk_row(rows.box, lines, rows.tof, bin,
             [&](std::uint32_t voxel, float weight) { along += weight * __ldg(rows.image + voxel); });
    const float prompts = rows.prompts[row];
    const float expected = along + rows.additive[row];
    Compared out;
    out.outside = along > 0 ? 0.0 : static_cast<double>(prompts);
    if (!(expected > 0)) return out;
    out.log_likelihood = static_cast<double>(prompts) * log(static_cast<double>(expected));
    if (!back) return out;
    const float factor = prompts / expected;
    walk_row(rows.box, lines, rows.tof, bin, [&](std::uint32_t voxel, float weight) {
        // The prompts of the row that come from the voxel: never more than there are.
        const float share = weight * factor * __ldg(rows.image + voxel);
        const auto units = static_cast<unsigned long long>(static_cast<double>(share) * rows.scale + 0.5);
        if (units != 0) atomicAdd(reinterpret_cast<unsigned long long*>(rows.sums + voxel), units);
    });
    return out;
}

__global__ void compare(DeviceRows rows, std::size_t begin, std::size_t end, bool back, Compared* out) {
    __shared__ double log_likelihood[block_size];
    __shared__ double outside[block_size];
    const unsigned thread = threadIdx.x;
    const std::size_t row = begin + std::size_t{blockIdx.x} * block_size + thread;
    const Compared of_row = row < end ? compare_row(rows, row, back) : Compared{};
    log_likelihood[thread] = of_row.log_likelihood;
    outside[thread] = of_row.outside;
    for (unsigned half = block_size / 2; half > 0; half /= 2) {
        __syncthreads();
        if (thread >= half) continue;
        log_likelihood[thread] += log_likelihood[thread + half];
        outside[thread] += outside[thread + half];
    }
    if (thread == 0) out[blockIdx.x] = {log_likelihood[0], outside[0]};
}

__global__ void divide(DeviceRows rows, std::size_t voxels, float* back) {
    const std::size_t i = std::size_t{blockIdx.x} * block_size + threadIdx.x;
    if (i >= voxels) return;
    const float value = rows.image[i];
    back[i] =
        value > 0
            ? static_cast<float>(static_cast<double>(rows.sums[i]) / rows.scale / static_cast<double>(value))
            : 0.0F;
}

}  // namespace

std::size_t compared_blocks(std::size_t rows) {
    return blocks_of(rows);
}

void compare_rows(const DeviceRows& rows, std::size_t begin, std::size_t end, bool back, Compared* out,
                  cudaStream_t stream) {
    if (begin == end) return;
    compare<<<blocks_of(end - begin), block_size, 0, stream>>>(rows, begin, end, back, out);
    gpu::cuda::check(cudaGetLastError(), "kernel launch", "following the lines of the image");
}

void back_of_sums(const DeviceRows& rows, std::size_t voxels, float* back, cudaStream_t stream) {
    divide<<<blocks_of(voxels), block_size, 0, stream>>>(rows, voxels, back);
    gpu::cuda::check(cudaGetLastError(), "kernel launch", "adding up the lines of the image");
}

}  // namespace petacq::image
