#include "tools/petlm/resort/parts/parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/base/answer.hpp"
#include "daemon/run/directory.hpp"
#include "daemon/system/progress_line.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/resort/parts/job_file.hpp"
#include "tools/petlm/resort/parts/joined_run.hpp"
#include "tools/petlm/resort/parts/part.hpp"
#include "tools/petlm/resort/result/resorted_run.hpp"
#include "tools/petlm/resort/search/engines.hpp"
#include "tools/petlm/resort/search/group_starts.hpp"
#include "tools/petlm/resort/search/settings.hpp"
#include "tools/petlm/resort/search/workers.hpp"
#include "tools/petlm/resort/singles/inputs.hpp"
#include "tools/petlm/resort/singles/second_ranges.hpp"

namespace petacq::petlm {
namespace {

/// The work of all processes.
struct PartsJob {
    explicit PartsJob(const ResortOptions& options)
        : directory(options.output),
          engines(engines_for(run_document(options.input.runs.front()), options)),
          inputs(open_inputs(options.input)),
          shards(plan_shards(inputs.singles, inputs.interval, options.shard_singles.value_or(part_singles))),
          covered(covered_by_result(inputs, engines.configuration, directory)) {
        check_energies(inputs, engines.configuration);
        if (is_one_file(directory))
            throw UsageError(directory.string() + ": expected a directory for the parts, not a file");
        const bool of_another_program = std::filesystem::exists(directory / daemon::run_file) &&
                                        !std::filesystem::exists(directory / job_file);
        if (of_another_program)
            throw UsageError(directory.string() + ": holds a run that was not made of parts");
    }

    void agree() const { agree_on_job(directory, job_identity(inputs, engines, shards.size())); }

    /// If it is complete.
    [[nodiscard]] std::optional<PartState> part(std::size_t shard) const {
        auto state = read_part(directory, shard, engines.scanner.geometry);
        if (state && state->begin >= shards[shard].start && state->end >= shards[shard].end) return state;
        return std::nullopt;
    }

    const std::filesystem::path directory;
    const Engines engines;
    const Inputs inputs;
    const std::vector<gpu::TickRange> shards;
    const daemon::Coverage covered;
};

/// Where a shard begins. Without the part before it, the singles before it tell, however far back that is.
std::uint64_t begin_of(const PartsJob& job, std::size_t shard, GroupStarts& starts) {
    if (shard == 0) return job.shards.front().start;
    if (const auto before = job.part(shard - 1)) return before->end;
    return starts.next(job.shards[shard - 1], [&] { return begin_of(job, shard - 1, starts); });
}

/// Makes the parts of these shards. Returns the back-end.
std::string search(const PartsJob& job, std::size_t from, std::size_t to, daemon::ProgressLine& progress) {
    GroupStarts starts(job.inputs.singles, job.engines.rules, job.engines.energies());
    const auto seconds = second_ranges(job.inputs.searched, job.inputs.singles, job.engines.ticks_per_s());
    Workers workers(job.engines, std::min(job.engines.workers, to - from));
    workers.start({job.inputs.singles, job.shards, job.inputs.interval, from, to, begin_of(job, from, starts),
                   seconds});
    for (std::size_t shard = from; shard < to; ++shard) {
        const ShardResult result = workers.next();
        write_part(job.directory, shard, result, job.inputs, job.engines, job.covered);
        progress.show(shard + 1);
    }
    return workers.description();
}

/// "2, 5 to 7"
std::string numbers(const std::vector<std::size_t>& sorted) {
    std::string text;
    for (std::size_t i = 0; i < sorted.size();) {
        std::size_t last = i;
        while (last + 1 < sorted.size() && sorted[last + 1] == sorted[last] + 1)
            ++last;
        text += fmt::format("{}{}", i == 0 ? "" : ", ", sorted[i]);
        if (last > i) text += fmt::format(" to {}", sorted[last]);
        i = last + 1;
    }
    return text;
}

}  // namespace

int make_parts(const ResortOptions& options) {
    const PartsJob job(options);
    std::filesystem::create_directories(job.directory);
    job.agree();
    const std::size_t from = job.shards.size() * (options.part->number - 1) / options.part->of;
    const std::size_t to = job.shards.size() * options.part->number / options.part->of;
    daemon::ProgressLine progress("finding coincidences", job.shards.size(), daemon::ProgressUnit::steps);
    std::size_t made = 0;
    std::string back_end = "all of them were there";
    std::vector<std::filesystem::path> files;
    for (std::size_t shard = from; shard < to;) {
        std::size_t end = shard;
        while (end < to && !job.part(end))
            ++end;
        if (end > shard) back_end = search(job, shard, end, progress);
        for (std::size_t each = shard; each < end; ++each)
            files.push_back(job.directory / part_name(each));
        made += end - shard;
        shard = end + 1;
    }
    config::print_written(
        {.facts = {{"part", options.part->number},
                   {"parts", options.part->of},
                   {"shards", to - from},
                   {"shards_searched", made},
                   {"backend", back_end}},
         .text = fmt::format("{}: part {}/{}: {} of its {} shards searched ({})\n", job.directory.string(),
                             options.part->number, options.part->of, made, to - from, back_end),
         .files = std::move(files),
         .warnings = {}},
        options.as_json, "petlm");
    return ok;
}

int join_parts(const ResortOptions& options) {
    const PartsJob job(options);
    if (!std::filesystem::exists(job.directory / job_file))
        throw BadInput(job.directory.string() + ": holds no parts; petlm resort --part makes them");
    job.agree();
    std::vector<std::size_t> missing;
    for (std::size_t shard = 0; shard < job.shards.size(); ++shard)
        if (!job.part(shard)) missing.push_back(shard + 1);
    if (!missing.empty()) {
        throw BadInput(
            fmt::format("{}: {} of {} parts are missing or incomplete: {}; petlm resort --part makes them",
                        job.directory.string(), missing.size(), job.shards.size(), numbers(missing)));
    }
    const auto state = [&](std::size_t shard) {
        const auto found = job.part(shard);
        if (!found) throw BadInput((job.directory / part_name(shard)).string() + ": gone or changed");
        return *found;
    };
    config::print_written(
        join_parts(job.inputs, job.engines,
                   {job.shards.size(), state, fmt::format("{} parts", job.shards.size())}, job.directory),
        options.as_json, "petlm");
    return ok;
}

}  // namespace petacq::petlm
