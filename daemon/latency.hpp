// How long data takes from its arrival to the disk: which arrivals still wait, and a histogram of how long
// the others took.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace petacq::daemon {

/// Counts times in buckets whose width grows with the time (log-linear, as HDR histograms are): fixed memory,
/// any quantile to within 1/64 of its value, or half a microsecond below 64 us. No thread-safety.
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
    // Up to 2^linear_bits us one bucket a microsecond, then half as many an octave.
    static constexpr unsigned linear_bits = 6;
    static constexpr unsigned top_bit = 32;  // 2^32 us = 71 min; longer ones are in the last bucket
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
    double p50_ms = 0;  ///< these mean nothing without samples
    double p99_ms = 0;
    double max_ms = 0;
};

/// The samples of the last half to whole minute. No thread-safety.
class RecentLatency {
  public:
    static constexpr std::int64_t half_ns = 30'000'000'000;

    /// Host time `now_ns` does not go back.
    void record(std::int64_t latency_ns, std::int64_t now_ns);
    [[nodiscard]] LatencySummary summary(std::int64_t now_ns) const;

  private:
    std::array<LatencyHistogram, 2> halves_;
    std::size_t current_ = 0;
    std::optional<std::int64_t> began_ns_;  ///< of the current half
};

/// Arrivals of data whose coincidences are not all decided. No allocation after the first take_decided; no
/// thread-safety.
class UndecidedArrivals {
  public:
    /// More than wait at a time are not followed, nor more than one in `apart_ns`.
    static constexpr std::size_t capacity = 256;
    static constexpr std::int64_t apart_ns = 1'000'000;

    /// Data that arrived at `arrival_ns` of the host's clock and holds nothing newer than `newest_time`.
    void add(std::int64_t arrival_ns, std::uint64_t newest_time);
    /// Takes out all that is older than `time`: `out` is their arrivals, in no order.
    void take_decided(std::uint64_t time, std::vector<std::int64_t>& out);
    void clear() { count_ = 0; }

  private:
    struct Arrival {
        std::int64_t ns = 0;
        std::uint64_t newest_time = 0;
    };
    std::array<Arrival, capacity> waiting_;
    std::size_t count_ = 0;
    std::optional<std::int64_t> latest_ns_;
};

}  // namespace petacq::daemon
