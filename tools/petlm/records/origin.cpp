#include "tools/petlm/records/origin.hpp"

#include <nlohmann/json.hpp>

#include "tools/petlm/records/run.hpp"

namespace petacq::petlm {

std::vector<RunPlace> places_of_runs(const std::filesystem::path& target, const daemon::Coverage& coverage) {
    const std::filesystem::path absolute = std::filesystem::absolute(target).lexically_normal();
    const bool is_run = std::filesystem::is_directory(target);
    std::vector<RunPlace> places;
    for (const daemon::OriginRun& run : coverage.origin.runs) {
        RunPlace place{run.run_id, {}};
        std::vector<std::filesystem::path> candidates;
        if (is_run) candidates.push_back(absolute);
        candidates.push_back(absolute.parent_path());
        candidates.push_back(absolute.parent_path().parent_path());
        if (!run.directory.empty()) candidates.push_back(run.directory);
        for (const std::filesystem::path& candidate : candidates) {
            std::string ignored;
            const nlohmann::json found = run_json(candidate, ignored);
            if (!found.is_object() || found.value("run_id", nlohmann::json()) != run.run_id) continue;
            place.directory = candidate;
            break;
        }
        places.push_back(place);
    }
    return places;
}

}  // namespace petacq::petlm
