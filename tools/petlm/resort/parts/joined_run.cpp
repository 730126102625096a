#include "tools/petlm/resort/parts/joined_run.hpp"

#include <fmt/format.h>

#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "daemon/run/directory.hpp"
#include "daemon/seconds/file.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/records/output.hpp"
#include "tools/petlm/resort/parts/job_directory.hpp"
#include "tools/petlm/resort/result/resorted_run.hpp"
#include "tools/petlm/resort/result/resorted_seconds.hpp"

namespace petacq::petlm {

void join_parts(const Inputs& inputs, const Engines& engines, const PartsOfRun& parts,
                const std::filesystem::path& directory) {
    const daemon::Coverage covered = covered_by_result(inputs, engines.configuration, directory);
    Outputs outputs(true);
    for (const char* name : {daemon::seconds_file, daemon::tags_file, daemon::run_file})
        outputs.claim(directory / name);
    const std::filesystem::path seconds_path = directory / daemon::seconds_file;
    std::filesystem::remove(Outputs::partial(seconds_path));  // of a program that was killed
    daemon::SecondsFile file(Outputs::partial(seconds_path), engines.scanner.geometry,
                             seconds_description(engines.description(inputs, covered), engines.rules),
                             config::Compression::none, std::chrono::minutes(1));
    ResortedSeconds seconds(inputs.reporting(), parts.seconds, engines.scanner.geometry,
                            engines.ticks_per_s(), engines.rules, &file);
    ResortedRun made;
    std::optional<std::uint64_t> end;  // of the part before
    for (std::size_t shard = 0; shard < parts.count; ++shard) {
        const PartState state = parts.state(shard);
        if (end && state.begin != *end) {
            throw BadInput(fmt::format("{} begins at tick {}, but the part before it ends at {}",
                                       (directory / part_name(shard)).string(), state.begin, *end));
        }
        end = state.end;
        for (const auto& [second, sums] : state.sums)
            seconds.add(second, sums);
        made.taken += state.taken;
        made.singles += state.counts;
        daemon::ListModePart part{part_name(shard)};
        part.records = state.records;
        part.bytes = state.bytes;
        part.first_time = state.first_time;
        part.last_time = state.last_time;
        made.coincidences_files.push_back(part);
    }
    seconds.finish();
    made.seconds_file = finish(file, seconds_path);
    made.seconds = seconds.total();
    made.live = seconds.live();
    made.back_end = parts.back_end;
    complete_run(inputs, engines.settings(), covered, made, directory);
    outputs.commit();
    remove_partial_parts(directory);
    std::cout << summary(directory, made);
}

}  // namespace petacq::petlm
