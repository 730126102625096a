#include "gpu/cpu/chunk.hpp"

#include <bit>
#include <utility>

namespace petacq::gpu {

void Chunk::fill(std::span<const Single> singles, unsigned min_width, unsigned max_bits) {
    TimeRange range;
    range.include(singles);
    low_ = range.low;
    high_ = range.high;
    const auto bits = static_cast<unsigned>(std::bit_width(high_ - low_));
    width_ = std::max(min_width, bits > max_bits ? bits - max_bits : 0U);
    first_bin_ = low_ >> width_;
    ends_.assign(bin_of(high_) + 1, 0);
    std::uint32_t* const ends = ends_.data();
    // A single is mostly in the bin of the one before, so the count of that bin stays in a register.
    std::size_t bin = 0;
    std::uint32_t end = 0;
    for (const Single& s : singles) {
        const std::size_t next = bin_of(s.time);
        if (next != bin) {
            ends[std::exchange(bin, next)] = end;
            end = ends[bin];
        }
        ++end;
    }
    ends[bin] = end;
    std::uint32_t sum = 0;
    for (std::uint32_t& e : ends_)
        sum += std::exchange(e, sum);
    singles_.reserve(max_singles);
    singles_.resize(singles.size());
    Single* const to = singles_.data();
    bin = 0;
    end = ends[bin];
    for (const Single& s : singles) {
        const std::size_t next = bin_of(s.time);
        if (next != bin) {
            ends[std::exchange(bin, next)] = end;
            end = ends[bin];
        }
        to[end++] = s;
    }
    ends[bin] = end;
    begin_ = 0;
    split_ = 0;
}

void Chunk::split(std::uint64_t last) {
    if (high_ <= last) {
        split_ = singles_.size();
        return;
    }
    const std::size_t bin = bin_of(last);
    const std::size_t start = bin == 0 ? 0 : ends_[bin - 1];
    Single* const from = singles_.data() + std::max(begin_, start);
    Single* const to = singles_.data() + ends_[bin];
    Single* const middle = std::partition(from, to, [=](const Single& s) { return s.time <= last; });
    split_ = static_cast<std::size_t>(middle - singles_.data());
}

void Chunk::drop_early() {
    begin_ = split_;
    if (size() == 0) return;
    const auto bin = std::upper_bound(ends_.begin(), ends_.end(), begin_);
    TimeRange oldest;
    oldest.include(singles_.view().subspan(begin_, *bin - begin_));
    low_ = oldest.low;
}

}  // namespace petacq::gpu
