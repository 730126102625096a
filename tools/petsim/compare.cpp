#include "tools/petsim/compare.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <tuple>

#include "config/moments.hpp"
#include "gpu/rules/pair_rule.hpp"
#include "tools/petsim/simulation/base/options.hpp"
#include "tools/petsim/truth_singles.hpp"

namespace petacq::sim {

namespace {

using gpu::Coincidence;

auto order_of(const Coincidence& c) {
    return std::tuple(c.time, c.crystal_a, c.dt, c.crystal_b, c.energy_a, c.energy_b);
}

/// Compares two singles or two coincidences.
struct Before {
    template <class Record>
    bool operator()(const Record& a, const Record& b) const {
        return order_of(a) < order_of(b);
    }
};

Coincidence pair_of(const TruthRecord& a, const TruthRecord& b) {
    Coincidence c;
    c.time = a.time;
    c.dt = static_cast<std::uint32_t>(b.time - a.time);
    c.crystal_a = a.crystal;
    c.crystal_b = b.crystal;
    c.energy_a = a.energy;
    c.energy_b = b.energy;
    return c;
}

class Judge {
  public:
    Judge(const config::Geometry& geometry, const PairingRules& rules)
        : pair_rule_(pair_rule(geometry, rules)), rules_(rules) {}

    /// Whether the frame was sent and can be converted.
    [[nodiscard]] static bool readable(const TruthRecord& t, Comparison& out) {
        if ((t.flags & (truth_clock_jump | truth_reset)) != 0) {
            ++out.moved;
            return false;
        }
        if ((t.flags & truth_lost) != 0 || t.crystal == no_crystal) return false;
        if ((t.flags & truth_corrupted) != 0) {
            const auto field = static_cast<Field>(((t.flags & truth_field_mask) >> truth_field_shift) - 1);
            if (breaks_datagram(field) || field == Field::time) return false;
        }
        return true;
    }

    [[nodiscard]] bool gamma(const TruthRecord& t) const {
        return rules_.gammas && t.energy >= static_cast<float>(rules_.gammas->lower_keV) &&
               t.energy <= static_cast<float>(rules_.gammas->upper_keV);
    }

    [[nodiscard]] bool single_of_pair(const TruthRecord& t) const {
        return !gamma(t) && (!rules_.filter || (t.energy >= rules_.lower && t.energy <= rules_.upper));
    }

    [[nodiscard]] bool good(const TruthRecord& a, const TruthRecord& b) const {
        return pair_rule_.good(a.crystal, b.crystal);
    }

    [[nodiscard]] bool together(const TruthRecord& a, const TruthRecord& b) const {
        return b.time - a.time <= rules_.window_ticks;
    }

    [[nodiscard]] const PairingRules& rules() const { return rules_; }

  private:
    static gpu::PairRule pair_rule(const config::Geometry& geometry, const PairingRules& rules) {
        gpu::CoincidenceRules of_pairs;
        of_pairs.min_module_difference = rules.min_module_difference;
        of_pairs.max_ring_difference = rules.max_ring_difference;
        return gpu::PairRule::of(geometry, of_pairs);
    }

    gpu::PairRule pair_rule_;
    const PairingRules& rules_;
};

// The start and the size of the group of each single, from a plain scan over all singles in order.
struct Groups {
    std::vector<std::uint64_t> begin;
    std::vector<std::uint32_t> size;
};

Groups scan(const std::vector<TruthRecord>& singles, const Judge& judge) {
    Groups g;
    g.begin.resize(singles.size());
    g.size.resize(singles.size());
    std::size_t j = 0;
    for (std::size_t i = 0; i < singles.size(); i = judge.rules().every ? i + 1 : j) {
        j = std::max(j, i + 1);
        while (j < singles.size() && judge.together(singles[i], singles[j]))
            ++j;
        const std::size_t end = judge.rules().every ? i + 1 : j;
        for (std::size_t k = i; k < end; ++k) {
            g.begin[k] = i;
            g.size[k] = static_cast<std::uint32_t>(j - i);
        }
    }
    return g;
}

// Indices of the two singles of each annihilation that has both: of a photon with several the first one.
std::vector<std::pair<std::uint64_t, std::uint64_t>> both_photons(const std::vector<TruthRecord>& singles) {
    std::vector<std::uint64_t> order;
    for (std::uint64_t i = 0; i < singles.size(); ++i) {
        if (singles[i].annihilation != 0 && (singles[i].flags & truth_photon) != 0 && !is_gamma(singles[i]))
            order.push_back(i);
    }
    std::sort(order.begin(), order.end(), [&](std::uint64_t a, std::uint64_t b) {
        return std::tuple(singles[a].annihilation, photon_of(singles[a]), a) <
               std::tuple(singles[b].annihilation, photon_of(singles[b]), b);
    });
    const auto again = [&](std::uint64_t a, std::uint64_t b) {
        return singles[a].annihilation == singles[b].annihilation && of_one_photon(singles[a], singles[b]);
    };
    order.erase(std::unique(order.begin(), order.end(), again), order.end());
    std::vector<std::pair<std::uint64_t, std::uint64_t>> out;
    for (std::size_t i = 1; i < order.size(); ++i) {
        if (singles[order[i - 1]].annihilation == singles[order[i]].annihilation) {
            out.emplace_back(std::minmax(order[i - 1], order[i]));
        }
    }
    std::sort(out.begin(), out.end());
    return out;
}

/// Number of pairs in `list` that `other` lacks; both in order.
std::uint64_t missing_in(const std::vector<Coincidence>& other, const std::vector<Coincidence>& list) {
    std::vector<Coincidence> missing;
    std::set_difference(list.begin(), list.end(), other.begin(), other.end(), std::back_inserter(missing),
                        Before());
    return missing.size();
}

void classify(const std::vector<TruthRecord>& singles, const std::vector<Coincidence>& prompts,
              Comparison& out) {
    for (const Coincidence& c : prompts) {
        const TruthRecord* a = find_single(singles, c.time, c.crystal_a, c.energy_a);
        const TruthRecord* b = find_single(singles, c.time + c.dt, c.crystal_b, c.energy_b);
        if (a == nullptr || b == nullptr) {
            ++out.foreign;
        } else if (!of_one_decay(*a, *b)) {
            ++out.randoms;
        } else if (((a->flags | b->flags) & truth_intrinsic) != 0) {
            ++out.intrinsic;
        } else if (of_one_photon(*a, *b)) {
            ++out.one_photon;
        } else if (is_gamma(*a) || is_gamma(*b)) {
            ++out.spurious;
        } else if (((a->flags | b->flags) & truth_scattered) != 0) {
            ++out.scattered;
        } else {
            ++out.trues;
        }
    }
}

void compare_whole_list(const std::vector<TruthRecord>& singles, const Groups& groups, const Judge& judge,
                        const std::vector<Coincidence>& prompts, Comparison& out) {
    std::vector<Coincidence> expected;
    for (std::size_t i = 0; i + 1 < singles.size(); ++i) {
        if (groups.begin[i] == i && groups.size[i] == 2 && judge.good(singles[i], singles[i + 1])) {
            expected.push_back(pair_of(singles[i], singles[i + 1]));
        }
    }
    std::sort(expected.begin(), expected.end(), Before());
    out.prompts_expected = expected.size();
    out.prompts_missing = missing_in(prompts, expected);
    out.prompts_surplus = missing_in(expected, prompts);
}

CalibrationErrors calibration_errors(const std::vector<TruthRecord>& truth, const PairingRules& rules) {
    CalibrationErrors out;
    config::Moments energy;
    config::Moments time;
    for (const TruthRecord& t : truth) {
        if (t.hits != 1 || (t.flags & (truth_corrupted | truth_clock_jump | truth_reset)) != 0) continue;
        ++out.frames;
        if (t.crystal == no_crystal) ++out.outside;
        if (t.crystal != t.true_crystal) continue;
        ++out.right;
        time.add(static_cast<double>(static_cast<std::int64_t>(t.time - t.true_time)));
        const bool inside = t.true_energy >= rules.lower && t.true_energy <= rules.upper;
        if (t.true_energy > 0 && (inside || !rules.filter))
            energy.add(static_cast<double>(t.energy) / static_cast<double>(t.true_energy) - 1);
    }
    out.energy_mean = energy.mean();
    out.energy_rms = energy.spread();
    out.time_mean = time.mean();
    out.time_rms = time.spread();
    return out;
}

}  // namespace

Comparison compare(const config::Geometry& geometry, const PairingRules& rules,
                   std::vector<TruthRecord> truth, std::vector<gpu::Coincidence> coincidences,
                   std::vector<gpu::Triple> triples) {
    Comparison out;
    const Judge judge(geometry, rules);
    out.tags = std::erase_if(truth, [](const TruthRecord& t) { return (t.flags & truth_tag) != 0; });
    out.frames = truth.size();
    if (std::any_of(truth.begin(), truth.end(), [](const TruthRecord& t) { return t.hits > 0; }))
        out.calibration = calibration_errors(truth, rules);
    std::erase_if(truth, [&](const TruthRecord& t) { return !judge.readable(t, out); });
    std::sort(truth.begin(), truth.end(), Before());
    std::vector<TruthRecord> gammas;
    std::copy_if(truth.begin(), truth.end(), std::back_inserter(gammas),
                 [&](const TruthRecord& t) { return judge.gamma(t); });
    std::erase_if(truth, [&](const TruthRecord& t) { return !judge.single_of_pair(t); });
    const std::vector<TruthRecord>& singles = truth;
    out.singles = singles.size();
    if (rules.gammas)
        out.triples = compare_triples(*rules.gammas, singles, gammas, coincidences, std::move(triples));
    out.delayeds =
        std::erase_if(coincidences, [](const Coincidence& c) { return c.kind != gpu::Kind::prompt; });
    const std::vector<Coincidence>& prompts = coincidences;
    out.prompts = prompts.size();
    std::sort(coincidences.begin(), coincidences.end(), Before());

    const Groups groups = scan(singles, judge);
    for (const auto& [i, j] : both_photons(singles)) {
        ++out.pairs_sent;
        if (!judge.together(singles[i], singles[j]) || !judge.good(singles[i], singles[j])) continue;
        ++out.detectable;
        const Coincidence wanted = pair_of(singles[i], singles[j]);
        if (std::binary_search(prompts.begin(), prompts.end(), wanted, Before())) {
            ++out.found;
        } else if (groups.size[i] > 2) {
            ++out.in_multiples;
        } else if (!rules.every && groups.begin[i] != groups.begin[j]) {
            ++out.consumed;
        } else {
            ++out.unexplained;
        }
    }
    classify(singles, prompts, out);
    if (rules.remove_multiples && !rules.every) compare_whole_list(singles, groups, judge, prompts, out);
    return out;
}

}  // namespace petacq::sim
