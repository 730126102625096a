#include "tools/petctl/doctor/diagnosis.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "tools/petctl/doctor/evidence.hpp"

namespace petacq::petctl {

Diagnosis diagnose(const nlohmann::json& before, const nlohmann::json& after, const std::set<Sample>& samples,
                   Meanwhile meanwhile) {
    const Evidence evidence(before, after, samples, std::move(meanwhile));
    Diagnosis diagnosis;
    const bool arriving = judge_arrival(evidence, diagnosis);
    judge_kernel(evidence, diagnosis);
    judge_health(evidence, diagnosis);
    if (!arriving) return diagnosis;
    bool sources = judge_senders(evidence, diagnosis);
    const std::set<unsigned> shared_ids = judge_ids(evidence, diagnosis);
    sources = judge_format(evidence, diagnosis) || sources;
    const bool numberless = judge_numbers(evidence, diagnosis);
    judge_loss(evidence, numberless || !shared_ids.empty(), diagnosis);
    sources = judge_modules(evidence, shared_ids, diagnosis) || sources;
    if (sources && shared_ids.empty()) write_sources(evidence, diagnosis);
    judge_fields(evidence, diagnosis);
    judge_times(evidence, diagnosis);
    judge_frames(evidence, diagnosis);
    judge_energies(evidence, diagnosis);
    return diagnosis;
}

}  // namespace petacq::petctl
