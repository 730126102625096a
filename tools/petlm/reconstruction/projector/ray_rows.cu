#include "gpu/cuda/base/check.hpp"
#include "tools/petlm/reconstruction/projector/ray_rows.hpp"

namespace petacq::image {
namespace {

constexpr unsigned block_size = 128;

__device__ config::LineEnds line_of(const config::CrystalPlace& a, const config::CrystalPlace& b,
                                    const config::DepthOfInteraction& depth) {
    return config::line_ends(a, b, depth, std::sqrt(config::square_of_distance(a, b)));
}

__global__ void trace(Box box, const config::CrystalPlace* places, config::DepthOfInteraction depth,
                      const Pair* pairs, const std::int32_t* row_start, std::uint32_t lines,
                      std::int32_t* voxel, float* length) {
    const std::uint32_t line = blockIdx.x * block_size + threadIdx.x;
    if (line >= lines) return;
    const Pair pair = pairs[line];
    const Ray ray(box, line_of(places[pair.a], places[pair.b], depth));
    std::int32_t at = row_start[line];
    ray.walk([&](std::uint32_t cell, float mm) {
        voxel[at] = static_cast<std::int32_t>(cell);
        length[at++] = mm;
    });
}

}  // namespace

void trace_rows(const Box& box, const config::CrystalPlace* places, const config::DepthOfInteraction& depth,
                const Pair* pairs, const std::int32_t* row_start, std::uint32_t lines, std::int32_t* voxel,
                float* length, cudaStream_t stream) {
    if (lines == 0) return;
    trace<<<(lines + block_size - 1) / block_size, block_size, 0, stream>>>(box, places, depth, pairs,
                                                                            row_start, lines, voxel, length);
    gpu::cuda::check(cudaGetLastError(), "kernel launch", "tracing the lines of the image");
}

}  // namespace petacq::image
