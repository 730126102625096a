#include "gpu/rules/coincidence_rules.hpp"

#include <stdexcept>

namespace petacq::gpu {

void check_rules(const CoincidenceRules& rules) {
    if (rules.max_multiplicity < 2) throw std::invalid_argument("max_multiplicity: expected at least 2");
    if (rules.delay && *rules.delay > (std::uint64_t{1} << 62)) {
        throw std::invalid_argument("delay: expected at most 2^62 ticks");
    }
    if (rules.delay && rules.delayeds == DelayedRule::shifted_group && *rules.delay <= rules.window) {
        throw std::invalid_argument("delay: expected more than the window, to shift groups out of it");
    }
}

}  // namespace petacq::gpu
