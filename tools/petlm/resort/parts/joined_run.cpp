#include "tools/petlm/resort/parts/joined_run.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

#include "config/base/answer.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/records/output.hpp"
#include "tools/petlm/resort/result/resorted_run.hpp"
#include "tools/petlm/resort/result/run_writer.hpp"

namespace petacq::petlm {

config::Written join_parts(const Inputs& inputs, const Engines& engines, const PartsOfRun& parts,
                           const std::filesystem::path& directory) {
    Outputs outputs(true);
    RunWriter run(inputs, engines, directory, outputs);
    std::vector<daemon::ListModePart> coincidences;
    std::vector<daemon::ListModePart> triples;
    const auto append = [](std::vector<daemon::ListModePart>& files, std::string name, const PartFile& file) {
        if (file.bytes == 0) return;
        daemon::ListModePart part{std::move(name)};
        part.first_record = files.empty() ? 0 : files.back().first_record + files.back().records;
        part.records = file.records;
        part.bytes = file.bytes;
        part.first_time = file.first_time;
        part.last_time = file.last_time;
        files.push_back(part);
    };
    std::optional<std::uint64_t> end;  // of the part before
    for (std::size_t shard = 0; shard < parts.count; ++shard) {
        PartState state = parts.state(shard);
        if (end && state.begin != *end) {
            throw BadInput(fmt::format("{} begins at tick {}, but the part before it ends at {}",
                                       (directory / part_name(shard)).string(), state.begin, *end));
        }
        end = state.end;
        run.add(state);
        append(coincidences, part_name(shard), state.coincidences);
        append(triples, part_name(shard, daemon::RecordKind::triples), state.triples);
    }
    const ResortedRun& made = run.finish(std::move(coincidences), std::move(triples), parts.back_end);
    outputs.commit();
    remove_partial_parts(directory);
    return summary(directory, made, outputs);
}

}  // namespace petacq::petlm
