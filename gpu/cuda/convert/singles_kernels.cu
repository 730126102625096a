#include "gpu/cuda/convert/singles_kernels.hpp"

#include "gpu/cuda/base/check.hpp"
#include "gpu/cuda/convert/placement.cuh"

namespace petacq::gpu::cuda {

namespace {

constexpr std::uint32_t threads = min_cells;

/// The row that contains cell `position` of tile `tile`, if any.
__device__ const SpanRow& row_of(const ConvertArguments& a, std::uint32_t tile, std::uint32_t position) {
    std::uint32_t low = a.tile_first[tile];
    std::uint32_t high = a.tile_first[tile + 1] + 1;
    while (high - low > 1) {
        const std::uint32_t middle = (low + high) / 2;
        if (a.rows[middle].first <= position) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return a.rows[low];
}

template <bool with_gammas>
__global__ void singles_kernel(const __grid_constant__ ConvertArguments a, std::uint32_t crystals) {
    __shared__ PlacementStorage<threads, 1, with_gammas> storage;
    __shared__ std::uint32_t taken;
    if (threadIdx.x == 0) taken = atomicAdd(&a.totals->tickets[1], 1U);
    __syncthreads();
    const PlacedTile tile = cell_tile_at(a, taken, gridDim.x);
    const std::uint32_t position = tile.number * threads + threadIdx.x;
    Placed placed[1] = {{0, 0, nowhere}};
    auto fate = static_cast<std::uint32_t>(fate_count);  // no single in this cell
    if (position < a.cell_count) {
        const SpanRow& row = row_of(a, position / cell_tile, position);
        if (row.has(position)) {
            const ulonglong2 v = __ldcs(reinterpret_cast<const ulonglong2*>(a.cells) + position);
            const std::uint64_t time = v.x;
            const auto crystal = static_cast<std::uint32_t>(v.y);
            // Adds 0 for the reason given in OwnedTables.
            const float energy = __uint_as_float(static_cast<std::uint32_t>(v.y >> 32)) + 0.0F;
            Fate f = Fate::accepted;
            const bool gamma = with_gammas && is_gamma(a.tables, energy);
            if (crystal >= crystals) {
                f = Fate::bad_address;
            } else if (TimeGuard::of(row.time_low, row.time_high).refuses(time)) {
                f = Fate::time_jump;
            } else if (time < a.base) {
                f = Fate::late;
            } else if (gamma) {
                placed[0] = {time, value_of(crystal, energy), destination_of<with_gammas>(a, time, energy)};
            } else if (!(energy >= a.tables.lower)) {  // also rejects NaN
                f = Fate::below_window;
            } else if (energy > a.tables.upper) {
                f = Fate::above_window;
            } else {
                atomicAdd(&a.histograms.per_crystal[crystal], 1U);
                placed[0] = {time, value_of(crystal, energy), destination_of<with_gammas>(a, time, energy)};
            }
            fate = static_cast<std::uint32_t>(f);
        }
    }
    const std::uint32_t lane = threadIdx.x % 32;
    for (std::uint32_t f = 0; f < fate_count; ++f) {
        const std::uint32_t count = __popc(__ballot_sync(all_lanes, fate == f));
        if (lane == 0 && count > 0) {
            atomicAdd(reinterpret_cast<unsigned long long*>(&a.totals->fates[f]),
                      static_cast<unsigned long long>(count));
        }
    }
    std::uint64_t key = 0;
    std::uint64_t pending_time = 0;
    track_maxima(a, placed[0], key, pending_time);
    write_placed(a, tile, placed, storage);
    add_maxima(a.totals, key, pending_time);
}

}  // namespace

void launch_take_singles(const ConvertArguments& arguments, std::uint32_t crystals, cudaStream_t stream) {
    if (arguments.cell_count == 0) return;
    const auto kernel = arguments.tables.gammas ? singles_kernel<true> : singles_kernel<false>;
    kernel<<<(arguments.cell_count + threads - 1) / threads, threads, 0, stream>>>(arguments, crystals);
    check(cudaGetLastError(), "kernel launch", "taking singles");
}

}  // namespace petacq::gpu::cuda
