#include "tools/petlm/resort/inputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <utility>

#include "tools/petlm/records/run.hpp"
#include "tools/petlm/records/status.hpp"
#include "tools/petlm/resort/second_ranges.hpp"

namespace petacq::petlm {
namespace {

using nlohmann::json;

/// What hosts of one scanner must have in common.
json belonging(const json& document) {
    json scanner = document["scanner"];
    scanner.erase("sources");  // each host may list its own boards only
    const json& configuration = document["configuration"];
    return {{"scanner", scanner},
            {"calibration", document.value("calibration_sha256", json())},
            {"clock", configuration.value("clock", "")},
            {"energy window", configuration.value("energy", json())}};
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

std::optional<std::uint64_t> ticks_in(const json& document, const char* key) {
    const json value = document.value(key, json());
    return value.is_number_unsigned() ? std::optional(value.get<std::uint64_t>()) : std::nullopt;
}

gpu::TickRange interval_of(const json& document, const SinglesFiles& singles) {
    const auto start = ticks_in(document, "start_ticks");
    const auto stop = ticks_in(document, "stop_ticks");
    const auto blocks = singles.blocks();
    if (blocks.empty()) return {start.value_or(0), stop.value_or(start.value_or(0))};
    const std::uint64_t first = blocks.front().first_time;
    const std::uint64_t after_last = blocks.back().last_time + 1;
    return {std::min(start.value_or(first), first), std::max(stop.value_or(after_last), after_last)};
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

const json& Inputs::first() const {
    const json* best = &documents.front();
    const auto start = [](const json& document) { return ticks_in(document, "start_ticks").value_or(0); };
    for (const json& document : documents)
        if (start(document) <= interval.start && start(document) > start(*best)) best = &document;
    return *best;
}

void settle_interval(Inputs& inputs, const InputOptions& options) {
    if (options.from >= options.to) {
        throw UsageError(
            fmt::format("--from-ticks {}: expected less than --to-ticks {}", options.from, options.to));
    }
    check_together(inputs);
    gpu::TickRange common{0, UINT64_MAX};
    gpu::TickRange all{UINT64_MAX, 0};
    std::vector<gpu::TickRange> intervals;
    for (std::size_t i = 0; i < inputs.runs.size(); ++i) {
        const gpu::TickRange own = interval_of(inputs.documents[i], inputs.singles[i]);
        common = {std::max(common.start, own.start), std::min(common.end, own.end)};
        all = {std::min(all.start, own.start), std::max(all.end, own.end)};
        intervals.push_back(own);
    }
    gpu::TickRange& searched = inputs.interval;
    searched = options.partial ? all : common;
    searched = {std::max(searched.start, options.from), std::min(searched.end, options.to)};
    if (searched.start > searched.end || (searched.start == searched.end && inputs.runs.size() > 1)) {
        throw UsageError(fmt::format("{}: no time in common; expected runs that overlap",
                                     inputs.runs.size() > 1 ? "the runs have" : inputs.runs[0].string()));
    }
    inputs.whole = searched.start <= all.start && searched.end >= all.end;
    for (std::size_t i = 0; i < inputs.runs.size(); ++i) {
        const auto add = [&](std::uint64_t from, std::uint64_t to) {
            from = std::max(from, searched.start);
            to = std::min(to, searched.end);
            if (from < to) inputs.missing.push_back({inputs.runs[i].string(), {from, to}});
        };
        add(0, intervals[i].start);
        add(intervals[i].end, UINT64_MAX);
    }
    // A single run is searched from its first single to its last one, whatever its run.json says.
    if (searched.start == all.start) searched.start = options.from;
    if (searched.end == all.end) searched.end = options.to;
}

Inputs open_inputs(const InputOptions& options) {
    Inputs inputs;
    for (const std::filesystem::path& target : options.runs) {
        inputs.runs.push_back(directory_of(target));
        inputs.files_at.push_back(inputs.runs.back());
        inputs.documents.push_back(run_document(target));
        inputs.singles.emplace_back(target);
        inputs.ended.push_back(true);
        const auto seconds = recorded_seconds(inputs.runs.back());
        inputs.recorded.insert(inputs.recorded.end(), seconds.begin(), seconds.end());
    }
    settle_interval(inputs, options);
    return inputs;
}

}  // namespace petacq::petlm
