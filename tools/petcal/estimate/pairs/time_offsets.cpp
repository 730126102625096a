#include "tools/petcal/estimate/pairs/time_offsets.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include "config/base/error.hpp"
#include "config/moments.hpp"
#include "net/base/worker_pool.hpp"
#include "tools/petcal/estimate/pairs/offset_errors.hpp"
#include "tools/petcal/estimate/pairs/pair_equations.hpp"

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

/// Pairs that one thread takes at a time. Sums are made by piece, so that they do not depend on the threads.
constexpr std::size_t pairs_of_piece = 1 << 15;

/// Of a piece of the pairs.
struct OwnSums {
    double own = 0;
    double beside = 0;
    double apart = 0;
    double places = 0;  // of neighbours
    double squares = 0;

    OwnSums& operator+=(const OwnSums& more) {
        own += more.own;
        beside += more.beside;
        apart += more.apart;
        places += more.places;
        squares += more.squares;
        return *this;
    }
};

/// As many threads as the pairs keep busy.
std::uint32_t threads_for(std::size_t pairs) {
    const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
    return static_cast<std::uint32_t>(std::min(cores, 1 + pairs / pairs_of_piece));
}

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
        pool_.emplace(threads_for(pairs_.size()));
        equations_.emplace(crystals_, pairs_, *pool_);
        pulls_.resize(pairs_.size());
    }
    TimeOffsets run();

  private:
    void count(std::span<const TimeDifference> differences);
    void select(std::span<const TimeDifference> differences);
    [[nodiscard]] std::uint64_t enough_prompts(std::size_t found, std::size_t crystals) const;
    void solve();
    void measure();
    bool huber_step();
    bool own_step();
    [[noreturn]] void fail_to_settle() const;
    void measure_blocks();
    bool move(double limit);
    void weigh(std::size_t i, double weight);
    PairOrigin origin(std::size_t i, std::vector<double>& shifts) const;
    /// Calls work(piece, begin, end) for pieces of the pairs, on all threads.
    template <class Work>
    void for_each_piece(const Work& work);
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
    std::optional<net::WorkerPool> pool_;
    std::optional<PairEquations> equations_;
    std::vector<float> pulls_;  // [pair] weight times residual
    Eigen::VectorXd x_;
    std::vector<float> sample_;
    PairModel model_;
    std::vector<std::uint32_t> blocks_;    // [crystal]
    std::vector<config::Moments> spread_;  // [block] of the offsets
    double far_over_near_ = 0;
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

/// With about as many, `crystals` of them have the pairs that they need.
std::uint64_t Fit::enough_prompts(std::size_t found, std::size_t crystals) const {
    std::vector<std::uint32_t> pairs = out_.pairs;
    std::sort(pairs.begin(), pairs.end(), std::greater());
    const double last = crystals > 0 && crystals <= pairs.size() ? pairs[crystals - 1] : 0;
    const double at_least = 0.5 * options_.min_pairs * static_cast<double>(crystals);
    const double scaled = static_cast<double>(found) * options_.min_pairs / std::max(last, 1.0);
    return static_cast<std::uint64_t>(std::ceil(std::max(at_least, scaled)));
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
                            ": found " + std::to_string(differences.size()) + " prompts, about " +
                            std::to_string(enough_prompts(differences.size(), needed)) +
                            " are needed: measure longer");
    const auto pairs = std::accumulate(left.begin(), left.end(), std::uint64_t{0}) / 2;
    if (pairs > std::numeric_limits<int>::max() / 2)
        throw std::invalid_argument("time_offsets: more than 2^30 pairs");
    pairs_.reserve(pairs);
    for (const TimeDifference& d : differences) {
        if (used_[d.a] && used_[d.b]) pairs_.push_back(d);
    }
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

template <class Work>
void Fit::for_each_piece(const Work& work) {
    pool_->run(pool_->size(), [&](std::uint32_t worker) {
        for (std::size_t i = worker; i * pairs_of_piece < pairs_.size(); i += pool_->size())
            work(i, i * pairs_of_piece, std::min((i + 1) * pairs_of_piece, pairs_.size()));
    });
}

/// Puts a pair into the equations of a step.
void Fit::weigh(std::size_t i, double weight) {
    equations_->set_weight(i, static_cast<float>(weight));
    pulls_[i] = static_cast<float>(weight * residual(i));
}

/// Solves the equations of a step. Whether it was smaller than `limit` sigma.
bool Fit::move(double limit) {
    constexpr double enough = 0.01;  // of a step
    constexpr int max_gradients = 200;
    ++out_.steps;
    if (options_.on_step) options_.on_step(out_.steps);
    CrystalValues<1> right = CrystalValues<1>::Zero(x_.size());
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
        right[pairs_[i].b] += pulls_[i];
        right[pairs_[i].a] -= pulls_[i];
    }
    const Eigen::VectorXd change = equations_->solve<1>(right, enough, max_gradients);
    x_ += change;
    const double rms = std::sqrt(change.squaredNorm() / static_cast<double>(in_use()));
    return rms < limit * model_.sigma;
}

bool Fit::huber_step() {
    measure();
    for_each_piece([&](std::size_t, std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i)
            weigh(i, std::min(1.0, huber * model_.sigma / std::abs(residual(i))));
    });
    return move(settled_huber);
}

/// By the present offsets. Those of a pair's own crystals are among them, with little weight.
void Fit::measure_blocks() {
    spread_.assign(blocks_.empty() ? 0 : *std::max_element(blocks_.begin(), blocks_.end()) + 1, {});
    for (std::size_t k = 0; k < blocks_.size(); ++k)
        if (used_[k]) spread_[blocks_[k]].add(x_[k]);
}

/// By the present offsets. `shifts`: memory of a thread.
PairOrigin Fit::origin(std::size_t i, std::vector<double>& shifts) const {
    const double r = residual(i);
    if (blocks_.empty()) return origin_of(model_, r, {}, {});
    shifts.clear();
    const auto [a, b, ticks] = pairs_[i];
    for (const std::uint32_t n : options_.neighbours[a])
        if (used_[n]) shifts.push_back(r + (x_[n] - x_[a]));
    for (const std::uint32_t n : options_.neighbours[b])
        if (used_[n]) shifts.push_back(r - (x_[n] - x_[b]));
    const config::Moments& of_a = spread_[blocks_[a]];
    const config::Moments& of_b = spread_[blocks_[b]];
    const std::array blocks = {BlockShift{r + (of_a.mean() - x_[a]), of_a.spread()},
                               BlockShift{r - (of_b.mean() - x_[b]), of_b.spread()}};
    return origin_of(model_, r, shifts, blocks);
}

/// One step of expectation and maximisation; a pair counts with the chance that it is one of its crystals.
bool Fit::own_step() {
    measure_blocks();
    std::vector<OwnSums> of_piece(pairs_.size() / pairs_of_piece + 1);
    for_each_piece([&](std::size_t number, std::size_t begin, std::size_t end) {
        OwnSums sums;
        std::vector<double> shifts;
        for (std::size_t i = begin; i < end; ++i) {
            const PairOrigin o = origin(i, shifts);
            const double r = residual(i);
            weigh(i, o.own);
            sums += {o.own, o.beside, o.apart,
                     (o.own + o.beside + o.apart) * static_cast<double>(shifts.size()), o.own * r * r};
        }
        of_piece[number] = sums;
    });
    OwnSums all;
    for (const OwnSums& sums : of_piece)
        all += sums;
    if (all.own > 0) model_.sigma = std::max(std::sqrt(all.squares / all.own), min_sigma);
    if (all.places > 0) model_.beside = std::min(all.beside / all.places, max_beside);
    const double known = all.own + all.beside + all.apart;
    model_.apart = std::min(all.apart / std::max(2 * known, 1.0), max_apart);
    model_.stray = std::min(1 - known / static_cast<double>(pairs_.size()), max_stray);
    return move(settled);
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
    double all_own = 0;
    std::vector<double> shifts;
    measure_blocks();
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
        const double r = residual(i);
        const PairOrigin o = origin(i, shifts);
        const double psi = o.own * r;
        all_own += 2 * o.own;
        weigh(i, o.own);
        const double slope = o.own * (1 - r * (r - o.expected) / variance);
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
    const double own_slope = all_slopes / all_own;
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
        const bool both = used_[pairs_[i].a] && used_[pairs_[i].b];
        equations_->set_weight(i, both ? static_cast<float>(equations_->weight(i) * own_slope) : 0);
        if (!both) pulls_[i] = 0;
    }
    const std::vector<double> shared = shared_variance(*equations_, pairs_, pulls_, groups_);
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
