#include "tools/petlm/resort/resort.hpp"

#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "daemon/listmode/set.hpp"
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

/// The list-mode files that the records of a kind go to, side by side. Each has a thread that writes it.
class RecordsOut {
  public:
    RecordsOut(daemon::RecordKind kind, const std::filesystem::path& path, std::uint32_t files,
               std::uint32_t block_bytes, const nlohmann::json& description)
        : writer_(Outputs::partial(path), options(kind, files, block_bytes), description) {}
    template <class Record>
    void append(gpu::RecordVector<Record>& records) {
        if (!records.empty()) writer_.append(std::move(records));
    }
    /// Throws std::runtime_error if the disk takes no more.
    void check() const {
        if (const std::string why = writer_.failure(); !why.empty()) throw std::runtime_error(why);
    }
    /// The files, which are complete under their partial names.
    std::vector<daemon::ListModePart> close() {
        writer_.finish();
        check();
        std::vector<daemon::ListModePart> files = writer_.parts();
        for (daemon::ListModePart& file : files)
            file.name = Outputs::final_name(file.name).string();
        return files;
    }

  private:
    static daemon::ListModeOptions options(daemon::RecordKind kind, std::uint32_t files,
                                           std::uint32_t block_bytes) {
        daemon::ListModeOptions options;
        options.kind = kind;
        options.files = files;
        options.block_bytes = block_bytes;
        options.sync_interval_ms = never_ms;
        return options;
    }

    daemon::ListModeWriter writer_;
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
    const std::filesystem::path triples_output = options.output / daemon::triples_file;
    if (!one_file) outputs.claim(triples_output);
    for (std::uint32_t file = 0; file < daemon::max_files && !one_file; ++file) {
        outputs.claim(daemon::file_of_set(output, file));
        outputs.claim(daemon::file_of_set(triples_output, file));
    }
    RunWriter run(inputs, engines, options.output, outputs);
    const auto make_out = [&](daemon::RecordKind kind, const std::filesystem::path& path) {
        return std::make_unique<RecordsOut>(kind, path, one_file ? 1 : engines.configuration.listmode.files,
                                            inputs.singles.front().block_bytes(),
                                            engines.description(kind, inputs, run.covered()));
    };
    const auto out = make_out(daemon::RecordKind::coincidences, output);
    const bool triples_wanted = engines.rules.gammas && !one_file;
    const auto triples_out = triples_wanted ? make_out(daemon::RecordKind::triples, triples_output) : nullptr;
    const auto shards =
        plan_shards(inputs.singles, inputs.interval, options.shard_singles.value_or(shard_singles));
    Workers workers(engines, {inputs.singles, shards, 0, shards.size(), shards.front().start, run.seconds()});
    {
        daemon::ProgressLine progress("finding coincidences", shards.size(), daemon::ProgressUnit::steps);
        for (std::size_t i = 0; i < shards.size(); ++i) {
            ShardResult shard = workers.next();
            for (auto& records : shard.coincidences)
                out->append(records);
            out->check();
            if (triples_out) {
                triples_out->append(shard.triples);
                triples_out->check();
            }
            run.add(shard);
            progress.show(i + 1);
        }
    }
    const ResortedRun& made =
        run.finish(out->close(), triples_out ? triples_out->close() : std::vector<daemon::ListModePart>(),
                   workers.description());
    outputs.commit();
    std::cout << summary(options.output, made);
    return ok;
}

}  // namespace petacq::petlm
