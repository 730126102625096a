// Crystal efficiencies and geometric factors from the coincidences of a known cylinder.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "tools/petcal/estimate/pairs/efficiencies.hpp"
#include "tools/petcal/estimate/pairs/scan_model.hpp"

namespace petacq::estimate {

/// Net coincidences on the lines that count, summed as PairSums.
class LineCounts {
  public:
    /// The model must outlive it.
    explicit LineCounts(const ScanModel& model);
    /// A pair that counts: ScanModel::counts.
    void add(std::uint32_t a, std::uint32_t b, double count, double variance);
    /// Brings the sums into the shape of PairSums. Must be called once, after the last add().
    void finish();

    NetCounts crystals;    ///< as PairSums::fans
    NetCounts transaxial;  ///< and so on
    NetCounts axial;
    NetCounts parts;
    double total = 0;

  private:
    const ScanModel& model_;
};

struct NormalisationFit {
    Efficiencies crystals;
    GeometricFactors factors;
    /// Factors of pairs that the scan accepts, and those of them without a line that counts: see
    /// fit_normalisation.
    struct Classes {
        std::uint32_t all = 0;
        std::uint32_t unseen = 0;
    };
    Classes transaxial;
    Classes axial;                ///< of a ring: pairs of rings, of either order
    double error_transaxial = 0;  ///< median relative standard error by counts, before shrinking
    double error_axial = 0;
    /// Per pair of parts (ScanModel::part_of) with at least 20 expected coincidences.
    double chi_square = 0;
    /// rms deviation of a pair of parts from the model beyond that by counts, relative.
    double excess = 0;
    /// How much more the crystals at +x, +y and +z detect than those opposite, relative: 0 unless the source
    /// was elsewhere, or the scanner is one-sided.
    double one_sided[3] = {};  // NOLINT(modernize-avoid-c-arrays)
};

struct NormalisationFitOptions {
    EfficiencyOptions efficiencies;
    std::uint32_t rounds = 3;
    unsigned threads = 1;
    std::function<void()> progress;  ///< called for each pass over the pairs
};

/// Turns of maximum likelihood for the efficiencies and for each kind of factor, whose condition is that the
/// expected coincidences of a class are the measured ones (the component-based normalisation of Casey and
/// Hoffman 1996, fitted as in STIR's find_ML_normfactors3D).
///
/// A class and its mirror image share a factor, that of a scanner whose design is symmetric; crystals may
/// differ. Factors are drawn towards 1 as far as their scatter is that of the counts (James and Stein 1961).
/// Efficiencies and factors cannot tell a pattern that repeats in all modules or all along the ring: it goes
/// to the factors, so that efficiencies have a mean of 1 in each column of the modules and in each ring, or
/// row of a type of module. A
/// class without lines has the product of these patterns.
///
/// Throws as crystal_efficiencies does.
NormalisationFit fit_normalisation(const ScanModel& model, const LineCounts& counts,
                                   const NormalisationFitOptions& options);

}  // namespace petacq::estimate
