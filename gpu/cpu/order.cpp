#include "gpu/cpu/order.hpp"
#include "gpu/rules/record_order.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

namespace petacq::gpu {

namespace {

constexpr std::size_t bin_singles = 1024;  // 16 KiB: a bin and its copy fit in the L1 cache
constexpr unsigned max_bin_bits = 12;
constexpr unsigned max_fine_bits = 12;
constexpr std::size_t insertion_limit = 24;
constexpr std::size_t group_singles = 4096;
constexpr unsigned misfit_bits = 2;
constexpr std::size_t spare_chunks = 32;  // chunks that may be nearly empty without being packed

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

void sort_bin(const BinPart* parts, std::uint32_t first, std::size_t n, std::uint64_t low, unsigned width,
              Single* target) {
    if (n <= insertion_limit) {
        Single* to = target;
        for (std::uint32_t p = first; p != 0; p = parts[p].next)
            to = std::copy(parts[p].singles.begin(), parts[p].singles.end(), to);
        insertion_sort(target, n);
        return;
    }
    const unsigned bits = std::min({static_cast<unsigned>(std::bit_width(n - 1)), max_fine_bits, width});
    const unsigned shift = width - bits;
    std::array<std::uint32_t, (1U << max_fine_bits) + 1>
        ends;  // NOLINT(cppcoreguidelines-pro-type-member-init)
    const std::size_t bins = std::size_t{1} << bits;
    std::fill_n(ends.begin(), bins, 0U);
    const Single* ahead = target;  // it is in no cache, and will be written at random
    for (std::uint32_t p = first; p != 0; p = parts[p].next) {
        for (const Single& s : parts[p].singles) {
            ++ends[(s.time - low) >> shift];
            __builtin_prefetch(ahead++);
        }
    }
    std::uint32_t sum = 0;
    std::uint32_t largest = 0;
    for (std::size_t b = 0; b < bins; ++b) {
        const std::uint32_t count = ends[b];
        largest = std::max(largest, count);
        ends[b] = sum;
        sum += count;
    }
    for (std::uint32_t p = first; p != 0; p = parts[p].next) {
        for (const Single& s : parts[p].singles)
            target[ends[(s.time - low) >> shift]++] = s;
    }
    if (largest <= insertion_limit) {
        insertion_sort(target, n);
        return;
    }
    std::uint32_t begin = 0;
    for (std::size_t b = 0; b < bins; ++b) {
        const std::uint32_t count = ends[b] - begin;
        if (count > insertion_limit) {
            std::sort(target + begin, target + ends[b], less);
        } else {
            insertion_sort(target + begin, count);
        }
        begin = ends[b];
    }
}

void Orderer::start(std::vector<std::unique_ptr<Chunk>>& chunks, std::optional<std::uint64_t> limit) {
    for (std::unique_ptr<Chunk>& chunk : chunks)
        waiting_.push_back(std::move(chunk));
    chunks.clear();
    misfits_.clear();
    last_ = limit ? *limit - 1 : UINT64_MAX;
    if (limit == 0) return;
    const auto wait = std::partition(waiting_.begin(), waiting_.end(),
                                     [&](const auto& chunk) { return chunk->low() > last_; });
    std::move(wait, waiting_.end(), std::back_inserter(used_));
    waiting_.erase(wait, waiting_.end());
    for (const auto& chunk : used_)
        chunk->split(last_);
    choose_width();
    for (const auto& chunk : used_) {
        if (chunk->width() > width_ + misfit_bits) misfits_.push_back(chunk.get());
    }
    rests_.resize(misfits_.size());
}

/// Chooses bins of about bin_singles.
void Orderer::choose_width() {
    TimeRange range;
    std::size_t singles = 0;
    for (const auto& chunk : used_) {
        range.include(TimeRange{chunk->low(), std::min(chunk->high(), last_)});
        singles += chunk->early().size();
    }
    if (used_.empty()) return;
    const auto bits = static_cast<unsigned>(std::bit_width(range.high - range.low));
    const unsigned wanted =
        std::min(static_cast<unsigned>(std::bit_width(singles / bin_singles)), max_bin_bits);
    width_ = bits > wanted ? std::min(bits - wanted, 63U) : 0;
    bin_width_.store(width_, std::memory_order_relaxed);
}

void Orderer::refit(std::size_t misfit) {
    Chunk& chunk = *misfits_[misfit];
    std::unique_ptr<Chunk> early = store_.take();
    early->fill(chunk.early(), width_, max_bin_bits);
    early->split(last_);
    if (!chunk.rest().empty()) {
        rests_[misfit] = store_.take();
        rests_[misfit]->fill(chunk.rest(), 0);
    }
    std::swap(chunk, *early);
    store_.give_back(std::move(early));
}

void Orderer::plan() {
    std::uint64_t low = UINT64_MAX;
    std::uint64_t high = 0;
    for (const auto& chunk : used_) {
        low = std::min(low, chunk->low());
        high = std::max(high, std::min(chunk->high(), last_));
        width_ = std::max(width_, chunk->width());
    }
    first_bin_ = low >> width_;
    bins_.assign(used_.empty() ? 0 : (high >> width_) - first_bin_ + 1, {});
    parts_.assign(1, {});
    for (const auto& chunk : used_)
        add_parts(*chunk);
    group_ends_.clear();
    size_ = 0;
    std::size_t group_start = 0;
    for (std::size_t b = 0; b < bins_.size(); ++b) {
        bins_[b].place = size_;
        size_ += bins_[b].size;
        if (size_ - group_start >= group_singles || b + 1 == bins_.size()) {
            group_ends_.push_back(b + 1);
            group_start = size_;
        }
    }
}

void Orderer::add_parts(const Chunk& chunk) {
    chunk.for_each_early(width_, [&](std::uint64_t bin, std::span<const Single> singles) {
        Bin& to = bins_[bin - first_bin_];
        parts_.push_back({singles, to.parts});
        to.parts = static_cast<std::uint32_t>(parts_.size() - 1);
        to.size += static_cast<std::uint32_t>(singles.size());
    });
}

void Orderer::sort(std::size_t group, Single* target) const {
    for (std::size_t b = group == 0 ? 0 : group_ends_[group - 1]; b < group_ends_[group]; ++b) {
        const Bin& bin = bins_[b];
        sort_bin(parts_.data(), bin.parts, bin.size, (first_bin_ + b) << width_, width_, target + bin.place);
    }
}

void Orderer::finish() {
    for (std::unique_ptr<Chunk>& chunk : used_) {
        chunk->drop_early();
        if (chunk->size() > 0) {
            waiting_.push_back(std::move(chunk));
        } else {
            store_.give_back(std::move(chunk));
        }
    }
    used_.clear();
    for (std::unique_ptr<Chunk>& rest : rests_) {
        if (rest) waiting_.push_back(std::move(rest));
    }
    rests_.clear();
    pack();
}

/// Keeps most chunks at least half full, so that memory is bounded by the singles that wait.
void Orderer::pack() {
    std::size_t singles = 0;
    for (const auto& chunk : waiting_)
        singles += chunk->size();
    if ((waiting_.size() - std::min(waiting_.size(), spare_chunks)) * Chunk::max_singles <= 2 * singles) {
        return;
    }
    std::vector<std::unique_ptr<Chunk>> few;
    const auto full = [](const auto& chunk) { return 2 * chunk->size() > Chunk::max_singles; };
    const auto first_few = std::partition(waiting_.begin(), waiting_.end(), full);
    std::move(first_few, waiting_.end(), std::back_inserter(few));
    waiting_.erase(first_few, waiting_.end());
    packed_.clear();
    for (std::unique_ptr<Chunk>& chunk : few) {
        if (packed_.size() + chunk->size() > Chunk::max_singles) keep_packed();
        packed_.append(chunk->view());
        store_.give_back(std::move(chunk));
    }
    keep_packed();
}

void Orderer::keep_packed() {
    if (packed_.empty()) return;
    waiting_.push_back(store_.take());
    waiting_.back()->fill(packed_.view(), bin_width());
    packed_.clear();
}

void Orderer::reset() {
    for (std::unique_ptr<Chunk>& chunk : waiting_)
        store_.give_back(std::move(chunk));
    waiting_.clear();
}

}  // namespace petacq::gpu
