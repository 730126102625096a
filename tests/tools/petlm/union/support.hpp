// Runs of hosts that heard one stream.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "daemon/coverage/coverage.hpp"
#include "tests/tools/petlm/covered.hpp"
#include "tests/tools/petlm/resort/support.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/union/union.hpp"

namespace petacq::test {

inline gpu::CoincidenceRules rules() {
    gpu::CoincidenceRules rules;
    rules.window = 40;
    rules.delay = 700;
    return rules;
}

inline const nlohmann::json& coincidence() {
    static const nlohmann::json section = coincidence_of(rules());
    return section;
}

/// A run of the name r in a directory of its host, whose singles say what they cover.
inline std::filesystem::path write_heard(const std::filesystem::path& host, const Singles& singles,
                                         const daemon::Intervals& times,
                                         const nlohmann::json& changes = nlohmann::json::object(),
                                         const std::string& name = "r") {
    const auto run = host / name;
    daemon::Coverage coverage = covered_by_run(run, times, resort_scanner().tick_ps);
    // One scanner, one time of day.
    coverage.anchor->utc += std::chrono::microseconds(times.span().start);
    nlohmann::json stated = {{"operator", {{"nuclide", "F-18"}}}};
    daemon::state_in(stated, coverage);
    stated.merge_patch(changes);
    write_singles_run(run, singles, coincidence(), times.span().start, times.span().end, stated);
    write_covered(run / "singles.plm", daemon::RecordKind::singles, singles, coverage);
    return run;
}

inline petlm::UnionOptions options_for(const std::filesystem::path& output,
                                       std::vector<std::filesystem::path> runs) {
    petlm::UnionOptions options;
    options.runs = std::move(runs);
    options.output = output;
    options.backend = "cpu";
    options.threads = 2;
    return options;
}

inline int quietly_unite(const petlm::UnionOptions& options) {
    return quietly([&] { return petlm::unite(options); });
}

inline nlohmann::json run_json_of(const std::filesystem::path& run) {
    return nlohmann::json::parse(read_file(run / "run.json"));
}

inline Singles some_singles(std::mt19937_64& random, std::size_t count = 3000) {
    Singles singles = difficult("sparse", 40, random, count);
    for (gpu::Single& s : singles)
        s.energy = static_cast<float>(random() % 3 + 510);
    // The same hit twice, and hits that differ in one member only.
    for (std::size_t i = 0; i + 1 < singles.size(); ++i)
        if (random() % 20 == 0) {
            singles[i + 1] = singles[i];
            if (random() % 2 == 0) singles[i + 1].energy += 1;
        }
    sort_singles(singles);
    return singles;
}

}  // namespace petacq::test
