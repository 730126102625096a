// Ordering of singles by (time, crystal, energy) on the CPU.
//
// Converted singles are nearly ordered: they come from several streams, each in its own order. The bins of
// the chunks that they come in are joined to bins of about a thousand singles, small enough for the L1 cache.
// Each of these is distributed over finer bins of about one single, and an insertion sort finishes. The cost
// is linear for singles spread over time, and n log n where many singles share a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "gpu/base/records.hpp"
#include "gpu/cpu/chunk.hpp"
#include "gpu/cpu/single_buffer.hpp"

namespace petacq::gpu {

/// Part of the singles of a bin.
struct BinPart {
    std::span<const Single> singles;
    std::uint32_t next = 0;  ///< part of the same bin
};

/// Keeps the singles that wait for the watermark, and puts those below it in order, slice by slice:
/// start, refit for each misfit, plan, sort for each group, finish. refit and sort may run concurrently with
/// calls of the same function.
class Orderer {
  public:
    explicit Orderer(ChunkStore& store) : store_(store) {}

    /// Takes the chunks of a slice. The slice will get all singles below `limit`, or without a limit all.
    void start(std::vector<std::unique_ptr<Chunk>>& chunks, std::optional<std::uint64_t> limit);

    /// Chunks with bins too wide for the slice: a single of theirs is far from the others.
    [[nodiscard]] std::size_t misfits() const { return misfits_.size(); }
    void refit(std::size_t misfit);

    /// Divides the work into groups of bins, each some thousand singles.
    void plan();
    [[nodiscard]] std::size_t groups() const { return group_ends_.size(); }
    /// The number of singles that the slice gets.
    [[nodiscard]] std::size_t size() const { return size_; }
    /// Writes the singles of a group, in order, to their place in `target`, which has room for size().
    void sort(std::size_t group, Single* target) const;

    /// Forgets what the slice got.
    void finish();
    /// Forgets all singles.
    void reset();

    /// The bin width that suited the latest slice: the one for new chunks. Any thread may read it.
    [[nodiscard]] unsigned bin_width() const { return bin_width_.load(std::memory_order_relaxed); }

  private:
    struct Bin {
        std::uint32_t parts = 0;  // the first of them
        std::uint32_t size = 0;
        std::size_t place = 0;  // in the target
    };
    void choose_width();
    void add_parts(const Chunk& chunk);
    void pack();
    void keep_packed();

    ChunkStore& store_;
    std::vector<std::unique_ptr<Chunk>> waiting_;  // nothing in them is for the present slice
    std::vector<std::unique_ptr<Chunk>> used_;     // has singles for it
    std::vector<Chunk*> misfits_;
    std::vector<std::unique_ptr<Chunk>> rests_;  // [misfit] what is not for the slice; may be nullptr
    std::uint64_t last_ = 0;                     // newest time that is for the slice
    std::atomic<unsigned> bin_width_{0};

    unsigned width_ = 0;           // of the bins of the slice
    std::uint64_t first_bin_ = 0;  // as in Chunk
    std::vector<Bin> bins_;
    std::vector<BinPart> parts_;  // the first one means: no more
    std::vector<std::size_t> group_ends_;
    std::size_t size_ = 0;
    SingleBuffer packed_;
};

/// Sorts the singles of a list of parts, `n` in all, into `target`. All times lie in [low, low + 2^width).
void sort_bin(const BinPart* parts, std::uint32_t first, std::size_t n, std::uint64_t low, unsigned width,
              Single* target);

}  // namespace petacq::gpu
