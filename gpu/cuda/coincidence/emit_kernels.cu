#include "gpu/cuda/coincidence/emit_kernels.hpp"

#include <algorithm>

#include "gpu/cuda/base/check.hpp"
#include "gpu/cuda/coincidence/sums.cuh"
#include "gpu/cuda/coincidence/tally.cuh"
#include "gpu/rules/record_order.hpp"
#include "gpu/rules/shifted_group.hpp"

namespace petacq::gpu::cuda {

namespace {

/// Writes records [low, low + room) of a list in list order.
struct OutputPart {
    Coincidence* out;
    std::uint64_t low;
    std::uint32_t room;
};

/// The emitter of a thread, shared with the other threads of its block.
struct Shown {
    Emitter emitter;
    std::uint64_t at;  ///< number of its first record
};

template <class Rule>
__global__ void __launch_bounds__(search_threads)
    emit_kernel(const __grid_constant__ SearchArguments a, Kind kind, OutputPart part) {
    __shared__ WarpValues<std::uint32_t, search_threads> storage;
    __shared__ Shown shown[search_threads];
    const bool prompts = kind == Kind::prompt;
    if (first_opener(a, kind) + std::uint64_t{blockIdx.x} * single_tile >= a.totals->decided) return;
    const EmitterLists& lists = prompts ? a.prompts : a.delayeds;
    const std::uint32_t count = lists.emitter_counts[blockIdx.x];
    const bool opener_only = !prompts || a.rules.opener_only;
    const std::uint64_t delay = prompts ? 0 : a.rules.delay;
    const std::uint64_t end = part.low + part.room;
    const auto put = [&](std::uint64_t number, const Single& x, const Single& y) {
        const std::uint64_t place = number - part.low;
        if (place >= part.room) return;
        const Coincidence c = make_coincidence(x, y, kind, delay);
        part.out[place] = c;
        if (a.add_pairs) add_pair(a, c);
    };
    std::uint64_t base = lists.records[blockIdx.x];
    for (std::uint32_t from = 0; from < count && base < end; from += search_threads) {
        Emitter emitter{};
        const std::uint32_t i = from + threadIdx.x;
        if (i < count) emitter = lists.emitters[std::uint64_t{blockIdx.x} * single_tile + i];
        std::uint32_t records = 0;
        const std::uint64_t at = base + block_exclusive_sum<search_threads>(emitter.pairs, storage, records);
        base += records;
        if (emitter.pairs > 0 && emitter.size == 2)
            put(at, a.singles[emitter.first], a.singles[emitter.second]);
        // The only pair of a larger group is known; several are to be found here.
        if (takes_one_pair(a.rules.policy)) continue;
        const bool wanted = emitter.size > 2 && at + emitter.pairs > part.low && at < end;
        if (wanted && emitter.size <= thread_group) {
            const Members members{a.singles, emitter.first, emitter.second};
            std::uint64_t number = at;
            GroupPairs{emitter.size, opener_only, pair_rule<Rule>(a.rules), members}.for_each(
                [&](std::uint32_t x, std::uint32_t y, bool good) {
                    if (good) put(number++, members(x), members(y));
                });
        }
        shown[threadIdx.x] = {emitter, at};
        if (__syncthreads_or(wanted && emitter.size > thread_group ? 1 : 0) == 0) continue;
        for (std::uint32_t n = threadIdx.x / 32; n < search_threads; n += search_threads / 32) {
            const Shown s = shown[n];
            if (s.emitter.size <= thread_group || s.at + s.emitter.pairs <= part.low || s.at >= end) continue;
            const Members members{a.singles, s.emitter.first, s.emitter.second};
            warp_all_goods(GroupPairs{s.emitter.size, opener_only, pair_rule<Rule>(a.rules), members},
                           [&](std::uint32_t x, std::uint32_t y, std::uint32_t number) {
                               put(s.at + number, members(x), members(y));
                           });
        }
        __syncthreads();
    }
}

/// The delayeds of shifted groups.
template <class Rule>
__global__ void __launch_bounds__(search_threads)
    emit_shifted_kernel(const __grid_constant__ SearchArguments a, OutputPart part) {
    __shared__ WarpValues<std::uint32_t, search_threads> storage;
    if (a.totals->first_anchor + std::uint64_t{blockIdx.x} * single_tile >= a.totals->decided) return;
    const std::uint32_t count = a.delayeds.emitter_counts[blockIdx.x];
    const std::uint64_t end = part.low + part.room;
    const auto put = [&](std::uint64_t number, const Single& x, const Single& y) {
        const std::uint64_t place = number - part.low;
        if (place >= part.room) return;
        const Coincidence c = make_coincidence(x, y, Kind::delayed, 0);
        part.out[place] = c;
        if (a.add_pairs) add_pair(a, c);
    };
    std::uint64_t base = a.delayeds.records[blockIdx.x];
    for (std::uint32_t from = 0; from < count && base < end; from += search_threads) {
        Emitter emitter{};
        const std::uint32_t i = from + threadIdx.x;
        if (i < count) emitter = a.delayeds.emitters[std::uint64_t{blockIdx.x} * single_tile + i];
        std::uint32_t records = 0;
        const std::uint64_t at = base + block_exclusive_sum<search_threads>(emitter.pairs, storage, records);
        base += records;
        if (emitter.pairs == 0 || at + emitter.pairs <= part.low || at >= end) continue;
        if (emitter.size == 2) {
            const Single x = a.singles[emitter.first];
            Single y = a.singles[emitter.second];
            y.time -= a.rules.delay;
            if (before(y, x)) {
                put(at, y, x);
            } else {
                put(at, x, y);
            }
            continue;
        }
        // Several pairs are to be found here: all that are good.
        const std::uint32_t group_end = window_end(GlobalTimes{a.singles}, emitter.first, a.totals->view,
                                                   a.singles[emitter.first].time, a.rules.window);
        const std::uint32_t group_size = group_end - emitter.first;
        const ShiftedGroup group{a.singles + emitter.first, group_size,    a.singles + emitter.second,
                                 emitter.size - group_size, a.rules.delay, a.rules.opener_only,
                                 pair_rule<Rule>(a.rules)};
        std::uint64_t number = at;
        group.resolve(MultiplesPolicy::take_all_goods, [&](const ShiftedMember& x, const ShiftedMember& y) {
            put(number++, x.single, y.single);
        });
    }
}

/// The place of a record is its own number plus the number of records of the other kind before it.
__global__ void merge_kernel(const SearchTotals* totals, const Coincidence* prompts,
                             const Coincidence* delayeds, std::uint32_t room, Coincidence* out) {
    if (totals->prompts + totals->delayeds > room) return;
    const auto prompt_count = static_cast<std::uint32_t>(totals->prompts);
    const auto delayed_count = static_cast<std::uint32_t>(totals->delayeds);
    const std::uint32_t stride = gridDim.x * blockDim.x;
    for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < prompt_count + delayed_count;
         i += stride) {
        if (i < prompt_count) {
            const Coincidence c = prompts[i];
            out[i + partition_point(0, delayed_count,
                                    [&](std::uint32_t k) { return delayeds[k].time < c.time; })] = c;
        } else {
            const std::uint32_t k = i - prompt_count;
            const Coincidence c = delayeds[k];
            out[k + partition_point(0, prompt_count,
                                    [&](std::uint32_t p) { return prompts[p].time <= c.time; })] = c;
        }
    }
}

__global__ void disorders_kernel(SearchTotals* totals, const Coincidence* records, std::uint32_t room) {
    const std::uint64_t count = totals->prompts + totals->delayeds;
    if (count > room) return;
    const std::uint32_t stride = gridDim.x * blockDim.x;
    for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x + 1; i < count; i += stride) {
        if (records[i].time != records[i - 1].time || !before(records[i], records[i - 1])) continue;
        if (*static_cast<volatile std::uint32_t*>(&totals->disorders) > disorder_room) continue;
        const std::uint32_t at = atomicAdd(&totals->disorders, 1U);
        if (at < disorder_room) totals->disorder_at[at] = i;
    }
}

constexpr std::uint32_t record_threads = 256;

std::uint32_t record_blocks(std::uint32_t room) {
    return std::min((room + record_threads - 1) / record_threads, 1024U);
}

}  // namespace

void launch_emit(const SearchArguments& a, Kind kind, std::uint64_t low, std::uint32_t room, Coincidence* out,
                 cudaStream_t stream) {
    const bool shifted = kind == Kind::delayed && a.rules.shifted;
    const std::uint32_t tiles = tiles_for(kind == Kind::prompt || shifted ? a.count - a.taken : a.count);
    if (tiles == 0) return;
    const OutputPart part{out, low, room};
    a.rules.pair.use([&]<class Rule>(const Rule&) {
        if (shifted) {
            emit_shifted_kernel<Rule><<<tiles, search_threads, 0, stream>>>(a, part);
        } else {
            emit_kernel<Rule><<<tiles, search_threads, 0, stream>>>(a, kind, part);
        }
    });
    check(cudaGetLastError(), "kernel launch", "writing records");
}

void launch_merge(const SearchTotals* totals, const Coincidence* prompts, const Coincidence* delayeds,
                  std::uint32_t room, Coincidence* out, cudaStream_t stream) {
    merge_kernel<<<record_blocks(room), record_threads, 0, stream>>>(totals, prompts, delayeds, room, out);
    check(cudaGetLastError(), "kernel launch", "merging prompts and delayeds");
}

void launch_disorders(SearchTotals* totals, const Coincidence* records, std::uint32_t room,
                      cudaStream_t stream) {
    disorders_kernel<<<record_blocks(room), record_threads, 0, stream>>>(totals, records, room);
    check(cudaGetLastError(), "kernel launch", "checking the order of records");
}

}  // namespace petacq::gpu::cuda
