#include "tools/petsim/compare_triples.hpp"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <span>
#include <tuple>

#include "tools/petsim/truth_singles.hpp"

namespace petacq::sim {

namespace {

using gpu::Coincidence;
using gpu::Kind;
using gpu::ThirdPhoton;
using gpu::Triple;

struct TripleBefore {
    static auto order_of(const Triple& t) {
        const Coincidence& p = t.pair;
        return std::tuple(p.time, p.kind, p.dt, p.crystal_a, p.crystal_b, p.energy_a, p.energy_b, t.third,
                          t.gamma_dt, t.gamma_crystal, t.gamma_energy);
    }
    bool operator()(const Triple& a, const Triple& b) const { return order_of(a) < order_of(b); }
};

/// The triples of one pair, from a plain scan over the gammas, which are in order.
void add_triples(const config::Gammas& rules, const std::vector<TruthRecord>& gammas, const Coincidence& pair,
                 ThirdPhoton third, std::vector<Triple>& out) {
    const std::uint64_t delay = third == ThirdPhoton::delayed ? *rules.delay_ticks : 0;
    const auto dt_of = [&](const TruthRecord& gamma) {
        return static_cast<std::int64_t>(gamma.time - pair.time - delay);
    };
    const auto first = std::partition_point(gammas.begin(), gammas.end(), [&](const TruthRecord& gamma) {
        return dt_of(gamma) < -std::int64_t{rules.before_ticks};
    });
    const auto end = std::partition_point(first, gammas.end(), [&](const TruthRecord& gamma) {
        return dt_of(gamma) <= std::int64_t{rules.after_ticks};
    });
    const auto nearer = [&](const TruthRecord& a, const TruthRecord& b) {
        return std::abs(dt_of(a)) < std::abs(dt_of(b));
    };
    std::span<const TruthRecord> kept(first, end);
    if (rules.policy == config::GammaPolicy::only_one && kept.size() != 1) return;
    if (rules.policy == config::GammaPolicy::nearest && !kept.empty()) {
        const auto nearest = std::min_element(kept.begin(), kept.end(), nearer);
        kept = kept.subspan(static_cast<std::size_t>(nearest - kept.begin()), 1);
    }
    for (const TruthRecord& gamma : kept)
        out.push_back({pair, static_cast<std::int32_t>(dt_of(gamma)), gamma.crystal, gamma.energy, third});
}

/// An expected triple of a prompt with a coincident gamma.
void classify(const std::vector<TruthRecord>& singles, const std::vector<TruthRecord>& gammas,
              const Triple& t, TripleComparison& out) {
    const Coincidence& p = t.pair;
    const TruthRecord* a = find_single(singles, p.time, p.crystal_a, p.energy_a);
    const TruthRecord* b = find_single(singles, p.time + p.dt, p.crystal_b, p.energy_b);
    const std::uint64_t time = p.time + static_cast<std::uint64_t>(std::int64_t{t.gamma_dt});
    const TruthRecord* gamma = find_single(gammas, time, t.gamma_crystal, t.gamma_energy);
    if (a == nullptr || b == nullptr || gamma == nullptr) {
        ++out.foreign;
    } else if (!of_one_decay(*a, *b) || !of_one_decay(*a, *gamma)) {
        ++out.randoms;
    } else if (is_gamma(*a) || is_gamma(*b) || of_one_photon(*a, *b) || !is_gamma(*gamma)) {
        ++out.spurious;
    } else {
        ++out.trues;
    }
}

}  // namespace

TripleComparison compare_triples(const config::Gammas& rules, const std::vector<TruthRecord>& singles,
                                 const std::vector<TruthRecord>& gammas,
                                 const std::vector<gpu::Coincidence>& pairs,
                                 std::vector<gpu::Triple> triples) {
    TripleComparison out;
    out.gammas = gammas.size();
    out.triples = triples.size();
    std::vector<Triple> expected;
    for (const Coincidence& pair : pairs) {
        add_triples(rules, gammas, pair, ThirdPhoton::coincident, expected);
        if (rules.delay_ticks) add_triples(rules, gammas, pair, ThirdPhoton::delayed, expected);
    }
    std::sort(expected.begin(), expected.end(), TripleBefore());
    std::sort(triples.begin(), triples.end(), TripleBefore());
    out.expected = expected.size();
    std::vector<Triple> good;
    std::set_intersection(triples.begin(), triples.end(), expected.begin(), expected.end(),
                          std::back_inserter(good), TripleBefore());
    out.missing = expected.size() - good.size();
    out.foreign = triples.size() - good.size();
    for (const Triple& t : good) {
        if (t.pair.kind == Kind::delayed || t.third == ThirdPhoton::delayed) {
            ++out.delayeds;
        } else {
            classify(singles, gammas, t, out);
        }
    }
    return out;
}

}  // namespace petacq::sim
