#include "tools/petlm/resort/resort.hpp"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "config/base/answer.hpp"
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
#include "tools/petlm/resort/search_whole.hpp"
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
    const bool one_file = is_one_file(output);
    RunWriter run(inputs, engines, output, outputs);
    const auto make_out = [&](daemon::RecordKind kind, const std::filesystem::path& path) {
        return std::make_unique<RecordsOut>(kind, path, one_file ? 1 : engines.configuration.listmode.files,
                                            inputs.singles.front().block_bytes(),
                                            engines.description(kind, inputs, run.covered()));
    };
    std::unique_ptr<RecordsOut> out;
    std::unique_ptr<RecordsOut> triples_out;
    if (engines.rules.search) {
        out = make_out(daemon::RecordKind::coincidences,
                       one_file ? output : output / daemon::coincidences_file);
        if (engines.rules.gammas && !one_file)
            triples_out = make_out(daemon::RecordKind::triples, output / daemon::triples_file);
    }
    const auto shards = plan_shards(inputs.singles, inputs.interval, in_a_shard);
    Workers workers(engines, {inputs.singles, shards, 0, shards.size(), shards.front().start, run.seconds()});
    {
        daemon::ProgressLine progress("finding coincidences", shards.size(), daemon::ProgressUnit::steps);
        for (std::size_t i = 0; i < shards.size(); ++i) {
            ShardResult shard = workers.next();
            if (out) {
                for (auto& records : shard.coincidences)
                    out->append(records);
                out->check();
            }
            if (triples_out) {
                triples_out->append(shard.triples);
                triples_out->check();
            }
            run.add(shard);
            progress.show(i + 1);
        }
    }
    const auto files_of = [](const std::unique_ptr<RecordsOut>& records) {
        return records ? records->close() : std::vector<daemon::ListModePart>();
    };
    auto coincidences = files_of(out);
    return run.finish(std::move(coincidences), files_of(triples_out), workers.description());
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
