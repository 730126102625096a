#include "daemon/synchrony/alignment.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace petacq::daemon {

namespace {

/// Thousands of lags, hundreds of modules and 1e5 samples a day: one of 1e4 days has a peak by chance.
constexpr double certain_peak = 35;
/// Against the million lags of the wide search.
constexpr double certain_lag = 40;
/// Of a pair of groups. A wrong link hides a finding, and makes none.
constexpr double certain_link = 12;
constexpr std::size_t max_peaks = 4;
constexpr int max_rounds = 24;

struct Shift {
    std::uint32_t module;
    double late;
};
using Move = std::vector<Shift>;

class Aligner {
  public:
    Aligner(std::span<const TimedSingle> hits, std::uint32_t modules, const SearchScale& scale,
            double min_shift)
        : hits_(hits),
          scale_(scale),
          min_shift_(min_shift),
          late_(modules),
          bins_(scale.bins() * modules),
          peaks_(modules) {}

    Alignment run() {
        double simultaneous = count();
        find_peaks();
        for (int round = 0; round < max_rounds; ++round) {
            bool better = false;
            for (const Move& move : moves()) {
                const std::vector<double> before = late_;
                for (const Shift& shift : move)
                    late_[shift.module] += shift.late;
                const double now = count();
                better = now > simultaneous + 3 * std::sqrt(std::max(simultaneous, 10.0));
                if (better) {
                    simultaneous = now;
                    break;
                }
                late_ = before;
            }
            if (!better) break;
            find_peaks();
        }
        count();
        find_peaks();
        return result();
    }

  private:
    [[nodiscard]] std::uint32_t modules() const { return static_cast<std::uint32_t>(late_.size()); }
    LagHistogram of(std::uint32_t module) { return {scale_, &bins_[scale_.bins() * module]}; }

    /// Returns the simultaneous pairs.
    double count() {
        std::fill(bins_.begin(), bins_.end(), 0);
        std::vector<std::int64_t> late(late_.size());
        std::transform(late_.begin(), late_.end(), late.begin(), [](double x) { return std::llround(x); });
        for_each_pair(hits_, scale_.reach, [&](std::uint32_t a, std::uint32_t b, std::int64_t difference) {
            const std::int64_t lag = difference - late[b] + late[a];
            if (std::abs(lag) > scale_.reach) return;
            of(a).add(lag);
            of(b).add(-lag);
        });
        double all = 0;
        for (std::uint32_t m = 0; m < modules(); ++m)
            all += of(m).excess_at(0);
        return all;
    }

    void find_peaks() {
        for (std::uint32_t m = 0; m < modules(); ++m)
            peaks_[m] = of(m).peaks(certain_peak, max_peaks);
    }

    /// What might bring more simultaneous pairs, the best guess first.
    [[nodiscard]] std::vector<Move> moves() const {
        std::vector<Move> moves;
        Move each;
        std::size_t seen = 0;
        struct ModuleLag {
            double lag;
            double excess;
            std::uint32_t module;
        };
        std::vector<ModuleLag> places;
        for (std::uint32_t m = 0; m < modules(); ++m) {
            if (peaks_[m].empty()) continue;
            ++seen;
            if (std::abs(peaks_[m].front().lag) > min_shift_) each.push_back({m, -peaks_[m].front().lag});
            for (const Peak& peak : peaks_[m])
                if (std::abs(peak.lag) > min_shift_) places.push_back({peak.lag, peak.excess, m});
        }
        if (!each.empty() && 2 * each.size() < seen) moves.push_back(each);
        std::sort(places.begin(), places.end(),
                  [](const ModuleLag& a, const ModuleLag& b) { return a.lag < b.lag; });
        struct Together {
            double excess = 0;
            Move move;
        };
        std::vector<Together> all;
        for (std::size_t i = 0; i < places.size();) {
            Together one;
            double sum = 0;
            std::size_t j = i;
            for (; j < places.size() && places[j].lag - places[i].lag < static_cast<double>(scale_.width());
                 ++j) {
                one.excess += places[j].excess;
                sum += places[j].excess * places[j].lag;
                const auto same = std::any_of(one.move.begin(), one.move.end(), [&](const Shift& shift) {
                    return shift.module == places[j].module;
                });
                if (!same) one.move.push_back({places[j].module, 0});
            }
            for (Shift& shift : one.move)
                shift.late = -sum / one.excess;
            all.push_back(std::move(one));
            i = j;
        }
        std::sort(all.begin(), all.end(),
                  [](const Together& a, const Together& b) { return a.excess > b.excess; });
        constexpr std::size_t max_tried = 6;
        for (std::size_t i = 0; i < std::min(all.size(), max_tried); ++i)
            moves.push_back(std::move(all[i].move));
        return moves;
    }

    Alignment result() {
        Alignment result;
        result.modules.resize(modules());
        for (const TimedSingle& hit : hits_)
            ++result.modules[hit.module].singles;
        for (std::uint32_t m = 0; m < modules(); ++m) {
            AlignedModule& one = result.modules[m];
            one.late = late_[m];
            one.group = m;
            const auto near = std::find_if(peaks_[m].begin(), peaks_[m].end(), [&](const Peak& peak) {
                return std::abs(peak.lag) <= std::max(min_shift_, static_cast<double>(scale_.width()));
            });
            if (near == peaks_[m].end()) continue;
            one.error = near->error;
            one.pairs = near->excess;
        }
        compare(result);
        return result;
    }

    /// Sums over the pairs of two modules, from which the delay between the two follows.
    struct Links {
        std::vector<double> near;     ///< [a * modules + b] pairs
        std::vector<double> lags;     ///< sums over these
        std::vector<double> squares;  ///< sums of the squares of the lags
    };

    /// The delays that remain, by least squares: those of all modules of a group at once, since each one is
    /// measured against partners that have some, too. Modules with few pairs with the rest of their group
    /// have a large error, however many they have with each other.
    static void settle(const Links& links, const std::vector<double>& randoms,
                       const std::vector<std::uint32_t>& members, Alignment& result) {
        const std::size_t n = result.modules.size();
        const auto size = static_cast<Eigen::Index>(members.size());
        // Only differences are measured: their mean is held at zero.
        Eigen::MatrixXd normal = Eigen::MatrixXd::Ones(size, size);
        Eigen::VectorXd sums = Eigen::VectorXd::Zero(size);
        for (Eigen::Index i = 0; i < size; ++i) {
            for (Eigen::Index j = 0; j < size; ++j) {
                const std::size_t at =
                    members[static_cast<std::size_t>(i)] * n + members[static_cast<std::size_t>(j)];
                // A window of twice the width has twice the randoms of the peak.
                const double excess = links.near[at] - 2 * randoms[at];
                if (i == j || excess <= 0) continue;
                const double weight = excess * excess / links.squares[at];
                normal(i, i) += weight;
                normal(i, j) -= weight;
                sums(i) -= weight * links.lags[at] / excess;
            }
        }
        const Eigen::MatrixXd covariance = normal.completeOrthogonalDecomposition().pseudoInverse();
        const Eigen::VectorXd late = covariance * sums;
        for (Eigen::Index i = 0; i < size; ++i) {
            AlignedModule& one = result.modules[members[static_cast<std::size_t>(i)]];
            one.late += late(i);
            one.error = std::max(one.error, std::sqrt(std::max(covariance(i, i), 0.0)));
        }
    }

    void settle_groups(const Links& links, const std::vector<double>& randoms, Alignment& result) const {
        for (std::uint32_t group = 0; group < modules(); ++group) {
            std::vector<std::uint32_t> members;
            for (std::uint32_t m = 0; m < modules(); ++m)
                if (result.modules[m].group == group && result.modules[m].pairs > 0) members.push_back(m);
            if (members.size() > 1) settle(links, randoms, members, result);
        }
    }

    void compare(Alignment& result) const {
        const std::size_t n = result.modules.size();
        std::vector<double> pairs(n * n);
        std::vector<double> randoms(n * n);
        Links links{std::vector<double>(n * n), std::vector<double>(n * n), std::vector<double>(n * n)};
        // A lag is known to a part of a bin.
        const double min_square = std::pow(0.5 * static_cast<double>(scale_.bin), 2);
        const double part = static_cast<double>(scale_.width()) / static_cast<double>(2 * scale_.reach);
        for_each_pair(hits_, scale_.reach, [&](std::uint32_t a, std::uint32_t b, std::int64_t difference) {
            const double lag = static_cast<double>(difference) - late_[b] + late_[a];
            const double one = 2 * std::abs(lag) <= static_cast<double>(scale_.width()) ? 1 : 0;
            pairs[a * n + b] += one;
            pairs[b * n + a] += one;
            randoms[a * n + b] += part;
            randoms[b * n + a] += part;
            if (std::abs(lag) > static_cast<double>(scale_.width())) return;
            const double square = std::max(lag * lag, min_square);
            for (const auto& [at, sign] : {std::pair{a * n + b, 1}, std::pair{b * n + a, -1}}) {
                ++links.near[at];
                links.lags[at] += sign * lag;
                links.squares[at] += square;
            }
        });
        result.pairs = pairs;
        result.randoms = randoms;
        join(std::move(pairs), std::move(randoms), result);
        settle_groups(links, result.randoms, result);
    }

    /// Joins the two groups with the most simultaneous pairs, as long as these are no chance.
    static void join(std::vector<double> pairs, std::vector<double> randoms, Alignment& result) {
        const std::size_t n = result.modules.size();
        std::vector<std::uint32_t> groups(n);
        std::iota(groups.begin(), groups.end(), 0);
        while (groups.size() > 1) {
            double most = 0;
            std::size_t first = 0;
            std::size_t second = 0;
            for (std::size_t i = 0; i < groups.size(); ++i) {
                for (std::size_t j = i + 1; j < groups.size(); ++j) {
                    const std::size_t at = groups[i] * n + groups[j];
                    if (pairs[at] - randoms[at] <= most) continue;
                    most = pairs[at] - randoms[at];
                    first = i;
                    second = j;
                }
            }
            const std::size_t a = groups[first];
            const std::size_t b = groups[second];
            if (most <= 0 || certainty(pairs[a * n + b], randoms[a * n + b]) < certain_link) return;
            for (std::size_t k = 0; k < n; ++k) {
                pairs[a * n + k] += pairs[b * n + k];
                pairs[k * n + a] = pairs[a * n + k];
                randoms[a * n + k] += randoms[b * n + k];
                randoms[k * n + a] = randoms[a * n + k];
            }
            for (AlignedModule& one : result.modules)
                if (one.group == b) one.group = static_cast<std::uint32_t>(a);
            groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(second));
        }
    }

    const std::span<const TimedSingle> hits_;
    const SearchScale scale_;
    const double min_shift_;
    std::vector<double> late_;  ///< ticks, by module
    std::vector<std::uint32_t> bins_;
    std::vector<std::vector<Peak>> peaks_;  ///< by module
};

}  // namespace

Alignment align(std::span<const TimedSingle> hits, std::uint32_t modules, const SearchScale& scale,
                double min_shift) {
    return Aligner(hits, modules, scale, min_shift).run();
}

Alignment::PairCount Alignment::with_group(std::uint32_t module, std::uint32_t group) const {
    PairCount sum;
    const std::size_t n = modules.size();
    for (std::size_t other = 0; other < n; ++other) {
        if (modules[other].group != group || other == module) continue;
        sum.all += pairs[module * n + other];
        sum.randoms += randoms[module * n + other];
    }
    return sum;
}

namespace {

/// Hits of some modules, without the delays known by now, in the order of time. Times are relative to the
/// first hit of all.
struct TimedHit {
    std::int64_t time;
    std::uint32_t module;
};

template <class Wanted>
std::vector<TimedHit> hits_of(std::span<const TimedSingle> hits, const Alignment& alignment, Wanted wanted) {
    std::vector<TimedHit> result;
    for (const TimedSingle& hit : hits) {
        if (!wanted(hit.module)) continue;
        const auto time = static_cast<std::int64_t>(hit.time - hits.front().time);
        result.push_back({time - std::llround(alignment.modules[hit.module].late), hit.module});
    }
    std::sort(result.begin(), result.end(),
              [](const TimedHit& a, const TimedHit& b) { return a.time < b.time; });
    return result;
}

/// Calls visit(module, lag) for each pair with a lag in [from, to]: time of the other less that of the hit.
/// Returns for how many of the hits, until there are more than `most` pairs.
template <class Visit>
std::size_t for_each_lag(const std::vector<TimedHit>& hits, const std::vector<TimedHit>& others,
                         std::int64_t from, std::int64_t to, std::uint64_t most, Visit visit) {
    std::uint64_t pairs = 0;
    std::size_t used = 0;
    auto first = others.begin();
    for (const TimedHit& hit : hits) {
        while (first != others.end() && first->time < hit.time + from)
            ++first;
        for (auto other = first; other != others.end() && other->time <= hit.time + to; ++other) {
            visit(hit.module, other->time - hit.time);
            ++pairs;
        }
        ++used;
        if (pairs > most) break;
    }
    return used;
}

}  // namespace

std::vector<FarPeak> find_far(std::span<const TimedSingle> hits, const Alignment& alignment,
                              const std::vector<bool>& modules, std::uint32_t group, const SearchScale& scale,
                              std::uint64_t max_pairs) {
    auto far = hits_of(hits, alignment, [&](std::uint32_t m) { return modules[m]; });
    const auto others = hits_of(
        hits, alignment, [&](std::uint32_t m) { return !modules[m] && alignment.modules[m].group == group; });
    // As many of the hits as the work allows.
    std::vector<std::uint32_t> bins(scale.bins());
    std::vector<double> pairs_of(modules.size());
    LagHistogram lags(scale, bins.data());
    const std::size_t used = for_each_lag(far, others, -scale.reach, scale.reach, max_pairs,
                                          [&](std::uint32_t m, std::int64_t lag) {
                                              lags.add(lag);
                                              ++pairs_of[m];
                                          });
    far.resize(used);
    std::vector<FarPeak> found;
    const double part = static_cast<double>(scale.width()) / static_cast<double>(2 * scale.reach);
    for (const Peak& peak : lags.peaks(certain_lag, max_peaks)) {
        std::vector<double> near(modules.size());
        const std::int64_t lag = std::llround(peak.lag);
        const std::int64_t half = scale.width() / 2;
        for_each_lag(far, others, lag - half, lag + half, UINT64_MAX,
                     [&](std::uint32_t m, std::int64_t /*lag*/) { ++near[m]; });
        FarPeak one{peak, {}};
        for (std::uint32_t m = 0; m < modules.size(); ++m) {
            if (modules[m] && certainty(near[m], pairs_of[m] * part) >= certain_link)
                one.modules.push_back(m);
        }
        if (!one.modules.empty()) found.push_back(std::move(one));
    }
    return found;
}

}  // namespace petacq::daemon
