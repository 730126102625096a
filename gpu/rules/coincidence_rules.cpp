#include "gpu/rules/coincidence_rules.hpp"

#include <stdexcept>

namespace petacq::gpu {

void check_rules(const CoincidenceRules& rules) {
    if (rules.max_multiplicity < 2) throw std::invalid_argument("max_multiplicity: expected at least 2");
    if (rules.delay && *rules.delay > (std::uint64_t{1} << 62)) {
        throw std::invalid_argument("delay: expected at most 2^62 ticks");
    }
    if (rules.gammas) {
        constexpr std::uint64_t longest = INT32_MAX;  // of Triple::gamma_dt
        const GammaRules& gammas = *rules.gammas;
        if (!(0 <= gammas.lower && gammas.lower <= gammas.upper)) {
            throw std::invalid_argument(
                "gammas: expected an energy window from 0 keV or more, not above its end");
        }
        if (gammas.before > longest || gammas.after > longest) {
            throw std::invalid_argument(
                "gammas: expected windows of at most 2^31 - 1 ticks before and after");
        }
        if (gammas.delay && *gammas.delay > (std::uint64_t{1} << 61)) {
            throw std::invalid_argument("gammas: expected a delay of at most 2^61 ticks");
        }
        if (gammas.delay && *gammas.delay <= gammas.before + gammas.after) {
            throw std::invalid_argument(
                "gammas: expected a delay longer than the window, so that it holds no gamma of the pair");
        }
    }
    if (rules.delay && rules.delayeds == DelayedRule::shifted_group && *rules.delay <= rules.window) {
        throw std::invalid_argument("delay: expected more than the window, to shift groups out of it");
    }
}

}  // namespace petacq::gpu
