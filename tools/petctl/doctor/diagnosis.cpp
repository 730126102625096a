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
    if (!arriving) return diagnosis;
    bool sources = judge_senders(evidence, diagnosis);
    const bool shared_id = judge_ids(evidence, diagnosis);
    sources = judge_format(evidence, diagnosis) || sources;
    judge_numbers(evidence, diagnosis);
    judge_loss(evidence, diagnosis);
    sources = judge_modules(evidence, diagnosis) || sources;
    if (sources && !shared_id) write_sources(evidence, diagnosis);
    judge_fields(evidence, diagnosis);
    judge_times(evidence, diagnosis);
    judge_frames(evidence, diagnosis);
    judge_energies(evidence, diagnosis);
    judge_synchrony(evidence, diagnosis);
    return diagnosis;
}

}  // namespace petacq::petctl
