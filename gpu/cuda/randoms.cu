#include "gpu/cuda/randoms.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "gpu/arithmetic.hpp"
#include "gpu/cuda/check.hpp"
#include "gpu/cuda/memory.hpp"
#include "gpu/sort/block_primitives.cuh"

namespace petacq::gpu {

namespace {

using cuda::check;
using cuda::Memory;
using cuda::Stream;

constexpr std::uint32_t threads = 256;
constexpr std::uint32_t most_groups = 8;

using Storage = sort::WarpValues<double, threads>;

/// Returns the sum over the block to every thread. Ends with a barrier.
__device__ double block_sum(double x, Storage& storage) {
    return sort::block_reduce<threads>(x, storage, [](double a, double b) { return a + b; });
}

struct Layout {
    PairRule rule;
    std::uint32_t rings;
    std::uint32_t chunks;  ///< blocks of targets in a module
    std::uint32_t groups;  ///< of contributing modules: group g has modules g, g + groups, ...
    double both_ways_s;

    /// The k-th crystal of a module, ring after ring.
    PETACQ_HD std::uint32_t crystal(std::uint32_t module, std::uint32_t k) const {
        const std::uint32_t ring = k / rule.crystals_per_module;
        return ring * rule.crystals_in_ring + module * rule.crystals_per_module +
               (k - ring * rule.crystals_per_module);
    }
    PETACQ_HD std::uint32_t in_module() const { return rings * rule.crystals_per_module; }
    PETACQ_HD std::uint32_t apart(std::uint32_t a, std::uint32_t b) const {
        const std::uint32_t straight = a > b ? a - b : b - a;
        const std::uint32_t around = rule.modules - straight;
        return straight < around ? straight : around;
    }
};

/// A range of crystals of one module.
struct Range {
    std::uint32_t begin;
    std::uint32_t end;
};
__device__ Range near_rings(const Layout& l, std::uint32_t first_ring, std::uint32_t last_ring) {
    const std::uint32_t reach = min(l.rule.max_ring_difference, l.rings);
    const std::uint32_t low = first_ring > reach ? first_ring - reach : 0;
    const std::uint32_t high = min(last_ring + reach + 1, l.rings);
    return {low * l.rule.crystals_per_module, high * l.rule.crystals_per_module};
}

/// Block (x, y) combines one chunk of the targets of one module with the modules of group y.
/// contributions[group][crystal] is the sum over the group; pair_parts[chunk][module] is the sum of the
/// products over chunk and module.
__global__ void __launch_bounds__(threads)
    contributions_kernel(Layout l, const double* rates, double* contributions, double* pair_parts) {
    __shared__ double tile[threads];
    __shared__ Storage storage;
    const std::uint32_t module = blockIdx.x / l.chunks;
    const std::uint32_t first = blockIdx.x % l.chunks * threads;
    const std::uint32_t target = first + threadIdx.x;
    const std::uint32_t in_module = l.in_module();
    const bool present = target < in_module;
    const std::uint32_t last = min(first + threads, in_module) - 1;
    const std::uint32_t width = l.rule.crystals_per_module;
    const Range all = near_rings(l, first / width, last / width);
    Range own{0, 0};
    double rate = 0;
    if (present) {
        own = near_rings(l, target / width, target / width);
        rate = rates[l.crystal(module, target)];
    }
    double sum = 0;
    for (std::uint32_t other = blockIdx.y; other < l.rule.modules; other += l.groups) {
        double of_module = 0;
        if (l.apart(module, other) >= l.rule.min_module_difference) {
            const std::uint32_t self = other == module ? target : UINT32_MAX;
            for (std::uint32_t base = all.begin; base < all.end; base += threads) {
                __syncthreads();
                const std::uint32_t k = base + threadIdx.x;
                tile[threadIdx.x] = k < all.end ? rates[l.crystal(other, k)] : 0;
                __syncthreads();
                const std::uint32_t count = min(threads, all.end - base);
#pragma unroll 4
                for (std::uint32_t i = 0; i < count; ++i) {
                    const std::uint32_t at = base + i;
                    const bool good = at - own.begin < own.end - own.begin && at != self;
                    of_module += good ? tile[i] : 0;
                }
            }
        }
        sum += of_module;
        const double products = block_sum(rate * of_module, storage);
        if (threadIdx.x == 0) pair_parts[std::uint64_t{blockIdx.x} * l.rule.modules + other] = products;
    }
    if (present) {
        const std::uint64_t crystals = std::uint64_t{l.rule.crystals_in_ring} * l.rings;
        contributions[blockIdx.y * crystals + l.crystal(module, target)] = sum;
    }
}

__global__ void crystals_kernel(Layout l, const double* rates, const double* contributions,
                                double* per_crystal) {
    const std::uint32_t crystals = l.rule.crystals_in_ring * l.rings;
    const std::uint32_t i = blockIdx.x * threads + threadIdx.x;
    if (i >= crystals) return;
    double sum = 0;
    for (std::uint32_t g = 0; g < l.groups; ++g)
        sum += contributions[std::uint64_t{g} * crystals + i];
    per_crystal[i] = l.both_ways_s * rates[i] * sum;
}

/// Block (a, b), a <= b, adds up the chunks of module a for module b.
__global__ void __launch_bounds__(threads)
    pairs_kernel(Layout l, const double* pair_parts, double* module_pairs) {
    __shared__ Storage storage;
    const std::uint32_t a = blockIdx.x;
    const std::uint32_t b = blockIdx.y;
    if (a > b) return;
    double part = 0;
    for (std::uint32_t chunk = threadIdx.x; chunk < l.chunks; chunk += threads)
        part += pair_parts[(std::uint64_t{a} * l.chunks + chunk) * l.rule.modules + b];
    const double sum = block_sum(part, storage);
    if (threadIdx.x != 0) return;
    // Within a module each pair was counted from both of its crystals.
    const double pairs = a == b ? l.both_ways_s * sum / 2 : l.both_ways_s * sum;
    module_pairs[a * l.rule.modules + b] = pairs;
    module_pairs[b * l.rule.modules + a] = pairs;
}

__global__ void __launch_bounds__(threads)
    total_kernel(std::uint32_t modules, const double* module_pairs, double* total) {
    __shared__ Storage storage;
    double part = 0;
    for (std::uint32_t i = threadIdx.x; i < modules * modules; i += threads)
        part += i / modules <= i % modules ? module_pairs[i] : 0;
    const double sum = block_sum(part, storage);
    if (threadIdx.x == 0) *total = sum;
}

class CudaRandoms final : public RandomsEstimator {
  public:
    CudaRandoms(const config::Geometry& geometry, const CoincidenceRules& rules, double tick_s)
        : stream_(cuda::Priority::lowest), memory_(Memory::Purpose::use) {
        check(cudaGetDevice(&device_), "cudaGetDevice", "set-up");
        layout_.rule = PairRule::of(geometry, rules);
        layout_.rings = geometry.rings();
        layout_.chunks = (layout_.in_module() + threads - 1) / threads;
        layout_.groups = std::min(layout_.rule.modules, most_groups);
        layout_.both_ways_s = 2 * randoms_window_s(rules, tick_s);
        crystals_ = geometry.crystal_count();
        pairs_ = layout_.rule.modules * layout_.rule.modules;
        rates_ = memory_.device<double>(crystals_);
        contributions_ = memory_.device<double>(std::size_t{crystals_} * layout_.groups);
        pair_parts_ =
            memory_.device<double>(std::size_t{layout_.rule.modules} * layout_.chunks * layout_.rule.modules);
        result_ = memory_.device<double>(std::size_t{crystals_} + pairs_ + 1);
        host_rates_ = memory_.pinned<double>(crystals_);
        host_result_ = memory_.pinned<double>(std::size_t{crystals_} + pairs_ + 1);
    }
    CudaRandoms(const CudaRandoms&) = delete;
    CudaRandoms& operator=(const CudaRandoms&) = delete;
    ~CudaRandoms() override { cudaStreamSynchronize(stream_); }

    void estimate(std::span<const double> singles_per_s, ExpectedRandoms& out) override {
        if (singles_per_s.size() != crystals_) {
            throw std::invalid_argument("expected randoms: " + std::to_string(singles_per_s.size()) +
                                        " rates, expected one for each of " + std::to_string(crystals_) +
                                        " crystals");
        }
        check(cudaSetDevice(device_), "cudaSetDevice", doing);
        std::copy(singles_per_s.begin(), singles_per_s.end(), host_rates_);
        check(
            cudaMemcpyAsync(rates_, host_rates_, crystals_ * sizeof(double), cudaMemcpyHostToDevice, stream_),
            "cudaMemcpyAsync", doing);
        double* const module_pairs = result_ + crystals_;
        const std::uint32_t modules = layout_.rule.modules;
        contributions_kernel<<<dim3(modules * layout_.chunks, layout_.groups), threads, 0, stream_>>>(
            layout_, rates_, contributions_, pair_parts_);
        crystals_kernel<<<(crystals_ + threads - 1) / threads, threads, 0, stream_>>>(
            layout_, rates_, contributions_, result_);
        pairs_kernel<<<dim3(modules, modules), threads, 0, stream_>>>(layout_, pair_parts_, module_pairs);
        total_kernel<<<1, threads, 0, stream_>>>(modules, module_pairs, module_pairs + pairs_);
        check(cudaGetLastError(), "kernel launch", doing);
        check(cudaMemcpyAsync(host_result_, result_, (std::size_t{crystals_} + pairs_ + 1) * sizeof(double),
                              cudaMemcpyDeviceToHost, stream_),
              "cudaMemcpyAsync", doing);
        check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize", doing);
        out.modules = modules;
        out.per_crystal.assign(host_result_, host_result_ + crystals_);
        out.module_pairs.assign(host_result_ + crystals_, host_result_ + crystals_ + pairs_);
        out.total = host_result_[crystals_ + pairs_];
    }

  private:
    static constexpr const char* doing = "working out the expected randoms";

    Stream stream_;  // before the memory, because freeing the memory waits for it
    Memory memory_;
    int device_ = 0;
    Layout layout_{};
    std::uint32_t crystals_ = 0;
    std::uint32_t pairs_ = 0;
    double* rates_ = nullptr;
    double* contributions_ = nullptr;
    double* pair_parts_ = nullptr;
    double* result_ = nullptr;
    double* host_rates_ = nullptr;
    double* host_result_ = nullptr;
};

}  // namespace

std::unique_ptr<RandomsEstimator> make_cuda_randoms(const config::Geometry& geometry,
                                                    const CoincidenceRules& rules, double tick_s) {
    return std::make_unique<CudaRandoms>(geometry, rules, tick_s);
}

}  // namespace petacq::gpu
