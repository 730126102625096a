#include "gpu/host/coincidence.hpp"

#include <algorithm>

#include "gpu/multiples.hpp"

namespace petacq::gpu {

namespace {

bool less(const Coincidence& a, const Coincidence& b) {
    return before(a, b);
}

/// Merges `added` into `out`, both ordered by time, in place from the back.
void merge_by_time(std::vector<Coincidence>& out, const std::vector<Coincidence>& added) {
    std::size_t from = out.size();
    std::size_t more = added.size();
    out.resize(from + more);
    for (std::size_t to = out.size(); more > 0;) {
        const bool take_old = from > 0 && out[from - 1].time > added[more - 1].time;
        out[--to] = take_old ? out[--from] : added[--more];
    }
}

}  // namespace

void order_equal_times(std::span<Coincidence> records) {
    for (std::size_t i = 1; i < records.size(); ++i) {
        if (!before(records[i], records[i - 1])) continue;
        // Only records with equal times can be out of order: sort the run that shares this time.
        const std::uint64_t time = records[i].time;
        std::size_t first = i - 1;
        while (first > 0 && records[first - 1].time == time)
            --first;
        std::size_t last = i + 1;
        while (last < records.size() && records[last].time == time)
            ++last;
        std::sort(records.begin() + static_cast<std::ptrdiff_t>(first),
                  records.begin() + static_cast<std::ptrdiff_t>(last), less);
        i = last;
    }
}

CoincidenceFinder::CoincidenceFinder(const PairRule& rule, const CoincidenceRules& rules, WorkerPool& pool)
    : rule_(rule), rules_(rules), pool_(pool), shares_(pool.size()), cuts_(pool.size() + 1) {}

void CoincidenceFinder::scan_groups(std::span<const Single> singles, std::size_t from, std::size_t to,
                                    Share& share) const {
    const std::uint64_t tau = rules_.window;
    const std::size_t n = singles.size();
    SingleCounts c;
    std::size_t i = from;
    while (i < to) {
        const std::uint64_t opened = singles[i].time;
        std::size_t j = i + 1;
        while (j < n && singles[j].time - opened <= tau)
            ++j;
        const std::size_t size = j - i;
        if (size == 1) {
            ++c.unpaired;
        } else if (size == 2) {
            const Single& a = singles[i];
            const Single& b = singles[i + 1];
            if (rule_.good(a.crystal, b.crystal)) {
                ++c.prompts;
                share.prompts.push_back(make_coincidence(a, b, Kind::prompt, 0));
            } else {
                (a.crystal == b.crystal ? c.same_crystal : c.geometry) += 2;
            }
        } else if (size > rules_.max_multiplicity) {
            c.in_oversize_multiples += size;
        } else {
            const std::size_t pairs_before = share.prompts.size();
            std::vector<bool>& used = share.used;
            used.assign(size, false);
            resolve_multiple(
                static_cast<std::uint32_t>(size), false, rules_.policy, rule_,
                [&](std::uint32_t k) -> const Single& { return singles[i + k]; },
                [&](std::uint32_t a, std::uint32_t b) {
                    used[a] = true;
                    used[b] = true;
                    share.prompts.push_back(
                        make_coincidence(singles[i + a], singles[i + b], Kind::prompt, 0));
                });
            const std::size_t pairs = share.prompts.size() - pairs_before;
            if (pairs == 0) {
                c.in_dropped_multiples += size;
            } else {
                const auto distinct = static_cast<std::size_t>(std::count(used.begin(), used.end(), true));
                c.prompts += pairs;
                c.unused_in_multiples += size - distinct;
                c.reused += 2 * pairs - distinct;
            }
        }
        i = j;
    }
    c.decided = i - from;
    share.next = i;
    share.counts += c;
}

void CoincidenceFinder::scan_openers(std::span<const Single> singles, std::size_t from, std::size_t to,
                                     Share& share) const {
    const std::uint64_t tau = rules_.window;
    const std::size_t n = singles.size();
    SingleCounts c;
    std::size_t j = from;
    for (std::size_t i = from; i < to; ++i) {
        j = std::max(j, i + 1);
        while (j < n && singles[j].time - singles[i].time <= tau)
            ++j;
        const std::size_t size = j - i;
        if (size == 1) {
            ++c.unpaired;
        } else if (size == 2) {
            const Single& a = singles[i];
            const Single& b = singles[i + 1];
            if (rule_.good(a.crystal, b.crystal)) {
                ++c.prompts;
                ++c.reused;
                share.prompts.push_back(make_coincidence(a, b, Kind::prompt, 0));
            } else {
                ++(a.crystal == b.crystal ? c.same_crystal : c.geometry);
            }
        } else if (size > rules_.max_multiplicity) {
            ++c.in_oversize_multiples;
        } else {
            const std::size_t pairs_before = share.prompts.size();
            resolve_multiple(
                static_cast<std::uint32_t>(size), true, rules_.policy, rule_,
                [&](std::uint32_t k) -> const Single& { return singles[i + k]; },
                [&](std::uint32_t a, std::uint32_t b) {
                    share.prompts.push_back(
                        make_coincidence(singles[i + a], singles[i + b], Kind::prompt, 0));
                });
            const std::size_t pairs = share.prompts.size() - pairs_before;
            if (pairs == 0) {
                ++c.in_dropped_multiples;
            } else {
                c.prompts += pairs;
                c.reused += 2 * pairs - 1;
            }
        }
    }
    c.decided = to - from;
    share.next = to;
    share.counts += c;
}

void CoincidenceFinder::scan_delayed(std::span<const Single> singles, std::size_t from, std::size_t to,
                                     Share& share) const {
    const std::uint64_t delay = *rules_.delay;
    const std::uint64_t reach = delay + rules_.window;
    const std::size_t n = singles.size();
    std::size_t lo = from;
    std::size_t hi = from;
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
            if (rule_.good(opener.crystal, singles[lo].crystal)) take(opener, singles[lo]);
        } else if (partners >= rules_.max_multiplicity) {
            ++c.delayed_oversize;
        } else {
            const std::uint64_t pairs_before = c.delayeds;
            resolve_multiple(
                static_cast<std::uint32_t>(partners + 1), true, rules_.policy, rule_,
                [&](std::uint32_t k) -> const Single& { return k == 0 ? opener : singles[lo + k - 1]; },
                [&](std::uint32_t, std::uint32_t b) { take(opener, singles[lo + b - 1]); });
            if (c.delayeds == pairs_before) ++c.delayed_dropped;
        }
    }
    share.counts += c;
}

std::size_t CoincidenceFinder::find(std::span<const Single> singles, std::size_t first_anchor,
                                    std::size_t decided, std::uint32_t workers, std::vector<Coincidence>& out,
                                    SingleCounts& counts) {
    const bool greedy = rules_.mode == WindowMode::single;
    // Divide the anchors among the workers. A greedy scan can start only where a window opens regardless of
    // what precedes it, which is at a gap wider than the window. A share without such a gap is scanned by the
    // worker of the previous share.
    const std::size_t anchors = decided > first_anchor ? decided - first_anchor : 0;
    cuts_[0] = first_anchor;
    cuts_[workers] = std::max(decided, first_anchor);
    const auto nominal = [&](std::uint32_t w) { return first_anchor + anchors * w / workers; };
    for (std::uint32_t w = workers - 1; w > 0; --w) {
        std::size_t cut = nominal(w);
        if (greedy) {
            const std::size_t end = cuts_[w + 1];
            while (cut < end && cut > first_anchor &&
                   singles[cut].time - singles[cut - 1].time <= rules_.window)
                ++cut;
        }
        cuts_[w] = std::max(cut, first_anchor);
    }
    pool_.run(workers, [&](std::uint32_t w) {
        Share& share = shares_[w];
        share.prompts.clear();
        share.delayeds.clear();
        share.counts = {};
        share.next = cuts_[w];
        if (greedy) {
            scan_groups(singles, cuts_[w], cuts_[w + 1], share);
        } else {
            scan_openers(singles, cuts_[w], cuts_[w + 1], share);
        }
        if (rules_.delay) scan_delayed(singles, decided * w / workers, decided * (w + 1) / workers, share);
    });
    std::size_t next = first_anchor;
    for (std::uint32_t w = 0; w < workers; ++w) {
        const Share& share = shares_[w];
        out.insert(out.end(), share.prompts.begin(), share.prompts.end());
        counts += share.counts;
        next = std::max(next, share.next);
    }
    if (rules_.delay) {
        delayeds_.clear();
        for (std::uint32_t w = 0; w < workers; ++w) {
            delayeds_.insert(delayeds_.end(), shares_[w].delayeds.begin(), shares_[w].delayeds.end());
        }
        merge_by_time(out, delayeds_);
    }
    order_equal_times(out);
    return next;
}

}  // namespace petacq::gpu
