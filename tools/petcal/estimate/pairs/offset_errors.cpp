#include "tools/petcal/estimate/pairs/offset_errors.hpp"

#include <Eigen/Core>
#include <random>

namespace petacq::estimate {

namespace {

constexpr int trials = 24;
constexpr int max_trial_steps = 300;
constexpr double trial_settled = 1e-4;  // of a residual; patterns that are nearly free come late

using TrialRow = Eigen::Array<double, 1, trials>;
/// [crystal][trial]
using TrialTable = Eigen::Array<double, Eigen::Dynamic, trials, Eigen::RowMajor>;

/// The normal equations times `x`.
TrialTable times_equations(std::span<const PairTerm> pairs, const TrialTable& x) {
    TrialTable out = TrialTable::Zero(x.rows(), trials);
    for (const PairTerm& p : pairs) {
        const TrialRow pull = double{p.weight} * (x.row(p.b) - x.row(p.a));
        out.row(p.b) += pull;
        out.row(p.a) -= pull;
    }
    return out;
}

/// Random signs: those of 64 bits, of which each pair uses one for each trial.
TrialTable random_pulls(Eigen::Index crystals, std::span<const PairTerm> pairs) {
    std::mt19937_64 random(1);
    TrialTable out = TrialTable::Zero(crystals, trials);
    for (const PairTerm& p : pairs) {
        std::uint64_t signs = random();
        TrialRow pull;
        for (int k = 0; k < trials; ++k, signs >>= 1)
            pull[k] = (signs & 1) != 0 ? p.pull : -p.pull;
        out.row(p.b) += pull;
        out.row(p.a) -= pull;
    }
    return out;
}

TrialRow trial_products(const TrialTable& x, const TrialTable& y) {
    return (x * y).colwise().sum();
}

TrialRow quotient(const TrialRow& over, const TrialRow& under) {
    return (under > 0).select(over / under.max(1e-300), 0);
}

/// By conjugate gradients, preconditioned with the diagonal.
TrialTable solve_trials(std::span<const PairTerm> pairs, const TrialTable& right,
                        const Eigen::ArrayXd& inverse_diagonal) {
    TrialTable x = TrialTable::Zero(right.rows(), trials);
    TrialTable left = right;
    TrialTable better = left.colwise() * inverse_diagonal;
    TrialTable direction = better;
    TrialRow square = trial_products(left, better);
    const TrialRow enough = square * (trial_settled * trial_settled);
    for (int step = 0; step < max_trial_steps && (square > enough).any(); ++step) {
        const TrialTable image = times_equations(pairs, direction);
        const TrialRow length = quotient(square, trial_products(direction, image));
        x += direction.rowwise() * length;
        left -= image.rowwise() * length;
        better = left.colwise() * inverse_diagonal;
        const TrialRow next = trial_products(left, better);
        direction = better + direction.rowwise() * quotient(next, square);
        square = next;
    }
    return x;
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

std::vector<double> shared_variance(std::size_t crystals, std::span<const PairTerm> pairs,
                                    std::span<const std::uint32_t> groups) {
    Eigen::ArrayXd diagonal = Eigen::ArrayXd::Zero(static_cast<Eigen::Index>(crystals));
    for (const PairTerm& p : pairs) {
        diagonal[p.a] += p.weight;
        diagonal[p.b] += p.weight;
    }
    const Eigen::ArrayXd inverse = (diagonal > 0).select(1 / diagonal.max(1e-300), 0);
    const TrialTable pulls = random_pulls(diagonal.size(), pairs);
    TrialTable wrong = solve_trials(pairs, pulls, inverse);
    centre_trials(wrong, groups);
    const TrialTable by_own = pulls.colwise() * inverse;
    const Eigen::ArrayXd shared = (wrong.square() - by_own.square()).rowwise().mean();
    return {shared.begin(), shared.end()};
}

}  // namespace petacq::estimate
