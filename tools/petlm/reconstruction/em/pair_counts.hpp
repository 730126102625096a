// Number of prompts of each pair of crystals, in bounded memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gpu/base/records.hpp"
#include "net/base/worker_pool.hpp"
#include "tools/petlm/reconstruction/projector/tof.hpp"

namespace petacq::image {

/// Prompts by pair or, with the time of flight, by pair and bin of it.
struct MeasuredPairs {
    std::span<const Pair> pairs;
    std::span<const std::uint32_t> counts;
    std::span<const std::int16_t> bins = {};  ///< empty without the time of flight
    TofBins tof = {};
};

/// Unique pairs (with the time of flight: pairs and bins) in the order (a, b, bin), with their counts. If
/// more occur than fit, half of the pairs are left out, then half of the rest, and so on. A hash of the two
/// crystals decides which, so that the remaining lines are a fair sample with complete counts. Not
/// thread-safe.
class PairCounts {
  public:
    /// Holds up to `capacity` pairs (at least 1024) of a scanner with `crystals` crystals.
    PairCounts(std::uint32_t crystals, std::size_t capacity, net::WorkerPool& pool, const TofBins& tof = {});

    /// Ignores delayeds and pairs of a crystal with itself.
    void add(std::span<const gpu::Coincidence> records);
    /// Must be called once, after the last add().
    void finish();
    /// The same without the time of flight, finished.
    [[nodiscard]] PairCounts without_tof() const;

    /// The counts of a run that records as many prompts on average, but others: each prompt of this one
    /// counts 0, 1, 2, ... times by the Poisson distribution with a mean of 1. The same seed gives the same,
    /// also for the first prompts of a pair if another has fewer. REQUIRES: finish() was called.
    [[nodiscard]] PairCounts resampled(std::uint64_t seed) const;

    [[nodiscard]] const std::vector<Pair>& pairs() const { return pairs_; }
    [[nodiscard]] const std::vector<std::uint32_t>& counts() const { return counts_; }
    [[nodiscard]] MeasuredPairs measured() const { return {pairs_, counts_, bins_, tof_}; }
    /// The share of all pairs that were kept: 1, 1/2, 1/4, ...
    [[nodiscard]] double share() const { return 1.0 / static_cast<double>(one_in_); }
    /// Sum of counts().
    [[nodiscard]] std::uint64_t prompts() const { return prompts_; }

    /// Bytes per pair of the capacity while pairs are being added.
    static constexpr std::uint64_t bytes_per_pair = 32;

  private:
    [[nodiscard]] bool kept(Pair pair) const;
    [[nodiscard]] std::uint64_t key_at(std::size_t i) const;
    void push(std::uint64_t key, std::uint32_t count);
    void merge_keys();
    void sort_keys();
    void halve();

    std::uint64_t crystals_;
    std::size_t capacity_;
    std::size_t max_keys_;
    net::WorkerPool& pool_;
    TofBins tof_;
    std::uint64_t one_in_ = 1;  // a power of two
    std::vector<std::uint64_t> keys_;
    std::vector<Pair> pairs_;
    std::vector<std::uint32_t> counts_;
    std::vector<std::int16_t> bins_;
    std::uint64_t prompts_ = 0;
};

}  // namespace petacq::image
