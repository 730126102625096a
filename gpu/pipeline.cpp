#include "gpu/pipeline.hpp"

#include <stdexcept>

namespace petacq::gpu {

void check_rules(const CoincidenceRules& rules) {
    if (rules.max_multiplicity < 2) throw std::invalid_argument("max_multiplicity: expected at least 2");
    if (rules.delay && *rules.delay > (std::uint64_t{1} << 62)) {
        throw std::invalid_argument("delay: expected at most 2^62 ticks");
    }
}

SinglesHistograms& SinglesHistograms::operator-=(const SinglesHistograms& earlier) {
    const auto subtract = [](auto& from, const auto& what) {
        for (std::size_t i = 0; i < what.size(); ++i)
            from[i] -= what[i];
    };
    subtract(per_crystal, earlier.per_crystal);
    subtract(energy, earlier.energy);
    subtract(temperature_sum_16ths, earlier.temperature_sum_16ths);
    subtract(temperature_count, earlier.temperature_count);
    return *this;
}

#define PETACQ_ADD(section, name, ...) name += o.name;
FrameCounts& FrameCounts::operator+=(const FrameCounts& o) {
    PETACQ_FRAME_COUNTERS(PETACQ_ADD)
    return *this;
}

SingleCounts& SingleCounts::operator+=(const SingleCounts& o) {
    PETACQ_SINGLE_COUNTERS(PETACQ_ADD)
    return *this;
}
#undef PETACQ_ADD

}  // namespace petacq::gpu
