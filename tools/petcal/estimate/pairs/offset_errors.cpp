#include "tools/petcal/estimate/pairs/offset_errors.hpp"

#include <random>

namespace petacq::estimate {

namespace {

constexpr int trials = 24;
constexpr int max_trial_steps = 300;
constexpr double trial_settled = 1e-4;  // of a residual; patterns that are nearly free come late

using TrialTable = CrystalValues<trials>;

/// Random signs: those of 64 bits, of which each pair uses one for each trial.
TrialTable random_pulls(Eigen::Index crystals, std::span<const TimeDifference> pairs,
                        std::span<const float> pulls) {
    std::mt19937_64 random(1);
    TrialTable out = TrialTable::Zero(crystals, trials);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        std::uint64_t signs = random();
        Eigen::Array<double, 1, trials> pull;
        for (int k = 0; k < trials; ++k, signs >>= 1)
            pull[k] = (signs & 1) != 0 ? pulls[i] : -pulls[i];
        out.row(pairs[i].b) += pull;
        out.row(pairs[i].a) -= pull;
    }
    return out;
}

/// Takes the mean of its group from each.
void centre_trials(TrialTable& x, std::span<const std::uint32_t> groups) {
    TrialTable means = TrialTable::Zero(x.rows(), trials);
    Eigen::ArrayXd sizes = Eigen::ArrayXd::Zero(x.rows());
    for (Eigen::Index k = 0; k < x.rows(); ++k) {
        means.row(groups[static_cast<std::size_t>(k)]) += x.row(k);
        sizes[groups[static_cast<std::size_t>(k)]] += 1;
    }
    means.colwise() /= sizes.max(1);
    for (Eigen::Index k = 0; k < x.rows(); ++k)
        x.row(k) -= means.row(groups[static_cast<std::size_t>(k)]);
}

}  // namespace

std::vector<double> shared_variance(const PairEquations& equations, std::span<const TimeDifference> pairs,
                                    std::span<const float> pulls, std::span<const std::uint32_t> groups) {
    const Eigen::ArrayXd inverse = equations.inverse_diagonal();
    const TrialTable right = random_pulls(inverse.size(), pairs, pulls);
    TrialTable wrong = equations.solve<trials>(right, trial_settled, max_trial_steps);
    centre_trials(wrong, groups);
    const TrialTable by_own = right.colwise() * inverse;
    const Eigen::ArrayXd shared = (wrong.square() - by_own.square()).rowwise().mean();
    return {shared.begin(), shared.end()};
}

}  // namespace petacq::estimate
