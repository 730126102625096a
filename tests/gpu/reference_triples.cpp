// The gammas of pairs, pair by pair and gamma by gamma.
#include <algorithm>
#include <set>

#include "tests/gpu/reference.hpp"

namespace petacq::test {

namespace {

using gpu::GammaPolicy;
using gpu::GammaRules;
using gpu::Single;
using gpu::ThirdPhoton;
using Time = __int128;  // differences and sums of times may not fit in 64 bits

// The numbers of the gammas that belong to a pair, or, with the delay of the gammas, to a time so much later.
std::vector<std::size_t> gammas_of(const gpu::RecordVector<Single>& gammas, const GammaRules& rules,
                                   Time time) {
    std::vector<std::size_t> inside;
    for (std::size_t i = 0; i < gammas.size(); ++i) {
        const Time apart = gammas[i].time - time;
        if (-Time{rules.before} <= apart && apart <= Time{rules.after}) inside.push_back(i);
    }
    if (rules.policy == GammaPolicy::only_one && inside.size() != 1) return {};
    if (rules.policy == GammaPolicy::nearest && !inside.empty()) {
        const auto distance = [&](std::size_t i) {
            const Time apart = gammas[i].time - time;
            return apart < 0 ? -apart : apart;
        };
        return {*std::min_element(inside.begin(), inside.end(),
                                  [&](std::size_t a, std::size_t b) { return distance(a) < distance(b); })};
    }
    return inside;
}

}  // namespace

void add_reference_triples(Decided& decided, gpu::RecordVector<Single> gammas, const GammaRules& rules) {
    std::sort(gammas.begin(), gammas.end(), single_before);
    std::set<std::size_t> used;
    for (const gpu::Coincidence& pair : decided.coincidences) {
        const auto add = [&](Time delay, ThirdPhoton third) {
            const Time time = pair.time + delay;
            for (const std::size_t i : gammas_of(gammas, rules, time)) {
                const auto dt = static_cast<std::int32_t>(gammas[i].time - time);
                decided.triples.push_back({pair, dt, gammas[i].crystal, gammas[i].energy, third});
                if (third == ThirdPhoton::coincident) used.insert(i);
                ++(third == ThirdPhoton::coincident ? decided.gamma_counts.triples
                                                    : decided.gamma_counts.delayed);
            }
        };
        add(0, ThirdPhoton::coincident);
        if (rules.delay) add(*rules.delay, ThirdPhoton::delayed);
    }
    decided.gamma_counts.used = used.size();
    decided.gamma_counts.unused = gammas.size() - used.size();
    decided.gamma_counts.reused = decided.gamma_counts.triples - used.size();
    decided.singles.insert(decided.singles.end(), gammas.begin(), gammas.end());
    std::sort(decided.singles.begin(), decided.singles.end(), single_before);
}

}  // namespace petacq::test
