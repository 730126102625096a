// When the gammas of the run in progress came, from their pairs: the live histogram of triples over time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "config/configuration.hpp"
#include "gpu/base/records.hpp"

namespace petacq::sinogram {

/// Counts the triples of prompts. Not thread-safe.
class GammaTimes {
  public:
    static constexpr std::uint64_t most_bins = 100;

    /// The bins cover the times at which `gammas` looks for a gamma.
    explicit GammaTimes(const config::Gammas& gammas);

    void add(std::span<const gpu::Triple> triples);
    void clear();

    /// Ticks after the pair at which the first bin begins.
    [[nodiscard]] std::int64_t first_ticks() const { return -static_cast<std::int64_t>(before_ticks_); }
    /// Ticks in a bin; the last one may reach beyond the window.
    [[nodiscard]] std::uint64_t bin_ticks() const { return bin_ticks_; }
    /// Coincident triples by the time of their gamma after the pair.
    [[nodiscard]] const std::vector<std::uint64_t>& triples() const { return triples_; }
    /// Delayed triples by the same time, less the delay of the gammas.
    [[nodiscard]] const std::vector<std::uint64_t>& delayed() const { return delayed_; }

  private:
    const std::uint64_t before_ticks_;
    const std::uint64_t bin_ticks_;
    std::vector<std::uint64_t> triples_;
    std::vector<std::uint64_t> delayed_;
};

}  // namespace petacq::sinogram
