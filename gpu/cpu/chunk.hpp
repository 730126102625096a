// Singles that were converted together, grouped by time as soon as they leave the conversion.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gpu/base/records.hpp"
#include "gpu/cpu/single_buffer.hpp"
#include "net/base/mutex.hpp"

namespace petacq::gpu {

/// Singles in bins of 2^width ticks. The edges of bins are multiples of 2^width, so the bins of a chunk are
/// parts of the bins of any chunk with a larger width. Within a bin there is no order. Singles leave a chunk
/// from the oldest on.
class Chunk {
  public:
    /// Most singles, so that a chunk stays in the L2 cache until it is grouped.
    static constexpr std::size_t max_singles = 8192;

    /// Replaces the contents by `singles`, at least one, which lie elsewhere. The width is at least
    /// `min_width`, and larger if that would make more than about 2^max_bits bins.
    void fill(std::span<const Single> singles, unsigned min_width, unsigned max_bits = 10);

    [[nodiscard]] std::size_t size() const { return singles_.size() - begin_; }
    [[nodiscard]] std::uint64_t low() const { return low_; }
    [[nodiscard]] std::uint64_t high() const { return high_; }
    [[nodiscard]] unsigned width() const { return width_; }
    [[nodiscard]] std::span<const Single> view() const { return singles_.view().subspan(begin_); }

    /// Moves the singles up to and including the time `last` before the others. REQUIRES: low() <= last.
    void split(std::uint64_t last);
    /// After split(): the singles up to `last`, and the others.
    [[nodiscard]] std::span<const Single> early() const {
        return singles_.view().subspan(begin_, split_ - begin_);
    }
    [[nodiscard]] std::span<const Single> rest() const { return singles_.view().subspan(split_); }
    /// Calls visit(bin, singles) for the early singles, one or more times for each bin of 2^width ticks that
    /// has any. REQUIRES: width() <= width < 64.
    template <class Visit>
    void for_each_early(unsigned width, Visit visit) const;
    /// Removes the early singles.
    void drop_early();

  private:
    [[nodiscard]] std::size_t bin_of(std::uint64_t time) const { return (time >> width_) - first_bin_; }

    SingleBuffer singles_;
    std::vector<std::uint32_t> ends_;  // [bin]
    std::uint64_t first_bin_ = 0;      // the time of its lower edge, divided by 2^width
    unsigned width_ = 0;
    std::uint64_t low_ = 0;  // oldest and newest time of the singles left
    std::uint64_t high_ = 0;
    std::size_t begin_ = 0;  // the first single that is left
    std::size_t split_ = 0;
};

template <class Visit>
void Chunk::for_each_early(unsigned width, Visit visit) const {
    const unsigned finer = width - width_;
    std::uint64_t bin = bin_of(low_);
    for (std::size_t from = begin_; from < split_;) {
        const std::uint64_t wide_bin = (first_bin_ + bin) >> finer;
        bin = ((wide_bin + 1) << finer) - first_bin_;  // the first one of the next wide bin
        const std::size_t to = bin < ends_.size() ? std::min<std::size_t>(split_, ends_[bin - 1]) : split_;
        if (to > from) visit(wide_bin, singles_.view().subspan(from, to - from));
        from = to;
    }
}

/// Empty chunks, kept for their memory. Any thread may use it.
class ChunkStore {
  public:
    std::unique_ptr<Chunk> take() {
        {
            const net::MutexLock lock(mutex_);
            if (!chunks_.empty()) {
                std::unique_ptr<Chunk> chunk = std::move(chunks_.back());
                chunks_.pop_back();
                return chunk;
            }
            ++made_;
        }
        return std::make_unique<Chunk>();
    }
    void give_back(std::unique_ptr<Chunk> chunk) {
        const net::MutexLock lock(mutex_);
        chunks_.push_back(std::move(chunk));
    }
    /// Chunks made so far, in use or empty.
    [[nodiscard]] std::size_t made() {
        const net::MutexLock lock(mutex_);
        return made_;
    }

  private:
    net::Mutex mutex_;
    std::vector<std::unique_ptr<Chunk>> chunks_ PETACQ_GUARDED_BY(mutex_);
    std::size_t made_ PETACQ_GUARDED_BY(mutex_) = 0;
};

}  // namespace petacq::gpu
