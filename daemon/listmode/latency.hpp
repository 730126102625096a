// How long data take from their arrival to the disk: a histogram.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace petacq::daemon {

/// Counts times in buckets whose width grows with the time (log-linear, like HDR histograms). It needs fixed
/// memory and gives any quantile to within 1/64 of its value, or half a microsecond below 64 us. One thread
/// at a time.
class LatencyHistogram {
  public:
    void record(std::int64_t ns);  ///< negative counts as 0
    void clear() { *this = {}; }

    [[nodiscard]] std::uint64_t samples() const { return samples_; }
    [[nodiscard]] std::int64_t max_ns() const { return max_ns_; }

    /// The value that the fraction `q` of all samples in all histograms does not exceed. 0 without samples.
    static std::int64_t quantile_ns(std::span<const LatencyHistogram* const> histograms, double q);
    [[nodiscard]] std::int64_t quantile_ns(double q) const {
        const std::array one{this};
        return quantile_ns(one, q);
    }

  private:
    // One bucket per microsecond up to 2^linear_bits us, then half as many per octave.
    static constexpr unsigned linear_bits = 6;
    static constexpr unsigned top_bit = 32;  // 2^32 us = 71 min; the last bucket counts longer times
    static constexpr std::size_t linear = std::size_t{1} << linear_bits;
    static constexpr std::size_t buckets = linear + (top_bit - linear_bits) * (linear / 2);
    static std::size_t bucket_of(std::uint64_t us);
    static std::int64_t middle_ns(std::size_t bucket);

    std::array<std::uint64_t, buckets> counts_{};
    std::uint64_t samples_ = 0;
    std::int64_t max_ns_ = 0;
};

struct LatencySummary {
    std::uint64_t samples = 0;
    double p50_ms = 0;  ///< this and the next two: meaningless without samples
    double p99_ms = 0;
    double max_ms = 0;
};

/// The samples of the last 30 to 60 seconds. One thread at a time.
class RecentLatency {
  public:
    static constexpr std::int64_t half_ns = 30'000'000'000;

    /// `now_ns`, here and below, is host time and never decreases.
    void record(std::int64_t latency_ns, std::int64_t now_ns);
    [[nodiscard]] LatencySummary summary(std::int64_t now_ns) const;

  private:
    std::array<LatencyHistogram, 2> halves_;
    std::size_t current_ = 0;
    std::optional<std::int64_t> started_ns_;  ///< start of the current half
};

}  // namespace petacq::daemon
