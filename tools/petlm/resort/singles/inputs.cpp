#include "tools/petlm/resort/singles/inputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <utility>

#include "daemon/listmode/reader.hpp"
#include "daemon/tracking/saturate.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/records/origin.hpp"
#include "tools/petlm/records/run.hpp"

namespace petacq::petlm {
namespace {

using nlohmann::json;

/// What hosts of one scanner must have in common.
json belonging(const json& document) {
    json scanner = document["scanner"];
    scanner.erase("sources");  // each host may list its own boards only
    const json& configuration = document["configuration"];
    json gammas = configuration.value("gammas", json());
    if (gammas.is_object()) gammas = {{"lower_keV", gammas["lower_keV"]}, {"upper_keV", gammas["upper_keV"]}};
    return {{"scanner", scanner},
            {"calibration", document.value("calibration_sha256", json())},
            {"clock", configuration.value("clock", "")},
            {"energy window", configuration.value("energy", json())},
            {"energy window of gammas", gammas}};
}

/// The boards that a host has been told to take. Without a list it takes all that send to it.
std::set<std::int64_t> listed_sources(const json& document) {
    const json sources = document["configuration"].value("sources", json::object());
    return sources.value("ids", std::set<std::int64_t>());
}

/// Throws UsageError if both list a board: its singles would count twice.
void check_apart(const Inputs& inputs, std::size_t one, std::size_t other) {
    const auto listed = listed_sources(inputs.documents[one]);
    for (const std::int64_t id : listed_sources(inputs.documents[other])) {
        if (!listed.contains(id)) continue;
        throw UsageError(fmt::format("{} and {} both list the source {}; its singles would count twice",
                                     inputs.runs[one].string(), inputs.runs[other].string(), id));
    }
}

std::filesystem::path directory_of(const std::filesystem::path& target) {
    return std::filesystem::is_directory(target) ? target : std::filesystem::absolute(target).parent_path();
}

}  // namespace

daemon::Coverage coverage_of_singles(const std::filesystem::path& target, const json& document) {
    std::vector<json> descriptions;
    for (const std::filesystem::path& file : record_files(target, daemon::RecordKind::singles))
        descriptions.push_back(daemon::ListModeReader(file).description());
    return coverage_of_files(target, daemon::RecordKind::singles, descriptions, document);
}

daemon::Intervals times_of(const daemon::Coverage& coverage, const SinglesFiles& singles) {
    const auto blocks = singles.blocks();
    if (blocks.empty()) return coverage.intervals.value_or(daemon::Intervals());
    const std::uint64_t first = blocks.front().first_time;
    const std::uint64_t end = daemon::add_or_max(blocks.back().last_time, 1);
    if (!coverage.intervals)
        return gpu::TickRange{coverage.anchor ? std::min(coverage.anchor->ticks, first) : first, end};
    const gpu::TickRange span = coverage.span();
    daemon::Intervals times = *coverage.intervals;
    if (first < span.start) times = times.unite(gpu::TickRange{first, span.start});
    return end > span.end ? times.unite(gpu::TickRange{span.end, end}) : times;
}

void check_output(const std::filesystem::path& output, const InputOptions& options) {
    for (const std::filesystem::path& run : options.runs) {
        std::error_code absent;
        if (std::filesystem::equivalent(output, directory_of(run), absent))
            throw UsageError(output.string() + ": is one of the runs; expected another directory");
    }
}

void check_together(const Inputs& inputs) {
    const json wanted = belonging(inputs.documents.front());
    for (std::size_t i = 1; i < inputs.runs.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) {
            if (inputs.runs[i].lexically_normal() == inputs.runs[j].lexically_normal())
                throw UsageError(inputs.runs[i].string() + ": named twice; its singles would count twice");
            check_apart(inputs, j, i);
        }
        const json found = belonging(inputs.documents[i]);
        for (const auto& [what, value] : wanted.items()) {
            if (found[what] == value) continue;
            // Of a scanner, the first member that differs says more than the whole.
            const json difference = json::diff(value, found[what]);
            throw UsageError(fmt::format("{} and {} do not belong together: their {} differs: {}",
                                         inputs.runs.front().string(), inputs.runs[i].string(), what,
                                         json_line(difference.front())));
        }
    }
}

json run_document(const std::filesystem::path& target) {
    const std::filesystem::path run = directory_of(target);
    std::string why;
    json document = run_json(run, why);
    if (document.is_null()) throw UsageError(why + "; expected the directory of a run");
    for (const char* key : {"scanner", "configuration"}) {
        if (!document.contains(key) || !document[key].is_object())
            throw UsageError(fmt::format("{}: its run.json has no {}", run.string(), key));
    }
    return document;
}

std::size_t Inputs::first() const {
    std::size_t best = 0;
    const auto start = [&](std::size_t run) { return times_of(coverages[run], singles[run]).span().start; };
    for (std::size_t run = 1; run < runs.size(); ++run)
        if (start(run) <= interval.start && start(run) > start(best)) best = run;
    return best;
}

std::vector<ReportingRun> Inputs::reporting() const {
    if (!of_one_stream.empty()) return of_one_stream;
    std::vector<ReportingRun> all;
    for (std::size_t run = 0; run < runs.size(); ++run) {
        const auto& known = coverages[run].intervals;
        all.push_back({files_at[run], known ? *known : times_of(coverages[run], singles[run])});
    }
    return all;
}

std::vector<std::filesystem::path> Inputs::heard_by(const std::vector<std::filesystem::path>& others) const {
    if (of_one_stream.empty()) return others;
    std::vector<std::filesystem::path> directories;
    for (const ReportingRun& run : of_one_stream)
        directories.push_back(run.directory);
    return directories;
}

void settle_interval(Inputs& inputs, const InputOptions& options) {
    if (options.from >= options.to) {
        throw UsageError(
            fmt::format("--from-ticks {}: expected less than --to-ticks {}", options.from, options.to));
    }
    check_together(inputs);
    const std::size_t runs = inputs.runs.size();
    std::vector<daemon::Intervals> times;
    for (std::size_t i = 0; i < runs; ++i)
        times.push_back(times_of(inputs.coverages[i], inputs.singles[i]));
    daemon::Intervals common = times.front();
    daemon::Intervals all;
    for (const daemon::Intervals& own : times) {
        common = common.intersect(own);
        all = all.unite(own);
    }
    const daemon::Intervals& wanted = options.partial ? all : common;
    inputs.searched = wanted.intersect(gpu::TickRange{options.from, options.to});
    if (inputs.searched.empty() && (runs > 1 || !all.empty())) {
        const gpu::TickRange span = wanted.span();
        throw UsageError(wanted.empty()
                             ? std::string("the runs have no time in common; expected runs that overlap")
                             : fmt::format("{}: no time in common with the interval from {} to {}; expected "
                                           "a part of the ticks {} to {}",
                                           runs > 1 ? "the runs" : inputs.runs[0].string(), options.from,
                                           options.to, span.start, span.end));
    }
    inputs.settled = true;
    inputs.interval = inputs.searched.span();
    inputs.whole = inputs.searched == all;
    for (std::size_t i = 0; i < runs; ++i) {
        const daemon::Intervals without_data = inputs.searched.without(times[i]);
        for (const gpu::TickRange& range : without_data.ranges())
            inputs.missing.push_back({inputs.runs[i].string(), range});
        // Elsewhere one run may have singles at times that another does not cover.
        if (inputs.searched.ranges().size() > 1) inputs.singles[i].keep_only(inputs.searched);
    }
}

Inputs open_inputs(const InputOptions& options) {
    Inputs inputs;
    for (const std::filesystem::path& target : options.runs) {
        inputs.runs.push_back(directory_of(target));
        inputs.files_at.push_back(inputs.runs.back());
        inputs.documents.push_back(run_document(target));
        inputs.singles.emplace_back(target);
        inputs.ended.push_back(true);
        inputs.coverages.push_back(coverage_of_singles(target, inputs.documents.back()));
    }
    settle_interval(inputs, options);
    return inputs;
}

}  // namespace petacq::petlm
