#include "gpu/cpu/coincidence.hpp"

#include <algorithm>

#include "gpu/rules/multiples.hpp"
#include "gpu/rules/record_order.hpp"

namespace petacq::gpu {

namespace {

constexpr std::size_t share_singles = 8192;

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

void CoincidenceFinder::add_prompts(std::span<const Coincidence> prompts, ThreadSums& sums) const {
    for (const Coincidence& c : prompts)
        sums.add_prompt(c, module_of_[c.crystal_a], module_of_[c.crystal_b]);
}

/// Without a search no single is known to be unpaired, so all are added to `grouped`.
void CoincidenceFinder::take_all(std::span<const Single> singles, Search::Share& share, ThreadSums& sums) {
    for (const Single& s : singles.subspan(share.from, share.to - share.from)) {
        ++sums.decided[s.crystal];
        ++sums.crystals[s.crystal].grouped;
    }
    share.counts.decided = share.to - share.from;
    share.counts.unsearched = share.counts.decided;
    share.next = share.to;
}

template <bool sampled, class Rule>
void CoincidenceFinder::scan_groups(const Rule& rule, std::span<const Single> singles, Search::Share& share,
                                    ThreadSums& sums) const {
    const std::uint64_t tau = rules_.window;
    const std::size_t n = singles.size();
    SingleCounts c;
    std::uint64_t unpaired = 0;  // in a register
    std::uint64_t groups = 0;
    std::size_t i = share.from;
    while (i < share.to) {
        const std::uint64_t opened = singles[i].time;
        ++groups;
        std::size_t j = i + 1;
        if (j == n || singles[j].time - opened > tau) {
            ++unpaired;
            if (sampled && is_sample(opened)) sums.add_energy(singles[i]);
            i = j;
            continue;
        }
        ++j;
        while (j < n && singles[j].time - opened <= tau)
            ++j;
        const std::size_t size = j - i;
        for (const Single& s : singles.subspan(i, size))
            ++sums.crystals[s.crystal].grouped;
        if (size == 2) {
            const Single& a = singles[i];
            const Single& b = singles[i + 1];
            if (sampled && is_sample(opened)) sums.add_energies(a, b);
            if (rule.good(a.crystal, b.crystal)) {
                ++c.prompts;
                share.records.push_back(make_coincidence(a, b, Kind::prompt, 0));
            } else if (a.crystal == b.crystal) {
                c.same_crystal += 2;
            } else {
                c.geometry += 2;
                sums.add_refused(module_of_[a.crystal], module_of_[b.crystal]);
            }
        } else if (size > rules_.max_multiplicity) {
            c.in_oversize_multiples += size;
        } else {
            const std::size_t pairs_before = share.records.size();
            std::vector<bool>& used = share.used;
            used.assign(size, false);
            resolve_multiple(
                static_cast<std::uint32_t>(size), rules_.opener_only(), rules_.policy, rule,
                [&](std::uint32_t k) -> const Single& { return singles[i + k]; },
                [&](std::uint32_t a, std::uint32_t b) {
                    used[a] = true;
                    used[b] = true;
                    share.records.push_back(
                        make_coincidence(singles[i + a], singles[i + b], Kind::prompt, 0));
                });
            const std::size_t pairs = share.records.size() - pairs_before;
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
    c.unpaired = unpaired;
    c.groups = groups;
    c.decided = i - share.from;
    share.next = i;
    share.counts += c;
}

template <bool sampled, class Rule>
void CoincidenceFinder::scan_openers(const Rule& rule, std::span<const Single> singles, Search::Share& share,
                                     ThreadSums& sums) const {
    const std::uint64_t tau = rules_.window;
    const std::size_t n = singles.size();
    SingleCounts c;
    std::size_t j = share.from;
    for (std::size_t i = share.from; i < share.to; ++i) {
        j = std::max(j, i + 1);
        while (j < n && singles[j].time - singles[i].time <= tau)
            ++j;
        const std::size_t size = j - i;
        if (size == 1) {
            ++c.unpaired;
            if (sampled && is_sample(singles[i].time)) sums.add_energy(singles[i]);
            continue;
        }
        ++sums.crystals[singles[i].crystal].grouped;
        if (size == 2) {
            const Single& a = singles[i];
            const Single& b = singles[i + 1];
            if (sampled && is_sample(a.time)) sums.add_energies(a, b);
            if (rule.good(a.crystal, b.crystal)) {
                ++c.prompts;
                ++c.reused;
                share.records.push_back(make_coincidence(a, b, Kind::prompt, 0));
            } else if (a.crystal == b.crystal) {
                ++c.same_crystal;
            } else {
                ++c.geometry;
                sums.add_refused(module_of_[a.crystal], module_of_[b.crystal]);
            }
        } else if (size > rules_.max_multiplicity) {
            ++c.in_oversize_multiples;
        } else {
            const std::size_t pairs_before = share.records.size();
            resolve_multiple(
                static_cast<std::uint32_t>(size), true, rules_.policy, rule,
                [&](std::uint32_t k) -> const Single& { return singles[i + k]; },
                [&](std::uint32_t a, std::uint32_t b) {
                    share.records.push_back(
                        make_coincidence(singles[i + a], singles[i + b], Kind::prompt, 0));
                });
            const std::size_t pairs = share.records.size() - pairs_before;
            if (pairs == 0) {
                ++c.in_dropped_multiples;
            } else {
                c.prompts += pairs;
                c.reused += 2 * pairs - 1;
            }
        }
    }
    c.decided = share.to - share.from;
    c.groups = c.decided;
    share.next = share.to;
    share.counts += c;
}

template <class Rule>
void CoincidenceFinder::scan(const Rule& rule, std::span<const Single> singles, Search::Share& share,
                             ThreadSums& sums) const {
    const bool sampled = samples_energies(rules_.policy);
    if (rules_.one_window_each()) {
        sampled ? scan_groups<true>(rule, singles, share, sums)
                : scan_groups<false>(rule, singles, share, sums);
    } else {
        sampled ? scan_openers<true>(rule, singles, share, sums)
                : scan_openers<false>(rule, singles, share, sums);
    }
}

void CoincidenceFinder::divide(Search& search, std::size_t first_anchor,
                               std::span<const Coincidence> held) const {
    const std::span<const Single> singles = search.singles;
    const std::size_t end = std::max(search.decided, first_anchor);
    const std::size_t anchors = end - first_anchor;
    search.count = 1 + anchors / share_singles;
    if (search.shares.size() < search.count) search.shares.resize(search.count);
    // A greedy scan can start only where a window opens regardless of what precedes it, which is at a gap
    // wider than the window. A share without such a gap is scanned with the share before. In the other mode,
    // shares have no time in common, so that the records of one come before those of the next. Without a
    // search they may be divided anywhere.
    const std::uint64_t gap = rules_.one_window_each() ? rules_.window : 0;
    std::size_t to = end;
    for (std::size_t i = search.count; i-- > 0;) {
        Search::Share& share = search.shares[i];
        std::size_t from = first_anchor + anchors * i / search.count;
        while (rules_.search && from < to && from > first_anchor &&
               singles[from].time - singles[from - 1].time <= gap)
            ++from;
        share.from = from;
        share.to = to;
        share.records.clear();
        to = from;
    }
    search.shares.front().records.assign(held.begin(), held.end());
}

void CoincidenceFinder::find(Search& search, std::size_t index, ThreadSums& sums) const {
    Search::Share& share = search.shares[index];
    share.counts = {};
    share.next = share.from;
    if (!rules_.search) return take_all(search.singles, share, sums);
    const std::size_t held = share.records.size();
    rule_.use([&](const auto& rule) { scan(rule, search.singles, share, sums); });
    for (const Single& s : search.singles.subspan(share.from, share.next - share.from))
        ++sums.decided[s.crystal];
    add_prompts(std::span(share.records).subspan(held), sums);
    if (rules_.delay) {
        share.delayeds.clear();
        const std::size_t from = index == 0 ? 0 : std::min(share.from, search.decided);
        find_delayeds(search.singles, from, std::min(share.to, search.decided), share);
        for (const Coincidence& c : share.delayeds) {
            ++sums.crystals[c.crystal_a].delayeds;
            ++sums.crystals[c.crystal_b].delayeds;
        }
        merge_by_time(share.records, share.delayeds);
    }
    order_equal_times(share.records);
}

}  // namespace petacq::gpu
