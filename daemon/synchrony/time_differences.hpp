// Time differences between the singles of each module and those of all others: in step, they have a peak at
// zero, and randoms are even. A module that is late sees all its partners early.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace petacq::daemon {

/// A single, as far as times are compared.
struct TimedSingle {
    std::uint64_t time = 0;  ///< ticks, corrected
    std::uint32_t module = 0;
};

/// What limits a search.
struct SearchScale {
    std::int64_t bin = 1;    ///< ticks
    std::int64_t reach = 0;  ///< ticks, to either side
    /// Width of a peak.
    static constexpr int bins_per_peak = 4;
    [[nodiscard]] std::int64_t width() const { return bin * bins_per_peak; }
    [[nodiscard]] std::size_t bins() const { return static_cast<std::size_t>(2 * (reach / bin) + 1); }
};

/// How certain it is that `count` is more than chance makes of `expected`: the negative logarithm of a bound
/// of the probability; 0: it is not more.
double certainty(double count, double expected);

struct Peak {
    double lag = 0;      ///< ticks by which partners are later
    double error = 0;    ///< ticks, standard deviation of `lag`
    double excess = 0;   ///< pairs above the randoms
    double randoms = 0;  ///< pairs expected by chance in the width of the peak
};

/// The differences of one module: a histogram over the lags from -reach to +reach.
class LagHistogram {
  public:
    LagHistogram(const SearchScale& scale, std::uint32_t* bins) : scale_(scale), bins_(bins) {}

    void add(std::int64_t lag) { ++bins_[position(lag)]; }
    /// The peaks whose certainty is at least this, the highest first.
    [[nodiscard]] std::vector<Peak> peaks(double min_certainty, std::size_t most) const;
    /// Pairs above the randoms within half the width of a peak around this lag.
    [[nodiscard]] double excess_at(double lag) const;

  private:
    [[nodiscard]] std::size_t position(std::int64_t lag) const {
        return static_cast<std::size_t>((lag + scale_.reach) / scale_.bin);
    }
    [[nodiscard]] double mean() const;
    [[nodiscard]] Peak refined(std::size_t first, double mean) const;

    SearchScale scale_;
    std::uint32_t* bins_;  ///< SearchScale::bins() of them
};

/// Calls visit(a, b, difference) for each pair of hits of different modules that are at most `reach` apart:
/// time of b less time of a, not negative. REQUIRES: `hits` are in the order of time.
template <class Visit>
void for_each_pair(std::span<const TimedSingle> hits, std::int64_t reach, Visit visit) {
    // Where the hits of one module in a row end. A burst of thousands within the reach makes no pairs.
    std::vector<std::uint32_t> row_end(hits.size());
    for (std::size_t i = hits.size(); i-- > 0;) {
        const bool goes_on = i + 1 < hits.size() && hits[i + 1].module == hits[i].module;
        row_end[i] = goes_on ? row_end[i + 1] : static_cast<std::uint32_t>(i + 1);
    }
    for (std::size_t i = 0; i < hits.size(); ++i) {
        for (std::size_t j = row_end[i]; j < hits.size();) {
            const auto difference = static_cast<std::int64_t>(hits[j].time - hits[i].time);
            if (difference > reach) break;
            if (hits[j].module == hits[i].module) {
                j = row_end[j];
                continue;
            }
            visit(hits[i].module, hits[j].module, difference);
            ++j;
        }
    }
}

}  // namespace petacq::daemon
