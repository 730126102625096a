// The delayed coincidences, by either rule.
#include <algorithm>

#include "gpu/cpu/coincidence.hpp"
#include "gpu/rules/multiples.hpp"
#include "gpu/rules/shifted_group.hpp"

namespace petacq::gpu {

namespace {

/// Finds the openers of prompt groups among ordered singles.
class Openers {
  public:
    Openers(std::span<const Single> singles, std::uint64_t window) : singles_(singles), window_(window) {}
    /// The opener of the group that holds single k. `known`: an opener at or before it. Neither argument may
    /// fall from one call to the next.
    std::size_t of(std::size_t k, std::size_t known) {
        if (k < end_) return opener_;
        // After a gap wider than the window a group begins, whatever comes before.
        const std::size_t first = std::max(known, end_);
        opener_ = k;
        while (opener_ > first && singles_[opener_].time - singles_[opener_ - 1].time <= window_)
            --opener_;
        for (end_ = end_of(opener_); end_ <= k; end_ = end_of(opener_))
            opener_ = end_;
        return opener_;
    }

  private:
    [[nodiscard]] std::size_t end_of(std::size_t opener) const {
        std::size_t end = opener + 1;
        while (end < singles_.size() && singles_[end].time - singles_[opener].time <= window_)
            ++end;
        return end;
    }
    std::span<const Single> singles_;
    std::uint64_t window_;
    std::size_t opener_ = 0;  // of the group found last
    std::size_t end_ = 0;
};

/// The first of the ordered singles, from `from` on, that lies `delay` or more after `time`. How many are
/// passed cannot be predicted, so four at a time are counted without a branch.
std::size_t skip(std::span<const Single> singles, std::size_t from, std::uint64_t time, std::uint64_t delay) {
    constexpr std::size_t step = 4;
    while (from + step <= singles.size()) {
        std::size_t passed = 0;
        for (std::size_t k = from; k < from + step; ++k)
            passed += singles[k].time - time < delay ? 1 : 0;
        from += passed;
        if (passed < step) return from;
    }
    while (from < singles.size() && singles[from].time - time < delay)
        ++from;
    return from;
}

}  // namespace

template <class Rule>
void CoincidenceFinder::scan_shifted(const Rule& rule, std::span<const Single> singles,
                                     Search::Share& share) const {
    if (share.from >= share.to) return;
    const std::uint64_t tau = rules_.window;
    const std::uint64_t delay = *rules_.delay;
    const bool every = !rules_.one_window_each();
    const std::size_t n = singles.size();
    Openers openers(singles, tau);
    SingleCounts c;
    std::size_t group_end = share.from;
    // The singles of the window that the shifted opener opens.
    const auto earlier = [&](const Single& s) { return before_shifted(s, singles[share.from], delay); };
    auto first = static_cast<std::size_t>(
        std::partition_point(singles.begin() + static_cast<std::ptrdiff_t>(share.from), singles.end(),
                             earlier) -
        singles.begin());
    std::size_t end = first;
    for (std::size_t i = share.from; i < share.to; i = every ? i + 1 : group_end) {
        const Single& opener = singles[i];
        const auto until_shifted = [&](std::size_t k) { return delay - (singles[k].time - opener.time); };
        group_end = std::max(group_end, i + 1);
        while (group_end < n && singles[group_end].time - opener.time <= tau)
            ++group_end;
        first = std::max(first, i + 1);
        first = skip(singles, first, opener.time, delay);
        while (first < n && before_shifted(singles[first], opener, delay))
            ++first;
        if (!every && first > group_end && until_shifted(first - 1) <= tau &&
            until_shifted(openers.of(first - 1, group_end)) <= tau) {
            ++c.groups_blocked;
            continue;
        }
        end = std::max(end, first);
        while (end < n && singles[end].time - opener.time <= delay + tau)
            ++end;
        if (end == first) continue;
        const std::size_t group_size = group_end - i;
        const std::size_t window_size = end - first;
        const auto take = [&](const Single& a, const Single& b) {
            ++c.delayeds;
            share.delayeds.push_back(make_coincidence(a, b, Kind::delayed, 0));
        };
        if (group_size + window_size > rules_.max_multiplicity) {
            ++c.delayed_oversize;
        } else if (group_size + window_size == 2) {
            const Single& b = singles[first];
            if (rule.good(opener.crystal, b.crystal)) take(opener, {b.time - delay, b.crystal, b.energy});
        } else {
            const std::uint64_t pairs_before = c.delayeds;
            const ShiftedGroup<Rule> group{&opener,
                                           static_cast<std::uint32_t>(group_size),
                                           &singles[first],
                                           static_cast<std::uint32_t>(window_size),
                                           delay,
                                           rules_.opener_only(),
                                           rule};
            group.resolve(rules_.policy,
                          [&](const ShiftedMember& a, const ShiftedMember& b) { take(a.single, b.single); });
            if (c.delayeds == pairs_before) ++c.delayed_dropped;
        }
    }
    share.counts += c;
}

template <class Rule>
void CoincidenceFinder::scan_delayed(const Rule& rule, std::span<const Single> singles, std::size_t from,
                                     std::size_t to, Search::Share& share) const {
    if (from >= to) return;
    const std::uint64_t delay = *rules_.delay;
    const std::uint64_t reach = delay + rules_.window;
    const std::size_t n = singles.size();
    const auto first =
        std::partition_point(singles.begin() + static_cast<std::ptrdiff_t>(from), singles.end(),
                             [&](const Single& s) { return s.time - singles[from].time < delay; });
    auto lo = static_cast<std::size_t>(first - singles.begin());
    std::size_t hi = lo;
    SingleCounts c;
    const auto take = [&](const Single& a, const Single& b) {
        ++c.delayeds;
        share.delayeds.push_back(make_coincidence(a, b, Kind::delayed, delay));
    };
    for (std::size_t i = from; i < to; ++i) {
        const Single& opener = singles[i];
        lo = std::max(lo, i + 1);
        while (lo < n && singles[lo].time - opener.time < delay)
            ++lo;
        hi = std::max(hi, lo);
        while (hi < n && singles[hi].time - opener.time <= reach)
            ++hi;
        const std::size_t partners = hi - lo;
        if (partners == 0) continue;
        if (partners == 1) {
            if (rule.good(opener.crystal, singles[lo].crystal)) take(opener, singles[lo]);
        } else if (partners >= rules_.max_multiplicity) {
            ++c.delayed_oversize;
        } else {
            const std::uint64_t pairs_before = c.delayeds;
            resolve_multiple(
                static_cast<std::uint32_t>(partners + 1), true, rules_.policy, rule,
                [&](std::uint32_t k) -> const Single& { return k == 0 ? opener : singles[lo + k - 1]; },
                [&](std::uint32_t, std::uint32_t b) { take(opener, singles[lo + b - 1]); });
            if (c.delayeds == pairs_before) ++c.delayed_dropped;
        }
    }
    share.counts += c;
}

void CoincidenceFinder::find_delayeds(std::span<const Single> singles, std::size_t from, std::size_t to,
                                      Search::Share& share) const {
    rule_.use([&](const auto& rule) {
        if (rules_.delayeds == DelayedRule::shifted_group) {
            scan_shifted(rule, singles, share);
        } else {
            scan_delayed(rule, singles, from, to, share);
        }
    });
}

}  // namespace petacq::gpu
