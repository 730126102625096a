// Pairs of an annihilation photon with a prompt gamma of its decay, of two gammas, or of one gamma in two
// units.
#pragma once

#include <cstdint>
#include <vector>

#include "net/base/worker_pool.hpp"
#include "tools/petlm/reconstruction/corrections/scatter_nodes.hpp"
#include "tools/petlm/reconstruction/corrections/scatter_simulation.hpp"
#include "tools/petlm/reconstruction/gammas/gamma_model.hpp"

namespace petacq::gammas {

/// Spurious pairs are in true coincidence, so that no delayed window shows them, and their lines have little
/// to do with the place of the decay. A Monte Carlo simulation of whole decays tells how many there are for
/// each pair of the two annihilation photons, and on which lines: gammas leave an energy of the window of the
/// pairs, or a part of their energy that lies in it. Decays without a positron make pairs of two gammas. The
/// pairs are counted at nodes (corrections::NodePairs); where the scanner turns, at all angles together. The
/// same for any number of threads. Thread-safe once made.
class SpuriousPairs {
  public:
    /// `activity`: of the nuclide. `efficiency`: as of GammaChance. `found`: chance that a pair which
    /// crystals of mean efficiency detect is found; 0: never, as of pairs that are not good. `prompts`: among
    /// which they are looked for; the more, the longer the simulation.
    SpuriousPairs(const GammaModel& model, const corrections::Activity& activity, double efficiency,
                  const corrections::OfPair& found, double prompts, net::WorkerPool& pool);

    /// Spurious pairs for each pair of the two annihilation photons that is found.
    [[nodiscard]] double per_pair() const { return pairs_ > 0 ? spurious_ / pairs_ : 0; }
    /// The relative standard error that the simulation gives per_pair(): that of a ratio of sums, by the
    /// differences of independent parts.
    [[nodiscard]] double relative_error() const { return relative_error_; }
    /// Pairs of both kinds that are found for each single in the window of the pairs.
    [[nodiscard]] double per_single() const { return singles_ > 0 ? (pairs_ + spurious_) / singles_ : 0; }
    [[nodiscard]] double efficiency() const { return efficiency_; }
    /// Sets the number of pairs of annihilation photons that counts() and total() are for.
    void scale_to(double pairs) { scale_ = pairs_ > 0 ? pairs / pairs_ : 0; }
    /// Spurious pairs that two crystals detect; times found(), the number among the prompts.
    [[nodiscard]] double counts(std::uint32_t a, std::uint32_t b) const { return scale_ * map_.counts(a, b); }
    /// Where some of the decays of the simulation are.
    [[nodiscard]] const std::vector<config::Vector3>& places() const { return places_; }
    /// Among all prompts.
    [[nodiscard]] double total() const { return scale_ * spurious_; }

  private:
    corrections::NodePairs map_;
    double efficiency_;
    double singles_ = 0;
    double pairs_ = 0;
    double spurious_ = 0;
    double relative_error_ = 0;
    double scale_ = 1;
    std::vector<config::Vector3> places_;
};

}  // namespace petacq::gammas
