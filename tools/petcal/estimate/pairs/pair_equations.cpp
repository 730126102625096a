#include "tools/petcal/estimate/pairs/pair_equations.hpp"

namespace petacq::estimate {

PairEquations::PairEquations(std::size_t crystals, std::span<const TimeDifference> pairs,
                             net::WorkerPool& pool)
    : pool_(pool), first_(crystals + 1), terms_(2 * pairs.size()) {
    for (const TimeDifference& p : pairs) {
        ++first_[p.a + 1];
        ++first_[p.b + 1];
    }
    for (std::size_t k = 0; k < crystals; ++k)
        first_[k + 1] += first_[k];
    std::vector<std::size_t> next(first_.begin(), first_.end() - 1);
    at_.reserve(pairs.size());
    for (const TimeDifference& p : pairs) {
        at_.push_back({static_cast<std::uint32_t>(next[p.a]++), static_cast<std::uint32_t>(next[p.b]++)});
        terms_[at_.back()[0]] = {p.b, 0};
        terms_[at_.back()[1]] = {p.a, 0};
    }
}

Eigen::ArrayXd PairEquations::inverse_diagonal() const {
    Eigen::ArrayXd sums = Eigen::ArrayXd::Zero(static_cast<Eigen::Index>(first_.size() - 1));
    for (std::size_t k = 0; k + 1 < first_.size(); ++k)
        for (std::size_t i = first_[k]; i < first_[k + 1]; ++i)
            sums[static_cast<Eigen::Index>(k)] += terms_[i].weight;
    return (sums > 0).select(1 / sums.max(1e-300), 0);
}

}  // namespace petacq::estimate
