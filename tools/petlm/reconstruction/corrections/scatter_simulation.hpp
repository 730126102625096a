// The pairs of which a photon has scattered in an object, once or more often, for each pair of crystals.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "config/choices.hpp"
#include "config/scanner/scanner.hpp"
#include "net/base/worker_pool.hpp"
#include "tools/petlm/reconstruction/corrections/attenuation.hpp"
#include "tools/petlm/reconstruction/corrections/crystal_hits.hpp"
#include "tools/petlm/reconstruction/corrections/energy_window.hpp"
#include "tools/petlm/reconstruction/corrections/scatter_nodes.hpp"
#include "tools/petlm/reconstruction/projector/grid.hpp"

namespace petacq::corrections {

/// A value of a pair of crystals.
using OfPair = std::function<double(std::uint32_t a, std::uint32_t b)>;

/// Where photons come from.
struct Activity {
    image::Grid grid;
    std::vector<float> of_voxel;  ///< annihilations, in any unit
};

/// The angles at which a scanner is that turns, and the share of the annihilations at each; one of a scanner
/// that stands still.
struct AnglesInTime {
    std::vector<double> radians = {0};
    std::vector<double> shares = {1};
};

/// The share of the good pairs that the policy takes where a photon leaves a third hit.
double taken_of_three(config::MultiplesPolicy policy);

/// What the crystals detect. Crystals have the numbers of LineFactors.
struct Detection {
    AnglesInTime angles;
    EnergyWindow window;
    CrystalModel crystals;
    /// Chance that a pair which the crystals absorb is found, relative to that of others; 0: never.
    OfPair found;
    /// Of an annihilation with more than two hits.
    config::MultiplesPolicy multiples = config::MultiplesPolicy::remove_multiples;
    /// Pairs that did not scatter in the object are counted in so many bins. A pair belongs to bin_of().
    std::size_t bins = 0;
    std::function<std::size_t(std::uint32_t a, std::uint32_t b)> bin_of{};
};

/// How well counts() of some pairs should be known. What divides by it, or by it and more, as EM does, is
/// wrong on average where it is known badly, and not just uncertain.
struct ScatterPrecision {
    std::span<const image::Pair> pairs = {};  ///< empty: as the annihilations give it
    double variance = 0;                      ///< of counts(), relative to their square
    std::size_t most_annihilations = 0;
};

/// A Monte Carlo simulation. Annihilations are spread over the activity; in a voxel that the object fills in
/// part, over this part. In each of them one photon is made to scatter in the object, with the weight that
/// this has; after that both fly on as photons do, and may scatter more often (Compton scatter on free
/// electrons: petsim/physics/compton.hpp). They are absorbed in the crystals by their path and energy, and
/// count with the chance that the energy window accepts them. The same annihilations without the scatter are
/// the true pairs: the ratio of both is what an estimate needs, as it is the same whatever the sensitivity.
/// The pairs are counted at nodes, between which counts() interpolates (NodePairs).
/// Where the scanner turns, each annihilation has an angle, as often as its share says, and nodes turn with
/// the scanner. Thread-safe once made, and the same for any number of threads.
class ScatterSimulation {
  public:
    struct Sums {
        double scattered = 0;
        double trues = 0;
        double low = 0;

        Sums& operator+=(const Sums& other) {
            scattered += other.scattered;
            trues += other.trues;
            low += other.low;
            return *this;
        }
    };

    ScatterSimulation(const config::Scanner& scanner, const AttenuatingObject& object,
                      const Activity& activity, const Detection& detection, std::size_t annihilations,
                      net::WorkerPool& pool, const ScatterPrecision& precision = {});

    /// Scattered pairs that the crystals absorb and the window accepts, in the unit of scattered() and
    /// trues(), at all angles together. The order of the crystals does not matter.
    [[nodiscard]] double counts(std::uint32_t a, std::uint32_t b) const {
        return pairs_.counts(a % pairs_.crystals(), b % pairs_.crystals());
    }
    /// The sum over all pairs of counts() times found().
    [[nodiscard]] double scattered() const { return sums_.scattered; }
    /// Pairs that did not scatter in the object, likewise.
    [[nodiscard]] double trues() const { return sums_.trues; }
    /// The same by bin.
    [[nodiscard]] const std::vector<double>& unscattered() const { return unscattered_; }
    /// The variance of counts() of the pairs of `precision`, relative to their square; infinite: unknown.
    [[nodiscard]] double variance() const { return variance_; }
    /// The share of both that EnergyWindow::low_share is of the prompts.
    [[nodiscard]] double low_share() const { return sums_.low / (sums_.trues + sums_.scattered); }

  private:
    NodePairs pairs_;
    std::vector<double> unscattered_;
    Sums sums_;
    double variance_ = std::numeric_limits<double>::infinity();
};

/// Where photons fly into the crystals (CrystalModel::deep) and the window knows the share of low energies,
/// the energies tell whether photons scatter there: that of both ways whose share is nearer. Else they do.
bool scatters_in_crystals(const config::Scanner& scanner, const AttenuatingObject& object,
                          const Activity& activity, Detection detection, std::size_t annihilations,
                          net::WorkerPool& pool);

}  // namespace petacq::corrections
