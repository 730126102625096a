// Least squares over pairs of crystals, of which each fixes the difference of two values.
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "net/base/worker_pool.hpp"
#include "tools/petcal/estimate/pairs/time_offsets.hpp"

namespace petacq::estimate {

/// [crystal] The values of several problems with the same weights, which are solved together.
template <int Problems>
using CrystalValues =
    Eigen::Array<double, Eigen::Dynamic, Problems, Problems == 1 ? Eigen::ColMajor : Eigen::RowMajor>;

/// The normal equations: of a crystal, the sum of weight * (its value - that of the other) over its pairs.
/// Pairs are held by crystal, so that each thread makes the sums of its own crystals, and the results do not
/// depend on the number of threads. Memory: 24 bytes per pair.
class PairEquations {
  public:
    /// Weights are 0 at first.
    PairEquations(std::size_t crystals, std::span<const TimeDifference> pairs, net::WorkerPool& pool);

    /// For the pair with this number. Threads may set those of different pairs.
    void set_weight(std::size_t pair, float weight) {
        for (const std::uint32_t at : at_[pair])
            terms_[at].weight = weight;
    }
    [[nodiscard]] float weight(std::size_t pair) const { return terms_[at_[pair][0]].weight; }

    /// [crystal] 1 / sum of its weights; 0 where that is 0.
    [[nodiscard]] Eigen::ArrayXd inverse_diagonal() const;

    /// Values whose left sides are `right`, but for a constant, by conjugate gradients that begin at 0 and
    /// are preconditioned with the diagonal. They end when what is left of each right side, weighted with the
    /// inverse diagonal, is `settled` of it, or after max_steps.
    template <int Problems>
    [[nodiscard]] CrystalValues<Problems> solve(const CrystalValues<Problems>& right, double settled,
                                                int max_steps) const;

  private:
    struct Term {
        std::uint32_t other;
        float weight;
    };

    template <int Problems>
    [[nodiscard]] CrystalValues<Problems> left_sides(const CrystalValues<Problems>& x) const;

    net::WorkerPool& pool_;
    std::vector<std::size_t> first_;  // [crystal] of its terms; one more at the end
    std::vector<Term> terms_;
    std::vector<std::array<std::uint32_t, 2>> at_;  // [pair] its terms of a and b
};

template <int Problems>
CrystalValues<Problems> PairEquations::left_sides(const CrystalValues<Problems>& x) const {
    constexpr std::size_t piece = 64;  // crystals
    const std::size_t crystals = first_.size() - 1;
    CrystalValues<Problems> out(x.rows(), Problems);
    pool_.run(pool_.size(), [&](std::uint32_t worker) {
        for (std::size_t begin = worker * piece; begin < crystals; begin += pool_.size() * piece) {
            for (std::size_t k = begin; k < std::min(begin + piece, crystals); ++k) {
                const auto row = static_cast<Eigen::Index>(k);
                const Eigen::Array<double, 1, Problems> own = x.row(row);
                Eigen::Array<double, 1, Problems> sum = Eigen::Array<double, 1, Problems>::Zero();
                for (std::size_t i = first_[k]; i < first_[k + 1]; ++i)
                    sum += double{terms_[i].weight} * (own - x.row(terms_[i].other));
                out.row(row) = sum;
            }
        }
    });
    return out;
}

template <int Problems>
CrystalValues<Problems> PairEquations::solve(const CrystalValues<Problems>& right, double settled,
                                             int max_steps) const {
    using Row = Eigen::Array<double, 1, Problems>;
    const auto products = [](const auto& x, const auto& y) { return Row((x * y).colwise().sum()); };
    const auto quotient = [](const Row& over, const Row& under) {
        return Row((under > 0).select(over / under.max(1e-300), 0));
    };
    const Eigen::ArrayXd inverse = inverse_diagonal();
    CrystalValues<Problems> x = CrystalValues<Problems>::Zero(right.rows(), Problems);
    CrystalValues<Problems> left = right;
    CrystalValues<Problems> better = left.colwise() * inverse;
    CrystalValues<Problems> direction = better;
    Row square = products(left, better);
    const Row enough = square * (settled * settled);
    for (int step = 0; step < max_steps && (square > enough).any(); ++step) {
        const CrystalValues<Problems> image = left_sides<Problems>(direction);
        const Row length = quotient(square, products(direction, image));
        x += direction.rowwise() * length;
        left -= image.rowwise() * length;
        better = left.colwise() * inverse;
        const Row next = products(left, better);
        direction = better + direction.rowwise() * quotient(next, square);
        square = next;
    }
    return x;
}

}  // namespace petacq::estimate
