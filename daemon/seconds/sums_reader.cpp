#include "daemon/seconds/sums_reader.hpp"

#include <array>
#include <stdexcept>
#include <string>

namespace petacq::daemon {

SumsReader::SumsReader(const SecondsReader& seconds, const config::Geometry& geometry)
    : seconds_(seconds), geometry_(geometry) {
    for (const char* name : {"crystal_unpaired", "crystal_grouped", "crystal_prompts", "crystal_delayeds"})
        crystals_.push_back(&field(name, geometry.crystal_count()));
    const std::size_t pairs = gpu::Sectors::of(geometry).pairs();
    module_pairs_ = &field("module_pairs", pairs);
    // Seconds of version 1.0 lack both.
    if (seconds.find("refused_pairs") != nullptr) refused_pairs_ = &field("refused_pairs", pairs);
    if (seconds.find("energies") != nullptr) energies_ = &field("energies", gpu::energy_samples);
    for (const char* name :
         {"module_dt", "module_abs_dt", "module_dt_squared", "module_peak", "module_peak_energy"})
        modules_.push_back(&field(name, geometry.bdm_count));
#define PETACQ_FIND(section, name, kind, unit, column, metric, help) counts_.push_back(&field(#name, 1));
    PETACQ_SINGLE_COUNTERS(PETACQ_FIND)
#undef PETACQ_FIND
}

const SecondField& SumsReader::field(const char* name, std::size_t count) const {
    const SecondField* const found = seconds_.find(name);
    // copy() reads numbers of 32 bits, whole() such of 64.
    const auto readable = [](const SecondField& f) {
        const bool narrow = f.shape != FieldShape::number && f.shape != FieldShape::by_module;
        return narrow ? f.type == FieldType::u32 : f.type == FieldType::u64 || f.type == FieldType::i64;
    };
    if (found == nullptr || found->count != count || !readable(*found))
        throw std::invalid_argument(
            std::string("no field ") + name +
            " of this scanner; petlm resort makes the seconds again from saved singles");
    return *found;
}

void SumsReader::copy(const SecondField& from, std::vector<std::uint32_t>& to) const {
    const FieldValues values = seconds_.values(from);
    for (std::size_t i = 0; i < to.size(); ++i)
        to[i] = static_cast<std::uint32_t>(values.number(i));
}

gpu::IntervalSums& SumsReader::read() {
    if (sums_.modules.empty()) sums_ = gpu::IntervalSums::none(geometry_);
    std::size_t next = 0;
    for (auto* const crystals : {&sums_.unpaired, &sums_.grouped, &sums_.prompts, &sums_.delayeds})
        copy(*crystals_[next++], *crystals);
    copy(*module_pairs_, sums_.module_pairs);
    if (refused_pairs_ != nullptr) copy(*refused_pairs_, sums_.refused_pairs);
    if (energies_ != nullptr) copy(*energies_, sums_.energies);
    const auto by_module = [this](std::size_t i) { return seconds_.values(*modules_[i]); };
    const std::array fields{by_module(0), by_module(1), by_module(2), by_module(3), by_module(4)};
    for (std::size_t bdm = 0; bdm < sums_.modules.size(); ++bdm) {
        sums_.modules[bdm] = {fields[0].whole(bdm), fields[1].whole(bdm), fields[2].whole(bdm),
                              fields[3].whole(bdm), fields[4].whole(bdm)};
    }
    next = 0;
#define PETACQ_READ(section, name, kind, unit, column, metric, help) \
    sums_.counts.name = seconds_.values(*counts_[next++]).whole();
    PETACQ_SINGLE_COUNTERS(PETACQ_READ)
#undef PETACQ_READ
    return sums_;
}

}  // namespace petacq::daemon
