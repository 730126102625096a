#include "tools/petlm/import/result.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "config/configuration.hpp"
#include "tools/petlm/base/status.hpp"

namespace petacq::petlm {
namespace {

using nlohmann::json;

std::filesystem::path directory_of_run(const ImportOptions& options) {
    std::filesystem::path directory = std::filesystem::absolute(options.output).lexically_normal();
    return directory.has_filename() ? directory : directory.parent_path();
}

/// No rule makes tags, and singles have no coincidence window.
void name_rules_of(const ForeignFile& file, std::vector<std::string>& unknown) {
    const auto rules = std::find(unknown.begin(), unknown.end(), unknown_rules);
    if (rules == unknown.end()) return;
    if (std::holds_alternative<TakeRecords<gpu::Single>>(file.records)) *rules = unknown_singles_window;
    if (std::holds_alternative<TakeRecords<gpu::Tag>>(file.records)) unknown.erase(rules);
}

/// What is true of every import: no board has sent anything.
json configuration_of(const daemon::Coverage& coverage, daemon::RecordKind kind) {
    json configuration = {
        {"energy", {{"filter", false}}}, {"coincidence", json::object()}, {"gammas", nullptr}};
    if (const auto& energy = coverage.rules.energy) configuration["energy"] = config::to_json(*energy);
    if (const auto& coincidence = coverage.rules.coincidence)
        configuration["coincidence"] = config::to_json(*coincidence);
    if (const auto& gammas = coverage.rules.gammas) configuration["gammas"] = config::to_json(*gammas);
    configuration["listmode"] = {{"write_singles", kind == daemon::RecordKind::singles},
                                 {"write_coincidences", kind == daemon::RecordKind::coincidences}};
    return configuration;
}

/// Of which files and format the records are, and what was declared.
json origin_of_import(const ImportOptions& options, std::span<const ForeignFile> files,
                      const json& declared) {
    json origin;
    if (const auto& made_of = files.front().made_of) {
        origin = *made_of;
    } else {
        json from = {options.input.filename().string()};
        if (options.delayeds) from.push_back(options.delayeds->filename().string());
        origin = {{"format", options.format}, {"from", std::move(from)}};
    }
    if (!declared.empty()) origin["declared"] = declared;
    return origin;
}

/// What the operator of the run said, where the file tells it, with what was declared of the source.
json said_of_import(const ForeignFile& file, const json& source) {
    json said = file.run ? file.run->value("operator", json()) : json();
    if (!said.is_object()) said = json::object();
    said.update(source);
    return said;
}

}  // namespace

bool is_file_of_import(const std::filesystem::path& output) {
    return output.extension() == ".plm";
}

daemon::Coverage coverage_of_import(const ImportOptions& options, std::span<const ForeignFile> files,
                                    const config::Scanner& scanner) {
    daemon::Coverage coverage = files.front().coverage;
    name_rules_of(files.front(), coverage.unknown);
    const auto stated = [](const ForeignFile& file) {
        return file.stated ? file.stated : file.coverage.intervals;
    };
    for (const ForeignFile& other : files.subspan(1)) {
        if (stated(other) != stated(files.front())) {
            throw BadInput(options.delayeds->string() + ": covers other times than " +
                           options.input.string() + "; expected the delayeds of the same measurement");
        }
        if (coverage.intervals) coverage.intervals = coverage.intervals->unite(*other.coverage.intervals);
    }
    const std::string sha256 = daemon::scanner_sha256(scanner);
    std::string& known = coverage.origin.scanner_sha256;
    if (!known.empty() && known != sha256) {
        throw UsageError(
            options.input.string() +
            ": its records are of another scanner; expected --scanner with the description of theirs");
    }
    known = sha256;
    coverage.tick_ps = scanner.tick_ps;
    if (!is_file_of_import(options.output)) {
        const std::filesystem::path directory = directory_of_run(options);
        coverage.origin.runs = {{directory.filename().string(), directory}};
        coverage.loss.seconds_complete = false;
    }
    return coverage;
}

json description_of_import(const ImportOptions& options, std::span<const ForeignFile> files,
                           const config::Scanner& scanner, const WithDeclared& with) {
    json description = files.front().description ? *files.front().description : json::object();
    const config::Geometry& geometry = scanner.geometry;
    description["scanner"] = scanner.name;
    description["tick_ps"] = scanner.tick_ps;
    description["crystals"] = geometry.crystal_count();
    description["crystals_in_ring"] = geometry.is_ring() ? json(geometry.crystals_in_ring()) : json();
    description["imported"] = origin_of_import(options, files, *with.declared);
    description["coverage"] = daemon::to_json(with.coverage);
    if (!with.source->empty()) description["operator"] = said_of_import(files.front(), *with.source);
    if (!is_file_of_import(options.output))
        description["run_id"] = directory_of_run(options).filename().string();
    return description;
}

json run_of_import(const ImportOptions& options, std::span<const ForeignFile> files,
                   const config::Scanner& scanner, const daemon::Coverage& coverage, const json& description,
                   daemon::RecordKind kind, const daemon::ListModePart& part) {
    json run = files.front().run ? *files.front().run : json::object();
    // They tell of files and times that are not here.
    for (const char* of_the_run :
         {"ledger", "ledger_over_time", "verdict", "failure", "loss_known", "health", "seconds", "capture",
          "spectra", "resorted", "united", "recovered", "taken", "asked", "expected_randoms", "failed"})
        run.erase(of_the_run);
    run["run_id"] = directory_of_run(options).filename().string();
    run["state"] = "complete";
    run["stop_reason"] = "the end of the imported file";
    const json& imported = run["imported"] = description.at("imported");
    if (description.contains("operator")) run["operator"] = description["operator"];
    run["scanner"] = config::to_json(scanner);
    json& configuration = run["configuration"];
    const json of_records = configuration_of(coverage, kind);
    if (!configuration.is_object()) configuration = of_records;
    // What a file of our own did not tell, its configuration did not either.
    if (imported.contains("declared")) {
        if (coverage.rules.coincidence) configuration["coincidence"] = of_records["coincidence"];
        if (coverage.rules.energy) configuration["energy"] = of_records["energy"];
        if (coverage.rules.gammas) configuration["gammas"] = of_records["gammas"];
    }
    daemon::state_in(run, coverage);
    const auto time = [&](std::uint64_t ticks) { return part.records == 0 ? json() : json(ticks); };
    run["files"] = {{{"name", part.name},
                     {"kind", name_of(kind)},
                     {"bytes", part.bytes},
                     {"first_record", 0},
                     {"records", part.records},
                     {"first_time", time(part.first_time)},
                     {"last_time", time(part.last_time)}}};
    return run;
}

}  // namespace petacq::petlm
