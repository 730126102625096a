#include "tools/petctl/doctor/diagnosis.hpp"

#include <nlohmann/json.hpp>

#include "tools/petctl/doctor/evidence.hpp"

namespace petacq::petctl {

Diagnosis diagnose(const nlohmann::json& before, const nlohmann::json& after,
                   const std::set<Sample>& samples) {
    const Evidence evidence(before, after, samples);
    Diagnosis diagnosis;
    const bool arriving = judge_arrival(evidence, diagnosis);
    judge_kernel(evidence, diagnosis);
    if (!arriving) return diagnosis;
    bool sources = judge_senders(evidence, diagnosis);
    sources = judge_format(evidence, diagnosis) || sources;
    sources = judge_modules(evidence, diagnosis) || sources;
    if (sources) write_sources(evidence, diagnosis);
    judge_times(evidence, diagnosis);
    judge_frames(evidence, diagnosis);
    judge_energies(evidence, diagnosis);
    return diagnosis;
}

}  // namespace petacq::petctl
