#include "tools/petlm/resort/parts/joined_run.hpp"

#include <fmt/format.h>

#include <iostream>
#include <optional>
#include <utility>
#include <vector>

#include "tools/petlm/base/status.hpp"
#include "tools/petlm/records/output.hpp"
#include "tools/petlm/resort/result/resorted_run.hpp"
#include "tools/petlm/resort/result/run_writer.hpp"

namespace petacq::petlm {

void join_parts(const Inputs& inputs, const Engines& engines, const PartsOfRun& parts,
                const std::filesystem::path& directory) {
    Outputs outputs(true);
    RunWriter run(inputs, engines, directory, outputs);
    std::vector<daemon::ListModePart> files;
    std::uint64_t records = 0;
    std::optional<std::uint64_t> end;  // of the part before
    for (std::size_t shard = 0; shard < parts.count; ++shard) {
        const PartState state = parts.state(shard);
        if (end && state.begin != *end) {
            throw BadInput(fmt::format("{} begins at tick {}, but the part before it ends at {}",
                                       (directory / part_name(shard)).string(), state.begin, *end));
        }
        end = state.end;
        run.add(state);
        daemon::ListModePart part{part_name(shard)};
        part.first_record = std::exchange(records, records + state.records);
        part.records = state.records;
        part.bytes = state.bytes;
        part.first_time = state.first_time;
        part.last_time = state.last_time;
        files.push_back(part);
    }
    const ResortedRun& made = run.finish(std::move(files), parts.back_end);
    outputs.commit();
    remove_partial_parts(directory);
    std::cout << summary(directory, made);
}

}  // namespace petacq::petlm
