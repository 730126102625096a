#include "tools/petlm/resort/resort.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>

#include "daemon/listmode/writer.hpp"
#include "daemon/run/directory.hpp"
#include "daemon/system/progress_line.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/records/output.hpp"
#include "tools/petlm/resort/parts/parts.hpp"
#include "tools/petlm/resort/result/resorted_run.hpp"
#include "tools/petlm/resort/result/run_writer.hpp"
#include "tools/petlm/resort/search/engines.hpp"
#include "tools/petlm/resort/search/settings.hpp"
#include "tools/petlm/resort/search/workers.hpp"
#include "tools/petlm/resort/singles/inputs.hpp"

namespace petacq::petlm {
namespace {

/// Only full blocks are written, but for the last one: the bytes do not depend on how fast the search is.
constexpr std::uint32_t never_ms = UINT32_MAX;

/// The list-mode file that the coincidences go to. A thread of its own writes them.
class CoincidencesOut {
  public:
    CoincidencesOut(const std::filesystem::path& path, std::uint32_t block_bytes,
                    const nlohmann::json& description)
        : writer_(Outputs::partial(path), options(block_bytes), description), path_(path) {}
    void append(gpu::RecordVector<gpu::Coincidence>& records) {
        if (records.empty()) return;
        first_ = std::min(first_, records.front().time);
        last_ = records.back().time;
        records_ += records.size();
        writer_.append(std::move(records));
    }
    /// Throws std::runtime_error if the disk takes no more.
    void check() const {
        if (const std::string why = writer_.failure(); !why.empty()) throw std::runtime_error(why);
    }
    daemon::ListModePart close() {
        writer_.finish();
        check();
        return part_of(path_, records_, first_, last_);
    }

  private:
    static daemon::ListModeOptions options(std::uint32_t block_bytes) {
        daemon::ListModeOptions options;
        options.block_bytes = block_bytes;
        options.sync_interval_ms = never_ms;
        return options;
    }

    daemon::ListModeWriter writer_;
    const std::filesystem::path path_;
    std::uint64_t records_ = 0;
    std::uint64_t first_ = UINT64_MAX;
    std::uint64_t last_ = 0;
};

}  // namespace

int resort(const ResortOptions& given) {
    const ResortOptions options = in_ticks(given, run_document(given.input.runs.front()));
    check_output(options.output, options.input);
    if (options.part) return make_parts(options);
    if (options.join) return join_parts(options);
    const Engines engines = engines_for(run_document(options.input.runs.front()), options);
    const Inputs inputs = open_inputs(options.input);

    const bool one_file = is_one_file(options.output);
    const std::filesystem::path output =
        one_file ? options.output : options.output / daemon::coincidences_file;
    Outputs outputs(options.force);
    if (!one_file) outputs.make_directory(options.output);
    outputs.claim(output);
    RunWriter run(inputs, engines, options.output, outputs);
    CoincidencesOut out(output, inputs.singles.front().block_bytes(),
                        engines.description(inputs, run.covered()));
    const auto shards =
        plan_shards(inputs.singles, inputs.interval, options.shard_singles.value_or(shard_singles));
    Workers workers(engines, {inputs.singles, shards, 0, shards.size(), shards.front().start, run.seconds()});
    {
        daemon::ProgressLine progress("finding coincidences", shards.size(), daemon::ProgressUnit::steps);
        for (std::size_t i = 0; i < shards.size(); ++i) {
            ShardResult shard = workers.next();
            for (auto& records : shard.coincidences)
                out.append(records);
            out.check();
            run.add(shard);
            progress.show(i + 1);
        }
    }
    const ResortedRun& made = run.finish({out.close()}, workers.description());
    outputs.commit();
    std::cout << summary(options.output, made);
    return ok;
}

}  // namespace petacq::petlm
