#include "tools/petlm/resort/resort.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "config/base/answer.hpp"
#include "daemon/listmode/set.hpp"
#include "daemon/run/directory.hpp"
#include "daemon/system/progress_line.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/records/output.hpp"
#include "tools/petlm/resort/parts/parts.hpp"
#include "tools/petlm/resort/result/records_out.hpp"
#include "tools/petlm/resort/result/resorted_run.hpp"
#include "tools/petlm/resort/result/run_writer.hpp"
#include "tools/petlm/resort/search/engines.hpp"
#include "tools/petlm/resort/search/settings.hpp"
#include "tools/petlm/resort/search/workers.hpp"
#include "tools/petlm/resort/search_whole.hpp"
#include "tools/petlm/resort/singles/inputs.hpp"

namespace petacq::petlm {

void claim_records(Outputs& outputs, const std::filesystem::path& output) {
    const bool one_file = is_one_file(output);
    if (!one_file) outputs.make_directory(output);
    const std::filesystem::path coincidences = one_file ? output : output / daemon::coincidences_file;
    outputs.claim(coincidences);
    if (one_file) return;
    const std::filesystem::path triples = output / daemon::triples_file;
    outputs.claim(triples);
    for (std::uint32_t file = 0; file < daemon::max_files; ++file) {
        outputs.claim(daemon::file_of_set(coincidences, file));
        outputs.claim(daemon::file_of_set(triples, file));
    }
}

ResortedRun search_whole(const Inputs& inputs, const Engines& engines, std::uint64_t in_a_shard,
                         const std::filesystem::path& output, Outputs& outputs) {
    RunWriter run(inputs, engines, output, outputs);
    RecordsOut out(inputs, engines, run.covered(), output);
    const auto shards = plan_shards(inputs.singles, inputs.interval, in_a_shard);
    Workers workers(engines, std::min(engines.workers, shards.size()));
    workers.start(
        {inputs.singles, shards, inputs.interval, 0, shards.size(), inputs.interval.start, run.seconds()});
    {
        daemon::ProgressLine progress("finding coincidences", shards.size(), daemon::ProgressUnit::steps);
        for (std::size_t i = 0; i < shards.size(); ++i) {
            ShardResult shard = workers.next();
            out.append(shard);
            run.add(shard);
            progress.show(i + 1);
        }
    }
    auto files = out.close();
    return run.finish(std::move(files.coincidences), std::move(files.triples), workers.description());
}

int resort(const ResortOptions& given) {
    const ResortOptions options = in_ticks(given, run_document(given.input.runs.front()));
    check_output(options.output, options.input);
    if (options.part) return make_parts(options);
    if (options.join) return join_parts(options);
    const Engines engines = engines_for(run_document(options.input.runs.front()), options);
    const Inputs inputs = open_inputs(options.input);
    check_energies(inputs, engines.configuration);
    Outputs outputs(options.force);
    claim_records(outputs, options.output);
    const ResortedRun made =
        search_whole(inputs, engines, options.shard_singles.value_or(shard_singles), options.output, outputs);
    outputs.commit();
    config::print_written(summary(options.output, made, outputs), options.as_json, "petlm");
    return ok;
}

}  // namespace petacq::petlm
