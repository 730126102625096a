// When the gammas of a run came, from their pairs, and their energies: histograms of its triples.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "config/configuration.hpp"
#include "gpu/base/records.hpp"

namespace petacq::sinogram {

/// Counts the triples of prompts. Not thread-safe.
class GammaHistograms {
  public:
    static constexpr double most_bins = 100;

    struct Histogram {
        double from = 0;                     ///< where the first bin begins
        double to = 0;                       ///< the last value that is counted
        double bin = 1;                      ///< width of a bin, whole ticks or keV
        std::vector<std::uint64_t> triples;  ///< with a coincident gamma
        std::vector<std::uint64_t> delayed;  ///< with a delayed gamma
    };

    /// `gammas`: the rules of the triples.
    explicit GammaHistograms(const config::Gammas& gammas);

    void add(std::span<const gpu::Triple> triples);
    void clear();

    /// Ticks from the gamma to the middle between the singles of its pair, for a delayed gamma less the
    /// delay: the lifetime of the positron, but for the ways of the photons. Positive if the gamma came
    /// first. Times beyond those at which gammas are looked for, as some pairs have them, are left out.
    [[nodiscard]] const Histogram& times() const { return times_; }
    /// keV.
    [[nodiscard]] const Histogram& energies() const { return energies_; }

  private:
    Histogram times_;
    Histogram energies_;
};

}  // namespace petacq::sinogram
