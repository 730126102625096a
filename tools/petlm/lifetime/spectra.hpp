// The lifetime spectra of regions, from the triples of a run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "config/configuration.hpp"
#include "config/scanner/depth_of_interaction.hpp"
#include "config/scanner/scanner.hpp"
#include "gpu/base/records.hpp"
#include "tools/petlm/lifetime/places.hpp"
#include "tools/petlm/lifetime/spectrum.hpp"

namespace petacq::lifetime {

/// The lifetime of a triple is the mean of both times of the pair less half the flight along its line, less
/// the time of the gamma less its flight from the place of the annihilation. Not thread-safe.
class Spectra {
  public:
    /// `places` must outlive it.
    Spectra(const config::Scanner& scanner, const config::DepthOfInteraction& depth,
            const config::Gammas& gammas, Places& places, std::size_t regions);

    /// `weight`: of a delayed. `radians`: by which the scanner has turned.
    void add(const gpu::Triple& triple, double weight, double radians);

    struct OfRegion {
        Spectrum spectrum;
        double triples = 0;     ///< of prompts and coincident gammas, within the times of the spectrum
        double mean_share = 0;  ///< of the activity on their lines that lies in the region
    };
    /// Of the times at which every triple could have been found. Throws petlm::BadInput when there are none.
    [[nodiscard]] std::vector<OfRegion> result() const;
    /// Prompts with coincident gammas on whose lines no region has its share of the activity.
    [[nodiscard]] std::uint64_t elsewhere() const { return elsewhere_; }

  private:
    struct Counts {
        Spectrum all;                         ///< of all times
        std::vector<double> randoms_delayed;  ///< [bin] of delayeds with delayed gammas
        double shares = 0;
        double triples = 0;
    };
    void fill(std::vector<double>& bins, double ns, double weight) const;

    const config::Gammas& gammas_;
    Places& places_;
    config::LineGeometry geometry_;
    double tick_ns_;
    std::vector<Counts> counts_;  ///< [region]
    double earliest_ns_ = 0;      ///< what geometry adds at least to the time difference of a prompt
    double latest_ns_ = 0;        ///< and at most
    bool any_ = false;
    std::uint64_t elsewhere_ = 0;
};

}  // namespace petacq::lifetime
