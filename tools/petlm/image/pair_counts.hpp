// How many prompts each pair of crystals has, in bounded memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gpu/host/worker_pool.hpp"
#include "gpu/types.hpp"
#include "tools/petlm/image/grid.hpp"

namespace petacq::image {

/// Unique pairs, in order of (a, b), with their counts. When more pairs occur than fit, every second one is
/// left out, then every second one of those: which ones, a hash of the two crystals decides, so that what is
/// left is a fair sample of all lines, with all of their counts. One caller at a time.
class PairCounts {
  public:
    /// Room for `capacity` pairs (at least 1024) of a scanner with that many crystals.
    PairCounts(std::uint32_t crystals, std::size_t capacity, gpu::WorkerPool& pool);

    /// Delayeds are passed over, and so are pairs of a crystal with itself.
    void add(std::span<const gpu::Coincidence> records);
    /// To be called once, after the last add().
    void finish();

    [[nodiscard]] const std::vector<Pair>& pairs() const { return pairs_; }
    [[nodiscard]] const std::vector<std::uint32_t>& counts() const { return counts_; }
    /// The share of all pairs that were let in: 1, 1/2, 1/4, ...
    [[nodiscard]] double share() const { return 1.0 / static_cast<double>(one_in_); }
    /// Prompts in counts().
    [[nodiscard]] std::uint64_t prompts() const { return prompts_; }

    /// Bytes per pair of the capacity while pairs are being added.
    static constexpr std::uint64_t bytes_per_pair = 32;

  private:
    [[nodiscard]] bool kept(Pair pair) const;
    void take_in();
    void sort_keys();
    void halve();

    std::uint64_t crystals_;
    std::size_t capacity_;
    std::size_t most_keys_;
    gpu::WorkerPool& pool_;
    std::uint64_t one_in_ = 1;  // a power of two
    std::vector<std::uint64_t> keys_;
    std::vector<Pair> pairs_;
    std::vector<std::uint32_t> counts_;
    std::uint64_t prompts_ = 0;
};

}  // namespace petacq::image
