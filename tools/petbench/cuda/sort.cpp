// Suite "sort": the engines that order singles on the GPU.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "gpu/cuda/base/memory.hpp"
#include "gpu/cuda/base/pinned_memory.hpp"
#include "gpu/cuda/cuda_pipeline.hpp"
#include "gpu/sort/sort.hpp"
#include "tools/petbench/base/measure.hpp"
#include "tools/petbench/base/suites.hpp"
#include "tools/petbench/cuda/input.hpp"

namespace petacq::bench {

namespace {

using config::SortEngine;
using gpu::cuda::check;
using gpu::cuda::Event;
using gpu::cuda::Memory;

constexpr double too_long_ms = 2000;  // per sort; slower engines get no figure

std::vector<SortEngine> engines_and_automatic() {
    std::vector<SortEngine> engines = gpu::sort::engines();
    engines.push_back(SortEngine::automatic);
    return engines;
}

std::uint64_t next_random(std::uint64_t& state) {
    std::uint64_t z = state += 0x9E3779B97F4A7C15U;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9U;
    z = (z ^ z >> 27) * 0x94D049BB133111EBU;
    return z ^ z >> 31;
}

struct SortInput {
    const char* name;
    std::function<void(std::vector<std::uint64_t>& keys, std::uint64_t limit)> fill;
};

/// Times in order of arrival: 64 ordered sources, packets of 90 singles, up to two packets apart.
void fill_stream(std::vector<std::uint64_t>& keys, std::uint64_t limit) {
    std::uint64_t state = 2;
    const std::uint64_t step = std::max<std::uint64_t>(1, limit / (keys.size() / 64 + 270) / 2);
    std::vector<std::uint64_t> time(64);
    for (std::uint64_t& t : time)
        t = next_random(state) % (90 * step);
    std::size_t source = 0;
    for (std::size_t i = 0; i < keys.size(); source = (source + 1) % time.size()) {
        for (int k = 0; k < 90 && i < keys.size(); ++k)
            keys[i++] = std::min(limit - 1, time[source] += next_random(state) % (2 * step));
    }
}

const std::vector<SortInput> inputs{
    {"random",
     [](auto& keys, std::uint64_t limit) {
         std::uint64_t state = 1;
         for (std::uint64_t& key : keys)
             key = next_random(state) % limit;
     }},
    {"nearly sorted", fill_stream},
    {"sorted",
     [](auto& keys, std::uint64_t limit) {
         const std::uint64_t step = std::max<std::uint64_t>(1, limit / keys.size());
         for (std::size_t i = 0; i < keys.size(); ++i)
             keys[i] = std::min(limit - 1, i * step);
     }},
    {"all equal", [](auto& keys, std::uint64_t limit) { std::fill(keys.begin(), keys.end(), limit / 3); }},
};

class Timer {
  public:
    explicit Timer(cudaStream_t stream) : stream_(stream) {}
    /// Milliseconds of the device.
    double operator()(const std::function<void()>& work) {
        begin_.record(stream_);
        work();
        end_.record(stream_);
        end_.wait("timing a sort");
        return milliseconds_between(begin_, end_);
    }

  private:
    cudaStream_t stream_;
    Event begin_{cudaEventDefault};
    Event end_{cudaEventDefault};
};

double bytes_per_s(Timer& timer, cudaStream_t stream, void* to, const void* from, std::size_t bytes,
                   cudaMemcpyKind kind, int repeat) {
    std::vector<double> rates;
    for (int r = 0; r < repeat + 1; ++r) {
        const double ms = timer([&] {
            check(cudaMemcpyAsync(to, from, bytes, kind, stream), "cudaMemcpyAsync", "timing copies");
        });
        if (r > 0) rates.push_back(static_cast<double>(bytes) / ms * 1e3);
    }
    return median(rates);
}

struct Arrays {
    gpu::sort::Pairs in;
    gpu::sort::Pairs out;
    void* scratch;
    std::size_t scratch_bytes;
};

/// Milliseconds, or less than 0 when it takes too long.
double time_engine(SortEngine engine, const Arrays& a, std::uint32_t count, const SortSuite& o, Timer& timer,
                   cudaStream_t stream) {
    const auto sort = [&] {
        gpu::sort::launch(engine, a.scratch, a.scratch_bytes, a.in, a.out, count, o.bits, stream);
    };
    timer(sort);  // loads the kernels
    const double first = timer(sort);
    if (first > too_long_ms) return -1;
    // Fewer repetitions of long sorts.
    const int repeat = first > 100 ? std::min(o.repeat, 3) : o.repeat;
    std::vector<double> times;
    for (int r = 0; r < repeat; ++r)
        times.push_back(timer(sort));
    return median(times);
}

std::string length_text(std::uint32_t count) {
    if (count >= 1U << 20 && count % (1U << 20) == 0) return std::to_string(count >> 20) + " Mi";
    if (count >= 1U << 10 && count % (1U << 10) == 0) return std::to_string(count >> 10) + " Ki";
    return std::to_string(count);
}

}  // namespace

void run(const SortSuite& o) {
    if (const auto reason = gpu::cuda_unusable_reason())
        throw std::runtime_error("sort: needs a GPU: " + *reason);
    const std::vector<SortEngine> engines = engines_and_automatic();
    Memory memory(Memory::Purpose::use);
    const gpu::cuda::Stream stream;
    Timer timer(stream);
    Arrays a{{memory.device<std::uint64_t>(o.most), memory.device<std::uint64_t>(o.most)},
             {memory.device<std::uint64_t>(o.most), memory.device<std::uint64_t>(o.most)},
             nullptr,
             0};
    for (const SortEngine engine : engines)
        a.scratch_bytes = std::max(a.scratch_bytes, gpu::sort::scratch_bytes(engine, o.most));
    a.scratch = memory.device<std::byte>(a.scratch_bytes);

    constexpr std::size_t copied = std::size_t{256} << 20;
    auto* const pinned = memory.pinned<std::byte>(copied);
    auto* const device = memory.device<std::byte>(2 * copied);
    check(cudaMemset(device, 0, 2 * copied), "cudaMemset", "timing copies");
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize", "timing copies");
    std::fill_n(pinned, copied, std::byte{0});
    const double up = bytes_per_s(timer, stream, device, pinned, copied, cudaMemcpyHostToDevice, o.repeat);
    const double across =
        bytes_per_s(timer, stream, device + copied, device, copied, cudaMemcpyDeviceToDevice, o.repeat);
    std::printf("host to device %.1f GB/s; device copy %.2f TB/s read and written\n", up / 1e9,
                2 * across / 1e12);
    std::printf("singles of 16 bytes by %d bits; median of %d; G singles/s, and the ratio to CUB\n", o.bits,
                o.repeat);

    const std::uint64_t limit = o.bits == 64 ? ~std::uint64_t{0} : std::uint64_t{1} << o.bits;
    bool left_out = false;
    for (const SortInput& input : inputs) {
        std::printf("\n%s; host to device %.2f G singles/s, device copy %.1f\n", input.name, up / 16e9,
                    across / 16e9);
        const TextTable table(14, std::vector<std::size_t>(engines.size(), 16));
        std::vector<std::string> cells;
        for (const SortEngine engine : engines)
            cells.emplace_back(name_of(engine));
        table.row("", cells);
        for (std::uint64_t n = o.least; n <= o.most; n *= 4) {
            const auto count = static_cast<std::uint32_t>(n);
            std::vector<std::uint64_t> keys(count);
            input.fill(keys, limit);
            check(cudaMemcpy(a.in.key, keys.data(), n * sizeof(std::uint64_t), cudaMemcpyHostToDevice),
                  "cudaMemcpy", "timing a sort");
            check(cudaMemcpy(a.in.value, a.in.key, n * sizeof(std::uint64_t), cudaMemcpyDeviceToDevice),
                  "cudaMemcpy", "timing a sort");
            // The stream of the sorts does not wait for the default one.
            check(cudaDeviceSynchronize(), "cudaDeviceSynchronize", "timing a sort");
            const double cub = time_engine(SortEngine::cub, a, count, o, timer, stream);
            cells.clear();
            for (const SortEngine engine : engines) {
                const double ms =
                    engine == SortEngine::cub ? cub : time_engine(engine, a, count, o, timer, stream);
                if (ms < 0) {
                    left_out = true;
                    cells.emplace_back("-");
                } else {
                    cells.push_back(
                        fmt::format("{:.3f} ({:4.2f})", static_cast<double>(n) / ms / 1e6, cub / ms));
                }
            }
            table.row(length_text(count), cells, fmt::format("   CUB {:.3f} ms", cub));
            std::fflush(stdout);
        }
    }
    if (left_out) std::printf("-: one sort takes more than %.0f s\n", too_long_ms / 1e3);
}

}  // namespace petacq::bench
