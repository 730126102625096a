#include "tools/petcal/estimate/pairs/time_offsets.hpp"

#include <Eigen/IterativeLinearSolvers>
#include <Eigen/SparseCore>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>

#include "config/base/error.hpp"
#include "config/moments.hpp"
#include "tools/petcal/estimate/pairs/offset_errors.hpp"

namespace petacq::estimate {

namespace {

constexpr double huber = 1.345;      // 95 % efficiency for Gaussian errors
constexpr double quarter = 0.31864;  // a quarter of Gaussian errors are within this many sigma
constexpr double min_sigma = 0.3;    // ticks: times are whole
constexpr double settled = 1e-3;     // rms of a step / sigma
constexpr double settled_huber = 0.05;
constexpr std::uint32_t max_huber_steps = 12;
// 90 % / 25 % of the distances from the peak: 5.2 for Gaussian errors, more with randoms, 3.6 without a peak.
constexpr double min_peak = 4.3;
constexpr double max_beside = 0.1;  // of a crystal's hits, in one of its four neighbours
constexpr double max_apart = 0.4;   // of a crystal's hits, anywhere in its block
constexpr double max_stray = 0.9;   // of the pairs
constexpr double peak_sigmas = 4;   // where the peak ends
// Of hits with light of two crystals, the time is that of the earlier one. Where it is not to be told from
// the crystal's own, it moves the offset: by this much of sigma, times the share of such hits. As found with
// simulated scatter in crystals (0.3 to 0.5).
constexpr double unresolved = 0.4;
constexpr double worst_error = 0.25;  // of a crystal, in sigma of a pair; beyond that it has no peak

using Matrix = Eigen::SparseMatrix<double, Eigen::RowMajor>;

/// The pairs of crystals that all have enough of them.
class Fit {
  public:
    Fit(std::size_t crystals, std::span<const TimeDifference> differences, const TimeOffsetOptions& options)
        : options_(options), crystals_(crystals) {
        if (!options.neighbours.empty() && options.neighbours.size() != crystals)
            throw std::invalid_argument("time_offsets: neighbours of " +
                                        std::to_string(options.neighbours.size()) +
                                        " crystals; expected those of " + std::to_string(crystals));
        blocks_ = blocks_of(options.neighbours);
        count(differences);
        select(differences);
    }
    TimeOffsets run();

  private:
    void count(std::span<const TimeDifference> differences);
    void select(std::span<const TimeDifference> differences);
    void solve();
    void measure();
    bool huber_step();
    bool own_step();
    [[noreturn]] void fail_to_settle() const;
    void measure_blocks();
    bool move(const Eigen::VectorXd& right, double limit);
    void weigh(std::size_t i, double weight, Eigen::VectorXd& right);
    PairOrigin origin(std::size_t i);
    [[nodiscard]] bool in_peak(std::size_t i) const {
        return std::abs(residual(i)) < peak_sigmas * model_.sigma;
    }
    void find_errors();
    void join_groups();
    void centre_groups();
    [[nodiscard]] double residual(std::size_t i) const {
        return pairs_[i].ticks - (x_[pairs_[i].b] - x_[pairs_[i].a]);
    }
    [[nodiscard]] std::size_t in_use() const {
        return static_cast<std::size_t>(std::count(used_.begin(), used_.end(), true));
    }

    const TimeOffsetOptions& options_;
    std::size_t crystals_;
    std::vector<bool> used_;
    std::vector<TimeDifference> pairs_;
    Matrix matrix_;
    Eigen::VectorXd x_;
    std::vector<float> sample_;
    PairModel model_;
    std::vector<double> shifts_;
    std::vector<std::uint32_t> blocks_;    // [crystal]
    std::vector<config::Moments> spread_;  // [block] of the offsets
    std::array<BlockShift, 2> block_shifts_{};
    double far_over_near_ = 0;
    std::vector<PairTerm> terms_;        // at the solution
    std::vector<std::uint32_t> groups_;  // [crystal] one of those that pairs join it to
    TimeOffsets out_;
};

void Fit::count(std::span<const TimeDifference> differences) {
    out_.pairs.assign(crystals_, 0);
    for (const TimeDifference& d : differences) {
        if (d.a >= crystals_ || d.b >= crystals_ || d.a == d.b)
            throw std::invalid_argument("time_offsets: a pair of crystals " + std::to_string(d.a) + " and " +
                                        std::to_string(d.b) + "; expected two of " +
                                        std::to_string(crystals_));
        ++out_.pairs[d.a];
        ++out_.pairs[d.b];
    }
}

// Leaving out a crystal takes pairs from others, which then may have too few.
void Fit::select(std::span<const TimeDifference> differences) {
    used_.assign(crystals_, true);
    std::vector<std::uint32_t> left = out_.pairs;
    for (bool changed = true; changed;) {
        changed = false;
        for (std::size_t c = 0; c < crystals_; ++c) {
            if (!used_[c] || left[c] >= options_.min_pairs) continue;
            used_[c] = false;
            changed = true;
        }
        if (!changed) break;
        std::fill(left.begin(), left.end(), 0);
        for (const TimeDifference& d : differences) {
            if (!used_[d.a] || !used_[d.b]) continue;
            ++left[d.a];
            ++left[d.b];
        }
    }
    const auto needed =
        static_cast<std::size_t>(std::ceil(options_.min_determined * static_cast<double>(crystals_)));
    if (in_use() < needed || in_use() < 2)
        throw config::Error("time offsets: " + std::to_string(in_use()) + " of " + std::to_string(crystals_) +
                            " crystals have " + std::to_string(options_.min_pairs) +
                            " or more pairs through the source; expected at least " + std::to_string(needed) +
                            ": measure longer");
    const auto pairs = std::accumulate(left.begin(), left.end(), std::uint64_t{0}) / 2;
    if (pairs > std::numeric_limits<int>::max() / 2)
        throw std::invalid_argument("time_offsets: more than 2^30 pairs");
    pairs_.reserve(pairs);
    for (const TimeDifference& d : differences) {
        if (used_[d.a] && used_[d.b]) pairs_.push_back(d);
    }
    matrix_.resize(static_cast<Eigen::Index>(pairs), static_cast<Eigen::Index>(crystals_));
    matrix_.reserve(static_cast<Eigen::Index>(2 * pairs));
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
        const auto row = static_cast<Eigen::Index>(i);
        matrix_.startVec(row);
        matrix_.insertBack(row, std::min(pairs_[i].a, pairs_[i].b)) = 0;
        matrix_.insertBack(row, std::max(pairs_[i].a, pairs_[i].b)) = 0;
    }
    matrix_.finalize();
}

/// The width of the peak, from a sample: the middle of the distribution holds few randoms.
void Fit::measure() {
    constexpr std::size_t enough = 1'000'000;
    const std::size_t stride = std::max<std::size_t>(pairs_.size() / enough, 1);
    sample_.clear();
    for (std::size_t i = 0; i < pairs_.size(); i += stride)
        sample_.push_back(static_cast<float>(std::abs(residual(i))));
    const auto quantile = [&](double part) {
        const auto at =
            sample_.begin() + static_cast<std::ptrdiff_t>(part * static_cast<double>(sample_.size()));
        std::nth_element(sample_.begin(), at, sample_.end());
        return double{*at};
    };
    model_.sigma = std::max(quantile(0.25) / quarter, min_sigma);
    far_over_near_ = quantile(0.9) / (model_.sigma * quarter);
}

/// Puts a pair into the equations of a step.
void Fit::weigh(std::size_t i, double weight, Eigen::VectorXd& right) {
    const double root = std::sqrt(weight);
    const double sign = pairs_[i].b > pairs_[i].a ? root : -root;
    double* values = matrix_.valuePtr();
    values[2 * i] = -sign;
    values[2 * i + 1] = sign;
    right[static_cast<Eigen::Index>(i)] = root * residual(i);
}

/// Solves the equations of a step. Whether it was smaller than `limit` sigma.
bool Fit::move(const Eigen::VectorXd& right, double limit) {
    ++out_.steps;
    if (options_.on_step) options_.on_step(out_.steps);
    Eigen::LeastSquaresConjugateGradient<Matrix> solver;
    solver.setTolerance(0.01);  // of a step
    solver.setMaxIterations(200);
    solver.compute(matrix_);
    const Eigen::VectorXd change = solver.solve(right);
    x_ += change;
    const double rms = std::sqrt(change.squaredNorm() / static_cast<double>(in_use()));
    return rms < limit * model_.sigma;
}

bool Fit::huber_step() {
    measure();
    Eigen::VectorXd right(matrix_.rows());
    for (std::size_t i = 0; i < pairs_.size(); ++i)
        weigh(i, std::min(1.0, huber * model_.sigma / std::abs(residual(i))), right);
    return move(right, settled_huber);
}

/// By the present offsets. Those of a pair's own crystals are among them, with little weight.
void Fit::measure_blocks() {
    spread_.assign(blocks_.empty() ? 0 : *std::max_element(blocks_.begin(), blocks_.end()) + 1, {});
    for (std::size_t k = 0; k < blocks_.size(); ++k)
        if (used_[k]) spread_[blocks_[k]].add(x_[k]);
}

/// By the present offsets.
PairOrigin Fit::origin(std::size_t i) {
    const double r = residual(i);
    if (blocks_.empty()) return origin_of(model_, r, {}, {});
    shifts_.clear();
    const auto [a, b, ticks] = pairs_[i];
    for (const std::uint32_t n : options_.neighbours[a])
        if (used_[n]) shifts_.push_back(r + (x_[n] - x_[a]));
    for (const std::uint32_t n : options_.neighbours[b])
        if (used_[n]) shifts_.push_back(r - (x_[n] - x_[b]));
    const config::Moments& of_a = spread_[blocks_[a]];
    const config::Moments& of_b = spread_[blocks_[b]];
    block_shifts_ = {BlockShift{r + (of_a.mean() - x_[a]), of_a.spread()},
                     BlockShift{r - (of_b.mean() - x_[b]), of_b.spread()}};
    return origin_of(model_, r, shifts_, block_shifts_);
}

/// One step of expectation and maximisation; a pair counts with the chance that it is one of its crystals.
bool Fit::own_step() {
    Eigen::VectorXd right(matrix_.rows());
    measure_blocks();
    double own = 0;
    double beside = 0;
    double apart = 0;
    double places = 0;  // of neighbours
    double squares = 0;
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
        const PairOrigin o = origin(i);
        const double r = residual(i);
        weigh(i, o.own, right);
        own += o.own;
        beside += o.beside;
        apart += o.apart;
        places += (o.own + o.beside + o.apart) * static_cast<double>(shifts_.size());
        squares += o.own * r * r;
    }
    if (own > 0) model_.sigma = std::max(std::sqrt(squares / own), min_sigma);
    if (places > 0) model_.beside = std::min(beside / places, max_beside);
    const double known = own + beside + apart;
    model_.apart = std::min(apart / std::max(2 * known, 1.0), max_apart);
    model_.stray = std::min(1 - known / static_cast<double>(pairs_.size()), max_stray);
    return move(right, settled);
}

/// Says which of the reasons it has.
void Fit::fail_to_settle() const {
    constexpr double many = 0.5;
    const auto share = [](double part) { return std::to_string(std::lround(100 * part)) + " %"; };
    const std::string text = "time offsets: no solution after " + std::to_string(out_.steps) + " steps: ";
    if (model_.stray > many)
        throw config::Error(
            text + share(model_.stray) +
            " of the pairs are random or scattered; expected less than half: measure with less "
            "activity, or check the place of the source");
    if (model_.apart >= max_apart || model_.beside >= max_beside)
        throw config::Error(
            text + share(model_.apart + 4 * model_.beside) +
            " of the hits seem to belong to other crystals of their block; expected less than "
            "half: check the crystal maps of the calibration");
    throw config::Error(
        text +
        "the pairs leave patterns of the offsets free; expected a source that joins each crystal "
        "with many others: a cylinder about half as wide as the ring");
}

void Fit::solve() {
    x_ = Eigen::VectorXd::Zero(static_cast<Eigen::Index>(crystals_));
    while (out_.steps < max_huber_steps && !huber_step()) {
    }
    const auto [low, high] = std::minmax_element(
        pairs_.begin(), pairs_.end(),
        [](const TimeDifference& p, const TimeDifference& q) { return p.ticks < q.ticks; });
    model_.range = std::max(1.0F, high->ticks - low->ticks);
    measure();
    if (far_over_near_ < min_peak)
        throw config::Error(
            "time offsets: the time differences have no peak above the randoms; expected the known source at "
            "its place, and a coincidence window that contains the offsets");
    while (!own_step()) {
        if (out_.steps >= options_.max_steps) fail_to_settle();
    }
}

/// What the pairs say at the solution; leaves out crystals without a peak.
void Fit::find_errors() {
    std::vector<double> squares(crystals_, 0);
    std::vector<double> slopes(crystals_, 0);
    std::vector<double> others(crystals_, 0);  // hits of others
    std::vector<double> known(crystals_, 0);
    double sum = 0;
    std::size_t near = 0;
    const double variance = model_.sigma * model_.sigma;
    terms_.reserve(pairs_.size());
    measure_blocks();
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
        const double r = residual(i);
        const PairOrigin o = origin(i);
        const double psi = o.own * r;
        const double slope = o.own * (1 - r * (r - o.expected) / variance);
        terms_.push_back({pairs_[i].a, pairs_[i].b, static_cast<float>(o.own), static_cast<float>(psi)});
        for (const std::uint32_t crystal : {pairs_[i].a, pairs_[i].b}) {
            squares[crystal] += psi * psi;
            slopes[crystal] += slope;
            others[crystal] += (o.beside + o.apart) / 2;
            known[crystal] += o.own + o.beside + o.apart;
        }
        if (!in_peak(i)) continue;
        ++near;
        sum += r * r;
    }
    out_.sigma_ticks = model_.sigma;
    out_.residual_rms = std::sqrt(sum / static_cast<double>(std::max<std::size_t>(near, 1)));
    out_.in_peak = static_cast<double>(near) / static_cast<double>(pairs_.size());
    const double all_known = std::accumulate(known.begin(), known.end(), 0.0);
    out_.beside = all_known > 0 ? std::accumulate(others.begin(), others.end(), 0.0) / all_known : 0;
    for (std::size_t k = 0; k < crystals_; ++k) {
        if (used_[k] && !(std::sqrt(squares[k]) <= worst_error * model_.sigma * slopes[k])) used_[k] = false;
    }
    join_groups();
    // In the equations, a pair has the mean slope of those that are as likely its crystals' own.
    const double all_slopes = std::accumulate(slopes.begin(), slopes.end(), 0.0);
    double all_own = 0;
    for (const PairTerm& t : terms_)
        all_own += 2 * double{t.weight};
    for (PairTerm& t : terms_) {
        const bool both = used_[t.a] && used_[t.b];
        t.weight = both ? static_cast<float>(t.weight * all_slopes / all_own) : 0;
        t.pull = both ? t.pull : 0;
    }
    const std::vector<double> shared = shared_variance(crystals_, terms_, groups_);
    out_.error_ticks.assign(crystals_, std::numeric_limits<double>::infinity());
    for (std::size_t k = 0; k < crystals_; ++k) {
        if (!used_[k]) continue;
        const double own = squares[k] / (slopes[k] * slopes[k]);
        const double of_others = unresolved * others[k] / known[k] * model_.sigma;
        out_.error_ticks[k] = std::sqrt(std::max(own + shared[k], own / 2) + of_others * of_others);
    }
}

/// Joins crystals with pairs in the peak.
void Fit::join_groups() {
    groups_.resize(crystals_);
    std::iota(groups_.begin(), groups_.end(), 0U);
    const auto root = [&](std::uint32_t k) {
        while (groups_[k] != k)
            k = groups_[k] = groups_[groups_[k]];
        return k;
    };
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
        const auto [a, b, ticks] = pairs_[i];
        if (used_[a] && used_[b] && in_peak(i)) groups_[root(a)] = root(b);
    }
    for (std::uint32_t k = 0; k < crystals_; ++k)
        groups_[k] = root(k);
}

/// Makes the mean of each group 0.
void Fit::centre_groups() {
    std::vector<config::Moments> of_group(crystals_);
    for (std::uint32_t k = 0; k < crystals_; ++k)
        if (used_[k]) of_group[groups_[k]].add(x_[k]);
    std::vector<std::uint32_t> number(crystals_);
    for (std::uint32_t k = 0; k < crystals_; ++k)
        if (of_group[k].n > 0) number[k] = out_.groups++;
    for (std::uint32_t k = 0; k < crystals_; ++k)
        out_.group_of.push_back(number[groups_[k]]);
    out_.ticks.assign(crystals_, 0);
    for (std::uint32_t k = 0; k < crystals_; ++k) {
        if (used_[k]) {
            // A crystal that is late by x needs x less.
            out_.ticks[k] = of_group[groups_[k]].mean() - x_[k];
        } else {
            out_.undetermined.push_back(k);
        }
    }
}

TimeOffsets Fit::run() {
    solve();
    find_errors();
    if (static_cast<double>(in_use()) < options_.min_determined * static_cast<double>(crystals_))
        throw config::Error("time offsets: only " + std::to_string(in_use()) + " of " +
                            std::to_string(crystals_) +
                            " crystals have a peak in time; expected more pairs, or fewer randoms");
    centre_groups();
    return std::move(out_);
}

}  // namespace

TimeOffsets time_offsets(std::size_t crystals, std::span<const TimeDifference> differences,
                         const TimeOffsetOptions& options) {
    return Fit(crystals, differences, options).run();
}

}  // namespace petacq::estimate
