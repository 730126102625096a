// The scatter of a run, from its own records.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "config/scanner/scanner.hpp"
#include "gpu/rules/pair_rule.hpp"
#include "net/base/worker_pool.hpp"
#include "tools/petlm/reconstruction/corrections/energy_window.hpp"
#include "tools/petlm/reconstruction/corrections/line_factors.hpp"
#include "tools/petlm/reconstruction/corrections/scatter_simulation.hpp"
#include "tools/petlm/reconstruction/corrections/scatter_tails.hpp"
#include "tools/petlm/reconstruction/em/pair_counts.hpp"

namespace petacq::image {

/// What is known of the lines of a run. All must outlive the estimate.
struct ScatterData {
    const config::Scanner& scanner;
    const gpu::PairRule& rule;
    const corrections::LineFactors& lines;  ///< with an object
    /// Of a scanner that turns, those of the lines.
    corrections::AnglesInTime angles;
    /// Chance that a pair towards the two crystals is found, while they are at this angle; 0: dead.
    corrections::OfPair found;
    corrections::OfPair randoms;  ///< expected among the prompts
    const PairCounts& pairs;
    corrections::EnergyWindow window;
    config::MultiplesPolicy multiples = config::MultiplesPolicy::remove_multiples;
};

/// A coarse image of the whole bore, with voxels of 3 to 4 mm, or a hundredth of a wide bore, gives the
/// activity. Beyond the ends of the scanner, and in its outermost planes, where it sees little, the activity
/// goes on as it is there, as far as the object does. A simulation (corrections::ScatterSimulation) tells how
/// many scattered pairs there are for each true one, and on which lines. The image is then made again with
/// this scatter in its model, and so is the simulation. Where the scanner turns, the scatter of two crystals
/// is its mean over all angles. The lines that miss the object tell whether it is right
/// (corrections::ScatterTails). Deterministic, also with other numbers of threads. Thread-safe once made.
class Scatter {
  public:
    Scatter(ScatterData data, net::WorkerPool& pool);

    /// Expected among the prompts of the pair in the run.
    [[nodiscard]] double counts(std::uint32_t a, std::uint32_t b) const {
        return scale_.factor * unscaled(a, b);
    }
    /// Of all pairs.
    [[nodiscard]] double total() const { return total_; }
    [[nodiscard]] double share_of_prompts() const;
    /// By which the tails multiply the simulation.
    [[nodiscard]] const corrections::ScatterTails::Scale& scale() const { return scale_; }
    [[nodiscard]] const corrections::EnergyWindow& window() const { return data_.window; }
    [[nodiscard]] const corrections::CrystalModel& crystals() const { return crystals_; }
    /// A sentence for the user.
    [[nodiscard]] std::string sentence() const;

  private:
    [[nodiscard]] double unscaled(std::uint32_t a, std::uint32_t b) const {
        return per_simulated_ * share(a) * found(a, b) * simulation_->counts(a, b);
    }
    /// Of the decays, at the angle of the crystal.
    [[nodiscard]] double share(std::uint32_t a) const {
        return data_.angles.shares[a / data_.lines.crystals()];
    }
    /// The chance of a pair that reaches the two crystals, whatever the way of its photons. The factors of
    /// the normalisation by place belong to pairs that fly along the line.
    [[nodiscard]] double found(std::uint32_t a, std::uint32_t b) const;
    /// The chance that a pair of a line through the object is found, times the share of decays at its angle.
    [[nodiscard]] double found_of_line(Pair pair) const;
    /// Of the coarse image; 0 where there is no object.
    [[nodiscard]] std::vector<float> sensitivity(net::WorkerPool& pool) const;
    [[nodiscard]] corrections::Activity activity(const std::vector<float>& sensitive,
                                                 net::WorkerPool& pool) const;

    ScatterData data_;
    std::unique_ptr<corrections::ScatterSimulation> simulation_;
    corrections::CrystalModel crystals_;
    double per_simulated_ = 0;  ///< pairs of the run for each one of the simulation
    corrections::ScatterTails::Scale scale_;
    double total_ = 0;
};

}  // namespace petacq::image
