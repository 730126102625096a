#include "tools/petlm/records/origin.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "daemon/run/directory.hpp"
#include "daemon/seconds/reader.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/records/run.hpp"

namespace petacq::petlm {
namespace {

/// Whether the target has all records of a kind that its run has.
bool is_whole_run(const std::filesystem::path& target, daemon::RecordKind kind) {
    if (std::filesystem::is_directory(target)) return true;
    return target.filename() == std::string(daemon::name_of(kind)) + ".plm" &&
           std::filesystem::exists(std::filesystem::absolute(target).parent_path() / daemon::run_file);
}

/// Those by which the coincidences of a run were made; null if its run.json says no coverage.
nlohmann::json rules_in(const nlohmann::json& run) {
    static const nlohmann::json::json_pointer at("/coverage/rules");
    return run.contains(at) ? run[at] : nlohmann::json();
}

bool has_coverage(const nlohmann::json& document) {
    return document.is_object() && document.contains("coverage");
}

/// False if the run says another time of day for its start than the file, or another scanner: it is another
/// run of the same name.
bool may_be_origin(const nlohmann::json& run, const daemon::Coverage& coverage) {
    if (!has_coverage(run)) return true;
    // The clocks of several runs may have drifted apart.
    const double same_start_s = coverage.origin.runs.size() == 1 ? 1 : 60;
    const daemon::Coverage of_run = daemon::coverage_of_run(run);
    const std::string& scanner = coverage.origin.scanner_sha256;
    if (!scanner.empty() && !of_run.origin.scanner_sha256.empty() && scanner != of_run.origin.scanner_sha256)
        return false;
    if (!of_run.anchor || !coverage.anchor) return true;
    const auto utc = coverage.utc_of(of_run.anchor->ticks);
    return utc && std::abs(std::chrono::duration<double>(*utc - of_run.anchor->utc).count()) <= same_start_s;
}

}  // namespace

std::string RunPlace::not_found() const {
    std::vector<std::string> names;
    for (const std::filesystem::path& place : looked_in)
        names.push_back(place.string());
    return fmt::format("the run {} was found neither in {}", json_line(run_id), fmt::join(names, " nor in "));
}

std::vector<RunPlace> places_of_runs(const std::filesystem::path& target, const daemon::Coverage& coverage) {
    const std::filesystem::path absolute = std::filesystem::absolute(target).lexically_normal();
    const bool is_run = std::filesystem::is_directory(target);
    std::vector<RunPlace> places;
    const auto covered = coverage.intervals.value_or(daemon::Intervals(gpu::TickRange{0, UINT64_MAX}));
    const nlohmann::json rules = daemon::to_json(coverage).at("rules");
    for (const daemon::OriginRun& run : coverage.origin.runs) {
        RunPlace place{run.run_id, {}, {}, run.times.value_or(covered)};
        std::vector<std::filesystem::path>& candidates = place.looked_in;
        if (is_run) candidates.push_back(absolute);
        candidates.push_back(absolute.parent_path());
        candidates.push_back(absolute.parent_path().parent_path());
        if (!run.directory.empty()) candidates.push_back(run.directory);
        candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
        for (const std::filesystem::path& candidate : candidates) {
            std::string ignored;
            const nlohmann::json found = run_json(candidate, ignored);
            if (!found.is_object() || found.value("run_id", nlohmann::json()) != run.run_id) continue;
            if (!may_be_origin(found, coverage)) continue;
            // A run and what petlm resort makes of it have one id, and differ in their rules.
            const bool same_rules = rules_in(found) == rules;
            if (place.directory.empty() || same_rules) place.directory = candidate;
            if (same_rules) break;
        }
        places.push_back(place);
    }
    return places;
}

std::vector<std::filesystem::path> run_directories(const std::filesystem::path& target,
                                                   const daemon::Coverage& coverage) {
    std::vector<std::filesystem::path> directories;
    for (const RunPlace& place : places_of_runs(target, coverage)) {
        const bool known =
            std::find(directories.begin(), directories.end(), place.directory) != directories.end();
        if (!place.directory.empty() && !known) directories.push_back(place.directory);
    }
    if (directories.empty()) {
        directories.push_back(
            std::filesystem::is_directory(target) ? target : std::filesystem::absolute(target).parent_path());
    }
    return directories;
}

daemon::Intervals recorded_times(const std::filesystem::path& run) {
    std::vector<gpu::TickRange> times;
    try {
        daemon::SecondsReader reader(record_files(run, daemon::RecordKind::seconds).front());
        while (reader.next())
            times.push_back({reader.start(), reader.start() + reader.length()});
    } catch (const daemon::NotListMode&) {
        // there is no file, or one that says nothing
    }
    return daemon::Intervals(std::move(times));
}

nlohmann::json run_of(const std::filesystem::path& target, const nlohmann::json& description) {
    const bool is_run = std::filesystem::is_directory(target);
    const auto directory = is_run ? target : std::filesystem::absolute(target).parent_path();
    const nlohmann::json run_id = description.value("run_id", nlohmann::json());
    std::vector<std::filesystem::path> places = {directory};
    if (!is_run) places.push_back(directory.parent_path());
    if (!is_run && has_coverage(description)) {
        for (const daemon::OriginRun& run : daemon::coverage_of(description, nullptr, false).origin.runs)
            if (!run.directory.empty()) places.push_back(run.directory);
    }
    for (const auto& place : places) {
        std::string ignored;
        nlohmann::json found = run_json(place, ignored);
        if (!run_id.is_null() && found.is_object() && found.value("run_id", nlohmann::json()) == run_id)
            return found;
    }
    return nullptr;
}

daemon::Coverage coverage_of_files(const std::filesystem::path& target, daemon::RecordKind kind,
                                   const std::vector<nlohmann::json>& descriptions,
                                   const nlohmann::json& run) {
    try {
        daemon::Coverage coverage;
        if (std::all_of(descriptions.begin(), descriptions.end(), has_coverage)) {
            std::vector<daemon::Coverage> of_files;
            for (const nlohmann::json& description : descriptions)
                of_files.push_back(daemon::coverage_of(description, run, false));
            coverage = daemon::united(of_files);
        } else if (is_whole_run(target, kind) && has_coverage(run)) {
            coverage = daemon::coverage_of_run(run);  // a recovered run of 1.0
        } else {
            // Files of 1.0 say nothing about themselves that differs from one part of a run to the next.
            coverage = daemon::coverage_of(descriptions.front(), run, is_whole_run(target, kind));
        }
        // The header of a file that was cut off may be older than the data of its run.
        if (!coverage.anchor && has_coverage(run)) coverage.anchor = daemon::coverage_of_run(run).anchor;
        const std::vector<RunPlace> places = places_of_runs(target, coverage);
        for (std::size_t i = 0; i < places.size(); ++i)
            if (!places[i].directory.empty()) coverage.origin.runs[i].directory = places[i].directory;
        return coverage;
    } catch (const std::exception& error) {
        throw BadInput(target.string() + ": " + error.what());
    }
}

std::string difference_from_run(daemon::RecordRules of_run, daemon::RecordRules of_records) {
    if (!of_run.gammas || !of_records.gammas) {
        of_run.gammas.reset();
        of_records.gammas.reset();
    }
    return daemon::difference_of(of_run, of_records);
}

}  // namespace petacq::petlm
