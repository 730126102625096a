// How often the prompt gammas of a nuclide are found beside the pair of their decay, by its position.
#pragma once

#include <cstddef>
#include <vector>

#include "net/base/worker_pool.hpp"
#include "tools/petlm/reconstruction/corrections/scatter_simulation.hpp"
#include "tools/petlm/reconstruction/gammas/gamma_model.hpp"

namespace petacq::gammas {

/// A Monte Carlo simulation of gammas that start in the activity, scatter in the object, and leave their
/// energy or a part of it in the crystals. It is smooth in space: polynomials of the fourth degree in x, y
/// and z hold it, fitted where there is activity and, with the same weight, in the whole grid. Without
/// activity they may be 3 % wrong near the ends of the scanner. A gamma that is found in the detector unit of
/// a photon of its pair, one or two in a hundred in a scanner of 144 units, is one hit with it, which the
/// simulation does not know. The same for any number of threads. Thread-safe once made.
class GammaChance {
  public:
    /// `efficiency`: the chance that a photon which leaves energy in the crystals is found, over all
    /// crystals. `triples`: to which the chance is applied; the error of the simulation is well below that of
    /// counting so many, up to some 300,000. Without activity the whole grid counts.
    GammaChance(const GammaModel& model, const corrections::Activity& activity, double efficiency,
                double triples, net::WorkerPool& pool);

    /// Gammas for each pair that is found: with the policy all their mean number, otherwise the chance that
    /// one is kept. More than 0.
    [[nodiscard]] double seen(const config::Vector3& at) const;
    /// The chance that a pair is found although the gammas of its decay reach the crystals, too: one that
    /// leaves an energy of the window of the pairs makes a multiple. More than 0.
    [[nodiscard]] double kept(const config::Vector3& at) const;
    /// The mean of seen() over the pairs that are found.
    [[nodiscard]] double mean_seen() const { return mean_seen_; }
    [[nodiscard]] double mean_kept() const { return mean_kept_; }

  private:
    [[nodiscard]] double value(const std::vector<double>& factors, const config::Vector3& at,
                               double mean) const;

    config::Vector3 half_{};            ///< of the grid, mm
    std::vector<double> seen_factors_;  ///< [term], of seen times kept
    std::vector<double> kept_factors_;  ///< [term]
    double mean_seen_ = 0;
    double mean_kept_ = 1;
};

}  // namespace petacq::gammas
