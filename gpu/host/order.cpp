#include "gpu/host/order.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>

#include "gpu/arithmetic.hpp"

namespace petacq::gpu {

namespace {

constexpr std::size_t bucket_singles = 1024;  // 16 KiB: a bucket and its copy fit in the L1 cache
constexpr unsigned max_bucket_bits = 12;
constexpr unsigned max_fine_bits = 12;
constexpr std::size_t insertion_limit = 24;

bool less(const Single& a, const Single& b) {
    return before(a, b);
}

void insertion_sort(Single* first, std::size_t n) {
    for (std::size_t i = 1; i < n; ++i) {
        const Single moving = first[i];
        std::size_t k = i;
        for (; k > 0 && before(moving, first[k - 1]); --k)
            first[k] = first[k - 1];
        first[k] = moving;
    }
}

}  // namespace

void sort_bucket(const Single* source, std::size_t n, std::uint64_t low, unsigned width, Single* target) {
    if (n <= insertion_limit) {
        std::copy_n(source, n, target);
        insertion_sort(target, n);
        return;
    }
    const unsigned bits = std::min({static_cast<unsigned>(std::bit_width(n - 1)), max_fine_bits, width});
    const unsigned shift = width - bits;
    std::array<std::uint32_t, (1U << max_fine_bits) + 1>
        ends;  // NOLINT(cppcoreguidelines-pro-type-member-init)
    const std::size_t buckets = std::size_t{1} << bits;
    std::fill_n(ends.begin(), buckets, 0U);
    for (std::size_t i = 0; i < n; ++i)
        ++ends[(source[i].time - low) >> shift];
    std::uint32_t sum = 0;
    std::uint32_t largest = 0;
    for (std::size_t b = 0; b < buckets; ++b) {
        const std::uint32_t count = ends[b];
        largest = std::max(largest, count);
        ends[b] = sum;
        sum += count;
    }
    for (std::size_t i = 0; i < n; ++i)
        target[ends[(source[i].time - low) >> shift]++] = source[i];
    if (largest <= insertion_limit) {
        insertion_sort(target, n);
        return;
    }
    std::uint32_t begin = 0;
    for (std::size_t b = 0; b < buckets; ++b) {
        const std::uint32_t count = ends[b] - begin;
        if (count > insertion_limit) {
            std::sort(target + begin, target + ends[b], less);
        } else {
            insertion_sort(target + begin, count);
        }
        begin = ends[b];
    }
}

Orderer::Orderer(WorkerPool& pool) : pool_(pool), pieces_(pool.size()), cursors_(pool.size()) {}

void Orderer::cut_into_pieces(std::span<const std::span<const Single>> parts, std::uint32_t workers) {
    std::size_t total = 0;
    for (const auto& part : parts)
        total += part.size();
    std::size_t done = 0;
    for (std::uint32_t w = 0; w < workers; ++w)
        pieces_[w].clear();
    if (total == 0 || workers == 0) return;
    for (const auto& part : parts) {
        std::size_t from = 0;
        while (from < part.size()) {
            const auto w = static_cast<std::uint32_t>(done * workers / total);
            const std::size_t share_end = (total * (w + 1) + workers - 1) / workers;
            const std::size_t count = std::min(part.size() - from, share_end - done);
            pieces_[w].push_back({part.data() + from, count});
            from += count;
            done += count;
        }
    }
}

void Orderer::order(std::span<const std::span<const Single>> parts, TimeRange range,
                    std::optional<std::uint64_t> limit, std::uint32_t workers, SingleBuffer& ready,
                    SingleBuffer& later) {
    later.clear();
    std::size_t total = 0;
    for (const auto& part : parts)
        total += part.size();
    if (total == 0) return;
    const bool none_ready = limit && (*limit == 0 || range.low >= *limit);
    const std::uint64_t low = range.low;
    const std::uint64_t high = limit && *limit > 0 ? std::min(range.high, *limit - 1) : range.high;

    cut_into_pieces(parts, workers);
    // Buckets of 2^width ticks.
    const auto range_bits = none_ready ? 0U : static_cast<unsigned>(std::bit_width(high - low));
    const unsigned wanted =
        std::min(static_cast<unsigned>(std::bit_width(total / bucket_singles)), max_bucket_bits);
    const unsigned width = range_bits > wanted ? std::min(range_bits - wanted, 63U) : 0;
    const std::uint32_t buckets = none_ready ? 0 : static_cast<std::uint32_t>((high - low) >> width) + 1;
    const auto bucket_of = [=](std::uint64_t time) {
        return time > high || none_ready ? buckets : static_cast<std::uint32_t>((time - low) >> width);
    };

    pool_.run(workers, [&](std::uint32_t w) {
        std::vector<std::uint32_t>& count = cursors_[w];
        count.assign(buckets + 1, 0);
        for (const Piece& piece : pieces_[w]) {
            for (std::size_t i = 0; i < piece.count; ++i)
                ++count[bucket_of(piece.first[i].time)];
        }
    });
    // The position where each worker writes its share of each bucket. Later singles follow all buckets.
    starts_.resize(buckets + 1);
    std::uint32_t sum = 0;
    for (std::uint32_t b = 0; b <= buckets; ++b) {
        starts_[b] = sum;
        for (std::uint32_t w = 0; w < workers; ++w) {
            const std::uint32_t count = cursors_[w][b];
            cursors_[w][b] = sum;
            sum += count;
        }
    }
    const std::size_t ready_count = starts_[buckets];
    spread_.resize(ready_count);
    later.resize(total - ready_count);
    pool_.run(workers, [&](std::uint32_t w) {
        std::vector<std::uint32_t>& cursor = cursors_[w];
        Single* const spread = spread_.data();
        Single* const later_data = later.data();
        for (const Piece& piece : pieces_[w]) {
            for (std::size_t i = 0; i < piece.count; ++i) {
                const Single s = piece.first[i];
                const std::uint32_t bucket = bucket_of(s.time);
                const std::size_t place = cursor[bucket]++;
                Single* const to = bucket == buckets ? later_data + (place - ready_count) : spread + place;
                *to = s;
            }
        }
    });
    const std::size_t already = ready.size();
    ready.resize(already + ready_count);
    std::atomic<std::uint32_t> next{0};
    pool_.run(workers, [&](std::uint32_t) {
        for (std::uint32_t b = next.fetch_add(1, std::memory_order_relaxed); b < buckets;
             b = next.fetch_add(1, std::memory_order_relaxed)) {
            const std::size_t count = starts_[b + 1] - starts_[b];
            if (count == 0) continue;
            sort_bucket(spread_.data() + starts_[b], count, low + (std::uint64_t{b} << width), width,
                        ready.data() + already + starts_[b]);
        }
    });
}

}  // namespace petacq::gpu
