#include "gpu/cuda/convert/convert_kernels.hpp"

#include <algorithm>

#include "config/spectra.hpp"
#include "gpu/cuda/base/check.hpp"
#include "gpu/cuda/convert/placement.cuh"

namespace petacq::gpu::cuda {

namespace {

constexpr std::uint32_t threads = 512;
constexpr std::uint32_t per_thread = cell_tile / threads;
constexpr std::uint32_t split_items = threads * per_thread;
constexpr auto no_frame = static_cast<std::uint32_t>(fate_count);
constexpr std::uint32_t tally_bits = 7;
constexpr std::uint32_t tiles_between_tallies = ((1U << tally_bits) - 1) / per_thread;
static_assert(fate_count * tally_bits < 64);  // the bit above counts cells without a frame, and may overflow
// A frame adds at most 2^11 sixteenths of a degree to a 31-bit sum.
constexpr std::uint32_t tiles_between_flushes = (1U << 19) / cell_tile;

template <bool with_gammas>
__global__ void split_kernel(const __grid_constant__ ConvertArguments a, SingleArrays waiting,
                             std::uint32_t count) {
    __shared__ PlacementStorage<threads, per_thread, with_gammas> storage;
    __shared__ std::uint32_t taken;
    if (threadIdx.x == 0) taken = atomicAdd(&a.totals->tickets[0], 1U);
    __syncthreads();
    const PlacedTile tile = split_tile(a, taken, gridDim.x);
    Placed placed[per_thread];
    std::uint64_t key = 0;
    std::uint64_t pending_time = 0;
#pragma unroll
    for (std::uint32_t k = 0; k < per_thread; ++k) {
        placed[k] = {0, 0, nowhere};
        const std::uint64_t i = std::uint64_t{tile.number} * split_items + k * threads + threadIdx.x;
        if (i >= count) continue;
        const std::uint64_t time = waiting.time[i];
        const std::uint64_t value = waiting.value[i];
        placed[k] = {time, value, destination_of<with_gammas>(a, time, energy_of(value))};
        track_maxima(a, placed[k], key, pending_time);
    }
    write_placed(a, tile, placed, storage);
    add_maxima(a.totals, key, pending_time);
}

/// The histograms that a block keeps in shared memory, as many as fit there; it adds to the others directly
/// in those of the slice.
enum class InShared : std::uint8_t { nothing, temperatures, all };

struct BlockHistograms {
    std::uint32_t* temperature_count;
    std::uint32_t* temperature_sum;  // two's complement
    std::uint32_t* energy;           // in shared memory, or the slice's own
};

/// Adds the block's counts to those of the slice and clears them. The caller puts barriers around it.
__device__ void flush(std::uint32_t* from, std::uint32_t* to, std::uint32_t size) {
    for (std::uint32_t i = threadIdx.x; i < size; i += threads) {
        if (from[i] != 0) atomicAdd(&to[i], from[i]);
        from[i] = 0;
    }
}
__device__ void flush_temperatures(const BlockHistograms& h, const SliceHistograms& to, std::uint32_t units) {
    flush(h.temperature_count, to.temperature_count, units);
    for (std::uint32_t i = threadIdx.x; i < units; i += threads) {
        const auto sum = static_cast<std::int64_t>(static_cast<std::int32_t>(h.temperature_sum[i]));
        if (sum != 0) {
            atomicAdd(reinterpret_cast<unsigned long long*>(&to.temperature_sum[i]),
                      static_cast<unsigned long long>(sum));
        }
        h.temperature_sum[i] = 0;
    }
}

/// The fates of the frames of one thread: `tally_bits` of a word for each fate.
struct FateTally {
    std::uint64_t word = 0;

    __device__ void add(std::uint32_t fate) { word += std::uint64_t{1} << (fate * tally_bits); }
    /// Adds the counts of the warp: lane f those of fate f. Starts again.
    __device__ void flush(std::uint32_t& total) {
#pragma unroll
        for (std::uint32_t f = 0; f < fate_count; ++f) {
            const auto own = static_cast<std::uint32_t>(word >> (f * tally_bits)) & ((1U << tally_bits) - 1);
            const std::uint32_t count = __reduce_add_sync(all_lanes, own);
            total += threadIdx.x % 32 == f ? count : 0;
        }
        word = 0;
    }
};

__device__ CrystalEntry load_entry(const CrystalEntry* p) {
    const int4 v = __ldg(reinterpret_cast<const int4*>(p));
    return {static_cast<std::uint32_t>(v.x), v.y, __int_as_float(v.z)};
}

/// The cells of a tile that this thread converts; zeros beyond the last cell.
__device__ void load_cells(const ConvertArguments& a, std::uint32_t tile,
                           net::FrameWords (&words)[per_thread]) {
#pragma unroll
    for (std::uint32_t k = 0; k < per_thread; ++k) {
        const std::uint32_t position = tile * cell_tile + k * threads + threadIdx.x;
        words[k] = {0, 0};
        if (position >= a.cell_count) continue;
        const ulonglong2 v = __ldcs(reinterpret_cast<const ulonglong2*>(a.cells) + position);
        words[k] = {v.x, v.y};
    }
}

/// What becomes of a frame with a cell of no_cell. Tags go to the list for the host; they count there.
template <net::FrameVersion version>
__device__ std::uint32_t fate_without_place(const ConvertArguments& a, net::FrameWords frame,
                                            std::uint32_t cell) {
    if (markers_match<version>(frame, a.tables)) return static_cast<std::uint32_t>(Fate::bad_address);
    if (!is_tag<version>(frame, a.tables)) return static_cast<std::uint32_t>(Fate::bad_marker);
    a.tags[atomicAdd(&a.totals->tags, 1U)] = {frame, cell};
    return no_frame;
}

/// A frame with a place that is no time jump. The energy is that of a frame inside a crystal.
__device__ void count_in_spectra(const SpectraArrays& spectra, net::FrameWords frame, std::uint32_t cell,
                                 bool inside, std::uint32_t crystal, float energy) {
    const std::uint64_t time = net::time_of(frame);
    if (time < spectra.time_low || time > spectra.time_high) return;
    atomicAdd(&spectra.floods[cell], 1U);
    if (!inside) return;
    const std::uint64_t row = std::uint64_t{crystal} * config::energy_bins;
    atomicAdd(&spectra.energies[row + energy_bin(energy, spectra_bins_per_keV)], 1U);
}

/// A frame inside a crystal, in the temperatures of its unit.
template <InShared shared>
__device__ void add_temperature(const BlockHistograms& own, const SliceHistograms& slice, std::uint32_t unit,
                                std::int32_t temperature_16ths) {
    if constexpr (shared == InShared::nothing) {
        atomicAdd(reinterpret_cast<unsigned long long*>(&slice.temperature_sum[unit]),
                  static_cast<unsigned long long>(static_cast<std::int64_t>(temperature_16ths)));
        atomicAdd(&slice.temperature_count[unit], 1U);
    } else {
        atomicAdd(&own.temperature_sum[unit], static_cast<std::uint32_t>(temperature_16ths));
        atomicAdd(&own.temperature_count[unit], 1U);
    }
}

template <net::FrameVersion version, InShared in_shared, bool with_spectra, bool with_gammas>
__global__ void __launch_bounds__(threads, 2) convert_kernel(const __grid_constant__ ConvertArguments a) {
    extern __shared__ std::uint32_t shared[];
    __shared__ std::uint32_t row_first[cell_tile + 1];
    __shared__ PlacementStorage<threads, per_thread, with_gammas> storage;
    __shared__ std::uint32_t taken;
    const ConversionTables& t = a.tables;
    const std::uint32_t units = t.bdm_count * t.du_count;
    const std::uint32_t energies = t.bdm_count * config::energy_bins;
    constexpr bool energy_shared = in_shared == InShared::all;
    constexpr bool temperatures_shared = in_shared != InShared::nothing;
    const BlockHistograms own{shared, shared + units,
                              energy_shared ? shared + 2 * units : a.histograms.energy};
    if constexpr (temperatures_shared) {
        const std::uint32_t own_size = 2 * units + (energy_shared ? energies : 0);
        for (std::uint32_t i = threadIdx.x; i < own_size; i += threads)
            shared[i] = 0;
    }

    const std::uint32_t lane = threadIdx.x % 32;
    FateTally fates;
    std::uint32_t fate_total = 0;  // of the fate whose number is the lane
    std::uint64_t max_key = 0;
    std::uint64_t max_pending = 0;
    std::uint32_t done = 0;
    const std::uint32_t tiles = (a.cell_count + cell_tile - 1) / cell_tile;
    if (threadIdx.x == 0) taken = atomicAdd(&a.totals->tickets[1], 1U);
    __syncthreads();
    net::FrameWords loaded[per_thread];
    load_cells(a, taken, loaded);
    while (taken < tiles) {
        const std::uint32_t tile = taken;
        const std::uint32_t row_base = a.tile_first[tile];
        const std::uint32_t rows = a.tile_first[tile + 1] - row_base + 1;
        for (std::uint32_t i = threadIdx.x; i < rows; i += threads)
            row_first[i] = a.rows[row_base + i].first;
        __syncthreads();
        // For the next tile; the barrier below makes it visible to all threads.
        if (threadIdx.x == 0) taken = atomicAdd(&a.totals->tickets[1], 1U);

        // Process all frames of the thread step by step, so that their loads overlap.
        net::FrameWords words[per_thread];
        bool present[per_thread];
        bool jump[per_thread];
        std::uint32_t cell[per_thread];
#pragma unroll
        for (std::uint32_t k = 0; k < per_thread; ++k) {
            const std::uint32_t position = tile * cell_tile + k * threads + threadIdx.x;
            present[k] = position < a.cell_count;
            jump[k] = false;
            cell[k] = no_cell;
            words[k] = loaded[k];
            if (!present[k]) continue;
            std::uint32_t low = 0;
            std::uint32_t high = rows;
            while (high - low > 1) {
                const std::uint32_t middle = (low + high) / 2;
                if (row_first[middle] <= position) {
                    low = middle;
                } else {
                    high = middle;
                }
            }
            const SpanRow& row = a.rows[row_base + low];
            present[k] = row.has(position);
            jump[k] = TimeGuard::of(row.time_low, row.time_high).refuses(net::time_of(words[k]));
            if (!present[k] || !markers_match<version>(words[k], t)) continue;
            if (t.modules_of_source != nullptr && !module_of_source<version>(words[k], row.source(), t))
                continue;
            cell[k] = frame_cell<version>(words[k], t);
        }
        std::uint32_t slot[per_thread];
        bool inside[per_thread];
#pragma unroll
        for (std::uint32_t k = 0; k < per_thread; ++k) {
            const std::uint32_t local = cell[k] != no_cell ? local_of(cell[k], t) : t.crystals_per_du;
            const std::uint32_t unit = frame_unit<version>(words[k], t);
            inside[k] = local < t.crystals_per_du;
            slot[k] = unit * t.crystals_per_du + local;
        }
        CrystalEntry entry[per_thread];
        float energy[per_thread];
#pragma unroll
        for (std::uint32_t k = 0; k < per_thread; ++k) {
            entry[k] = {0, 0, 0};
            energy[k] = 0;
            if (!inside[k]) continue;
            entry[k] = load_entry(t.crystals + slot[k]);
            const std::uint32_t adc = net::adc_of(words[k]);
            energy[k] =
                t.bins == 1 ? static_cast<float>(adc) * entry[k].factor : frame_energy(adc, slot[k], t);
        }
        if constexpr (with_spectra) {
#pragma unroll
            for (std::uint32_t k = 0; k < per_thread; ++k) {
                if (cell[k] == no_cell || jump[k]) continue;
                count_in_spectra(a.spectra, words[k], cell[k], inside[k], entry[k].crystal, energy[k]);
            }
        }
        Placed placed[per_thread];
#pragma unroll
        for (std::uint32_t k = 0; k < per_thread; ++k) {
            auto fate = static_cast<std::uint32_t>(Fate::outside_crystal);
            placed[k] = {0, 0, nowhere};
            if (inside[k]) {
                const std::uint32_t unit = frame_unit<version>(words[k], t);
                const bool is_below = energy[k] < t.lower;
                const bool is_above = energy[k] > t.upper;
                const std::uint32_t bin = energy_bin(energy[k], singles_bins_per_keV<with_gammas>(t));
                atomicAdd(&own.energy[net::bdm_of<version>(words[k]) * config::energy_bins + bin], 1U);
                add_temperature<in_shared>(own, a.histograms, unit,
                                           net::temperature_16ths_of<version>(words[k]));
                if (!is_below && !is_above) atomicAdd(&a.histograms.per_crystal[entry[k].crystal], 1U);
                bool bad = false;
                const std::uint64_t time = corrected_time(net::time_of(words[k]), entry[k].time_offset, bad);
                Fate timed = is_below ? Fate::below_window : (is_above ? Fate::above_window : Fate::accepted);
                if constexpr (with_gammas) {
                    if (is_gamma(t, energy[k])) timed = Fate::accepted;
                }
                fate = static_cast<std::uint32_t>(
                    jump[k] ? Fate::time_jump
                            : (bad ? Fate::bad_time : (time < a.base ? Fate::late : timed)));
                if (fate == static_cast<std::uint32_t>(Fate::accepted)) {
                    placed[k] = {time, value_of(entry[k].crystal, energy[k]),
                                 destination_of<with_gammas>(a, time, energy[k])};
                    track_maxima(a, placed[k], max_key, max_pending);
                }
            } else if (!present[k]) {
                fate = no_frame;
            } else if (cell[k] == no_cell) {
                fate = fate_without_place<version>(a, words[k], tile * cell_tile + k * threads + threadIdx.x);
            }
            fates.add(fate);
        }
        // The cells of the next tile arrive while this one is placed.
        __syncthreads();
        load_cells(a, taken, loaded);
        write_placed(a, cell_tile_at(a, tile, tiles), placed, storage);
        ++done;
        if (done % tiles_between_tallies == 0 || done == tiles_between_flushes) fates.flush(fate_total);
        if (done == tiles_between_flushes) {
            done = 0;
            if (temperatures_shared) flush_temperatures(own, a.histograms, units);
            __syncthreads();
        }
    }
    fates.flush(fate_total);
    __syncthreads();
    if (temperatures_shared) flush_temperatures(own, a.histograms, units);
    if (energy_shared) flush(own.energy, a.histograms.energy, energies);
    if (lane < fate_count && fate_total > 0) {
        atomicAdd(reinterpret_cast<unsigned long long*>(&a.totals->fates[lane]),
                  static_cast<unsigned long long>(fate_total));
    }
    add_maxima(a.totals, max_key, max_pending);
}

__global__ void fold_kernel(SliceHistograms slice, HistogramSizes sizes, std::uint64_t* totals) {
    const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    const std::uint32_t energies = sizes.crystals;
    const std::uint32_t counts = energies + sizes.energies;
    const std::uint32_t sums = counts + sizes.units;
    if (i < energies) {
        totals[i] += slice.per_crystal[i];
    } else if (i < counts) {
        totals[i] += slice.energy[i - energies];
    } else if (i < sums) {
        totals[i] += slice.temperature_count[i - counts];
    } else if (i < sums + sizes.units) {
        totals[i] += slice.temperature_sum[i - sums];
    }
}

struct ConvertPlan {
    std::uint32_t blocks = 0;
    std::uint32_t shared_bytes = 0;
    InShared in_shared = InShared::nothing;
};

/// Launches as many blocks as can run at once, two on each processor, with as many histograms in shared
/// memory as two blocks have room for.
ConvertPlan plan_convert(const ConversionTables& tables) {
    int device = 0;
    int processors = 0;
    int shared_per_processor = 0;
    int shared_per_block = 0;
    check(cudaGetDevice(&device), "cudaGetDevice", "planning conversion");
    check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device),
          "cudaDeviceGetAttribute", "planning conversion");
    check(cudaDeviceGetAttribute(&shared_per_processor, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device),
          "cudaDeviceGetAttribute", "planning conversion");
    check(cudaDeviceGetAttribute(&shared_per_block, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
          "cudaDeviceGetAttribute", "planning conversion");
    const std::uint32_t units = tables.bdm_count * tables.du_count;
    const std::uint32_t small = 2 * units * 4;
    const std::uint32_t large = small + tables.bdm_count * config::energy_bins * 4;
    constexpr std::uint32_t fixed = (cell_tile + 160) * 4 + 1024;
    const auto fits = [&](std::uint32_t bytes) {
        return 2 * (bytes + fixed) <= static_cast<std::uint32_t>(shared_per_processor) &&
               bytes + fixed <= static_cast<std::uint32_t>(shared_per_block);
    };
    ConvertPlan plan;
    if (fits(large)) {
        plan.in_shared = InShared::all;
        plan.shared_bytes = large;
    } else if (fits(small)) {
        plan.in_shared = InShared::temperatures;
        plan.shared_bytes = small;
    }
    plan.blocks = 2 * static_cast<std::uint32_t>(processors);
    return plan;
}

template <net::FrameVersion version, InShared in_shared, bool with_spectra, bool with_gammas>
void launch_convert_as(const ConvertPlan& plan, const ConvertArguments& a, cudaStream_t stream) {
    const std::uint32_t tiles = (a.cell_count + cell_tile - 1) / cell_tile;
    const auto kernel = convert_kernel<version, in_shared, with_spectra, with_gammas>;
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(plan.shared_bytes)),
          "cudaFuncSetAttribute", "launching conversion");
    kernel<<<std::min(plan.blocks, tiles), threads, plan.shared_bytes, stream>>>(a);
    check(cudaGetLastError(), "kernel launch", "converting frames");
}

}  // namespace

std::size_t placement_words(std::uint32_t pending_room, std::uint32_t cell_room) {
    const std::size_t tiles = std::max(pending_room / split_items, cell_room / min_cells) + std::size_t{1};
    return tiles * destinations<true>;
}

void launch_split(const ConvertArguments& arguments, SingleArrays waiting, std::uint32_t count,
                  cudaStream_t stream) {
    if (count == 0) return;
    const auto kernel = arguments.tables.gammas ? split_kernel<true> : split_kernel<false>;
    kernel<<<(count + split_items - 1) / split_items, threads, 0, stream>>>(arguments, waiting, count);
    check(cudaGetLastError(), "kernel launch", "splitting pending singles");
}

void launch_convert(const ConvertArguments& arguments, cudaStream_t stream) {
    if (arguments.cell_count == 0) return;
    const ConvertPlan plan = plan_convert(arguments.tables);
    const bool spectra = arguments.spectra.floods != nullptr;
    const bool gammas = arguments.tables.gammas;
    const auto launch_for = [&]<net::FrameVersion version>() {
        const auto launch_as = [&]<InShared in_shared>() {
            const auto launch = spectra  ? gammas ? launch_convert_as<version, in_shared, true, true>
                                                  : launch_convert_as<version, in_shared, true, false>
                                 : gammas ? launch_convert_as<version, in_shared, false, true>
                                         : launch_convert_as<version, in_shared, false, false>;
            launch(plan, arguments, stream);
        };
        switch (plan.in_shared) {
            case InShared::all:
                return launch_as.template operator()<InShared::all>();
            case InShared::temperatures:
                return launch_as.template operator()<InShared::temperatures>();
            case InShared::nothing:
                return launch_as.template operator()<InShared::nothing>();
        }
    };
    if (arguments.tables.version == net::FrameVersion::one) {
        launch_for.operator()<net::FrameVersion::one>();
    } else {
        launch_for.operator()<net::FrameVersion::two>();
    }
}

void launch_fold(const SliceHistograms& slice, const HistogramSizes& sizes, std::uint64_t* totals,
                 cudaStream_t stream) {
    fold_kernel<<<(sizes.total() + 255) / 256, 256, 0, stream>>>(slice, sizes, totals);
    check(cudaGetLastError(), "kernel launch", "adding up histograms");
}

cudaError_t probe_kernels() {
    cudaFuncAttributes attributes{};
    return cudaFuncGetAttributes(&attributes,
                                 convert_kernel<net::FrameVersion::one, InShared::all, false, false>);
}

}  // namespace petacq::gpu::cuda
