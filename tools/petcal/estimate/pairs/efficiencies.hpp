// Crystal efficiencies from the coincidences of a known source.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace petacq::estimate {

/// Of each crystal, over all pairs in which it takes part; or of classes of pairs.
struct NetCounts {
    std::vector<double> net;       ///< prompts less randoms; may be below 0
    std::vector<double> variance;  ///< of net; prompts plus the squares of the weights of the delayeds

    void add(std::size_t at, double count, double its_variance) {
        net[at] += count;
        variance[at] += its_variance;
    }
};

/// The expected coincidences: sums[i] = sum over j of g_ij weights[j], with g_ij that of two crystals of
/// efficiency 1, of any common unit. FanModel::sums gives them.
using FanSums = std::function<void(std::span<const double> weights, std::span<double> sums)>;

struct EfficiencyOptions {
    double dead_below = 0.2;  ///< of the median efficiency
    double min_counts = 100;  ///< median over the crystals; with fewer the data are refused
    std::uint32_t max_steps = 60;
    std::vector<double> start;  ///< [crystal] what to begin with, of any common unit; empty: all the same
};

struct Efficiencies {
    std::vector<double> efficiency;  ///< [crystal] mean 1 over those that are seen and not dead
    std::vector<double> error;  ///< [crystal] relative standard error, statistical; infinite without counts
    std::vector<std::uint32_t> dead;    ///< below dead_below; their estimate is kept
    std::vector<std::uint32_t> unseen;  ///< no line through one meets the source: efficiency 1, unknown
    double median_counts = 0;           ///< of the crystals that are seen
    double lowest_counts = 0;           ///< of these, without the dead ones
    std::uint32_t steps = 0;
};

/// Maximum likelihood for counts n_ij = Poisson(e_i e_j g_ij): sums over the fan of a crystal are all that it
/// needs, and its condition is e_i = N_i / sum_j g_ij e_j. Each step goes two thirds of the way there, in the
/// logarithm, which damps the common factor (whole steps would swing around it for ever). Steps are mixed
/// (anderson_mixing.hpp), since a pattern that is high at phi and low at phi + pi takes many steps in a
/// scanner that is much wider than the source. Derived here from the derivative of the likelihood by e_i;
/// STIR's find_ML_normfactors3D does the same.
///
/// Crystals are compared with the median of the scanner, not with their neighbours, so that a dead detector
/// unit is found as well. A dead crystal still has the events that its neighbours lose to its place: about a
/// tenth of the median where the sigma of spots is a quarter of their distance. A source that joins only
/// opposite crystals (a line on the axis) cannot fix a pattern that is high at phi and low at phi + pi; a
/// wide cylinder can.
///
/// Throws config::Error when the data are insufficient (too few counts, no solution after max_steps),
/// std::invalid_argument when sizes differ.
Efficiencies crystal_efficiencies(const NetCounts& counts, const FanSums& fan_sums,
                                  const EfficiencyOptions& options = {});

}  // namespace petacq::estimate
