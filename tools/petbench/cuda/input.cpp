#include "tools/petbench/cuda/input.hpp"

#include <algorithm>
#include <cstring>
#include <thread>

#include "gpu/cuda/base/memory.hpp"
#include "net/wire.hpp"
#include "tools/petbench/base/frames.hpp"
#include "tools/petbench/base/measure.hpp"

namespace petacq::bench {

namespace {

using gpu::cuda::check;

constexpr std::size_t block_frames = 5U << 18;  // not a multiple of any slice

struct Copies {
    std::size_t piece = 0;  ///< bytes
    std::size_t count = 0;
    std::size_t step = 0;  ///< bytes between the sources of two copies
    cudaMemcpyKind kind = cudaMemcpyHostToDevice;
    bool two_streams = false;  ///< in turn, instead of one
};

/// Bytes per second of copies back to back.
double copy_rate(void* to, const std::byte* from, const Copies& copies, int repeat) {
    const gpu::cuda::Stream one;
    const gpu::cuda::Stream two;
    const gpu::cuda::Event start(cudaEventDefault);
    const gpu::cuda::Event end(cudaEventDefault);
    const gpu::cuda::Event end_two;
    std::vector<double> rates;
    for (int r = 0; r < repeat + 1; ++r) {
        start.record(one);
        two.wait_for(start);
        for (std::size_t i = 0; i < copies.count; ++i) {
            check(cudaMemcpyAsync(to, from + i * copies.step, copies.piece, copies.kind,
                                  copies.two_streams && i % 2 == 1 ? two : one),
                  "cudaMemcpyAsync", "timing copies");
        }
        end_two.record(two);
        one.wait_for(end_two);
        end.record(one);
        end.wait("timing copies");
        const auto bytes = static_cast<double>(copies.count * copies.piece);
        if (r > 0) rates.push_back(bytes / milliseconds_between(start, end) * 1e3);
    }
    return median(rates);
}

}  // namespace

void set_time(std::byte* frame, std::uint64_t time) {
    const std::uint64_t swapped = net::swap_bytes(time);
    std::memcpy(frame + 2, &swapped, sizeof swapped);
}

namespace {

/// Where the spans of a block lie, headers in front: reads of several datagrams, which alternate between the
/// areas of the receivers.
std::vector<std::size_t> place_spans(const std::vector<gpu::FrameSpan>& spans, std::size_t receivers) {
    constexpr std::size_t datagrams_of_read = 44;  // of 1472 bytes in 64 KiB
    const auto receiver_of = [=](std::size_t i) { return i / datagrams_of_read % receivers; };
    std::vector<std::size_t> next(receivers + 1, 0);
    for (std::size_t i = 0; i < spans.size(); ++i)
        next[receiver_of(i) + 1] += net::header_bytes + std::size_t{spans[i].count} * net::frame_bytes;
    for (std::size_t r = 1; r < receivers; ++r)
        next[r] += next[r - 1];
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < spans.size(); ++i) {
        std::size_t& at = next[receiver_of(i)];
        places.push_back(at + net::header_bytes);
        at = places.back() + std::size_t{spans[i].count} * net::frame_bytes;
    }
    return places;
}

}  // namespace

CudaInput make_cuda_input(const config::Scanner& scanner, double rate, double gammas, std::size_t frames,
                          std::size_t receivers) {
    StreamOptions options;
    options.frames = block_frames;
    options.singles_per_s = rate;
    options.gamma_fraction = gammas;
    const Stream stream = make_stream(scanner, options);
    std::uint64_t latest = 0;
    for (std::size_t i = 0; i < block_frames; ++i)
        latest = std::max(latest, net::frame_time(stream.bytes.data() + i * net::frame_bytes));

    const std::vector<std::size_t> places = place_spans(stream.spans, receivers);
    CudaInput input;
    const std::size_t blocks = (frames + block_frames - 1) / block_frames;
    const std::size_t block_bytes = block_frames * net::frame_bytes + stream.spans.size() * net::header_bytes;
    input.frames = blocks * block_frames;
    input.bytes = blocks * block_bytes;
    input.data = input.memory->allocate(input.bytes);
    input.spans.resize(blocks * stream.spans.size());
    input.watermarks.resize(input.spans.size());
    const auto fill = [&](std::size_t block) {
        const std::uint64_t shift = block * latest;
        const std::uint64_t next = 1'000'000 + (block + 1) * latest;
        for (std::size_t i = 0; i < stream.spans.size(); ++i) {
            const gpu::FrameSpan& from = stream.spans[i];
            std::byte* to = input.data + block * block_bytes + places[i];
            gpu::FrameSpan& span = input.spans[block * stream.spans.size() + i];
            span = from;
            span.frames = to;
            for (std::uint32_t k = 0; k < from.count; ++k, to += net::frame_bytes) {
                const std::byte* frame = from.frames + std::size_t{k} * net::frame_bytes;
                std::memcpy(to, frame, net::frame_bytes);
                set_time(to, net::frame_time(frame) + shift);
            }
            // The next block begins a little before the end of this one.
            const std::uint64_t low = std::min(stream.watermarks[i], latest) + shift;
            input.watermarks[block * stream.spans.size() + i] = std::min(low, next);
        }
    };
    std::vector<std::thread> threads;
    const std::size_t workers = std::max(1U, std::thread::hardware_concurrency());
    for (std::size_t w = 0; w < workers; ++w) {
        threads.emplace_back([&, w] {
            for (std::size_t block = w; block < blocks; block += workers)
                fill(block);
        });
    }
    for (std::thread& t : threads)
        t.join();
    return input;
}

double milliseconds_between(cudaEvent_t from, cudaEvent_t to) {
    float ms = 0;
    check(cudaEventElapsedTime(&ms, from, to), "cudaEventElapsedTime", "timing");
    return ms;
}

CopyRates measure_copies(const CudaInput& input, int repeat) {
    constexpr std::size_t mi = std::size_t{1} << 20;
    static_assert(block_frames >= mi);
    const std::size_t piece = std::min(16 * mi * net::frame_bytes, input.bytes);
    gpu::cuda::Memory memory(gpu::cuda::Memory::Purpose::use);
    auto* const a = memory.device<std::byte>(piece);
    auto* const b = memory.device<std::byte>(piece);
    // The same piece again and again, about a GiB of it.
    const auto again = [&](void* to, const std::byte* from, Copies copies) {
        copies.count = std::max<std::size_t>(4, (std::size_t{1} << 30) / copies.piece);
        return copy_rate(to, from, copies, repeat);
    };
    const std::size_t small = mi * net::frame_bytes;
    CopyRates rates;
    rates.up = again(a, input.data, {piece, 0, 0, cudaMemcpyHostToDevice, false});
    rates.up_small = again(a, input.data, {small, 0, 0, cudaMemcpyHostToDevice, false});
    rates.up_batches = again(a, input.data, {std::size_t{2} << 20, 0, 0, cudaMemcpyHostToDevice, false});
    rates.up_two = again(a, input.data, {small, 0, 0, cudaMemcpyHostToDevice, true});
    rates.up_all =
        copy_rate(a, input.data, {piece, input.bytes / piece, piece, cudaMemcpyHostToDevice, false}, repeat);
    rates.device = again(b, a, {piece, 0, 0, cudaMemcpyDeviceToDevice, false});
    return rates;
}

}  // namespace petacq::bench
