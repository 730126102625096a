#include "gpu/pipeline.hpp"

#include <algorithm>
#include <functional>
#include <stdexcept>

namespace petacq::gpu {

void check_spectra(const PipelineOptions& options) {
    if (options.spectra && options.input == Input::singles) {
        throw std::invalid_argument("spectra: expected frames as input, since singles have no position");
    }
}

namespace {
/// Calls apply(a, b) for each counter of `to` and its counterpart in `from`.
template <class Apply>
void for_each_counter(SinglesHistograms& to, const SinglesHistograms& from, Apply apply) {
    const auto all = [&](auto& a, const auto& b) {
        for (std::size_t i = 0; i < b.size(); ++i)
            apply(a[i], b[i]);
    };
    all(to.per_crystal, from.per_crystal);
    all(to.energy, from.energy);
    all(to.temperature_sum_16ths, from.temperature_sum_16ths);
    all(to.temperature_count, from.temperature_count);
}
}  // namespace

SinglesHistograms& SinglesHistograms::operator+=(const SinglesHistograms& more) {
    for_each_counter(*this, more, [](auto& a, auto b) { a += b; });
    return *this;
}

SinglesHistograms& SinglesHistograms::operator-=(const SinglesHistograms& earlier) {
    for_each_counter(*this, earlier, [](auto& a, auto b) { a -= b; });
    return *this;
}

UnitSpectra& UnitSpectra::operator+=(const UnitSpectra& more) {
    const auto add = [](auto& to, const auto& from) {
        std::transform(to.begin(), to.end(), from.begin(), to.begin(), std::plus<>());
    };
    add(flood, more.flood);
    add(energies, more.energies);
    return *this;
}

#define PETACQ_ADD(section, name, ...) name += o.name;
FrameCounts& FrameCounts::operator+=(const FrameCounts& o) {
    PETACQ_FRAME_COUNTERS(PETACQ_ADD)
    return *this;
}

TagCounts& TagCounts::operator+=(const TagCounts& o) {
    PETACQ_TAG_COUNTERS(PETACQ_ADD)
    return *this;
}
#undef PETACQ_ADD

}  // namespace petacq::gpu
