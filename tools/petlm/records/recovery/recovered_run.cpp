#include "tools/petlm/records/recovery/recovered_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "daemon/listmode/reader.hpp"
#include "daemon/run/directory.hpp"
#include "daemon/run/ledger.hpp"
#include "daemon/system/utc.hpp"
#include "tools/petlm/records/ledger_rows.hpp"
#include "tools/petlm/records/recovery/surviving_times.hpp"

namespace petacq::petlm {
namespace {

using nlohmann::json;

/// The records of all files.
struct RecordTotals {
    std::uint64_t prompts = 0;
    std::uint64_t delayeds = 0;
    std::uint64_t singles = 0;
    bool has_singles = false;
    std::uint64_t triples = 0;
    bool has_triples = false;
    std::uint64_t tags = 0;
};

RecordTotals held_in(const std::vector<RecoveredFile>& files) {
    RecordTotals held;
    for (const RecoveredFile& file : files) {
        if (file.kind == daemon::RecordKind::singles) {
            held.has_singles = true;
            held.singles += file.records;
        } else if (file.kind == daemon::RecordKind::triples) {
            held.has_triples = true;
            held.triples += file.records;
        } else if (file.kind == daemon::RecordKind::tags) {
            held.tags += file.records;
        } else if (file.kind == daemon::RecordKind::coincidences) {
            held.prompts += file.prompts;
            held.delayeds += file.records - file.prompts;
        }
    }
    return held;
}

/// Absent without a column of that name.
std::optional<std::uint64_t> sum_of(const LedgerOverTime& over_time, const std::string& column) {
    if (!over_time.rows || !over_time.rows->has(column)) return {};
    const auto& counts = over_time.rows->counters.at(column);
    const std::int64_t sum = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
    return static_cast<std::uint64_t>(std::max<std::int64_t>(sum, 0));
}

json or_null(const std::optional<std::uint64_t>& value) {
    return value ? json(*value) : json();
}

/// The ledger of an interrupted run, as far as ledger.csv and the files tell.
json ledger_of_rows(const LedgerOverTime& over_time, const RecordTotals& held) {
    json ledger;
    for (const daemon::LedgerCounter& counter : daemon::ledger_counters()) {
        ledger[counter.section][counter.name] =
            or_null(sum_of(over_time, std::string(counter.section) + '.' + counter.name));
    }
    ledger["loss_known"] = !ledger["datagrams"]["lost"].is_null();
    ledger["pairs"]["prompts_found"] =
        std::max(sum_of(over_time, "singles.prompts").value_or(0), held.prompts);
    ledger["pairs"]["delayeds_found"] =
        std::max(sum_of(over_time, "singles.delayeds").value_or(0), held.delayeds);
    if (!held.has_singles) {
        for (auto& [name, count] : ledger["saved_singles"].items())
            count = 0;
    }
    ledger["closed"] = nullptr;
    ledger["open"] = {over_time.rows ? fmt::format("the run was interrupted: its counters are known up to {} "
                                                   "ticks, and no identity can be checked",
                                                   over_time.rows->to_ticks.back())
                                     : "the run was interrupted: no counter is known but those of its files"};
    return ledger;
}

/// Records that were found and are in no file have not been written.
void count_records(json& ledger, const RecordTotals& held) {
    json& pairs = ledger["pairs"];
    if (!pairs.is_object()) return;
    const std::uint64_t written = held.prompts + held.delayeds;
    pairs["written"] = written;
    const auto found = [&](const char* name) { return pairs.value(name, json()); };
    if (found("prompts_found").is_number_unsigned() && found("delayeds_found").is_number_unsigned()) {
        const std::uint64_t all =
            found("prompts_found").get<std::uint64_t>() + found("delayeds_found").get<std::uint64_t>();
        pairs["write_failed"] = all - std::min(all, written);
        pairs["in_queue"] = 0;
    }
    const auto count = [&](const char* section, std::uint64_t kept) {
        json& records = ledger[section];
        records["written"] = kept;
        const json all = records.value("found", json());
        if (!all.is_number_unsigned()) return;
        records["write_failed"] = all.get<std::uint64_t>() - std::min(all.get<std::uint64_t>(), kept);
        records["in_queue"] = 0;
    };
    const auto has = [&](const char* section) {
        return ledger.contains(section) && ledger[section].is_object();
    };
    if (held.has_singles && has("saved_singles")) count("saved_singles", held.singles);
    if (held.has_triples && has("triples")) count("triples", held.triples);
    if (has("tags")) count("tags", held.tags);
}

json list_of(const std::vector<RecoveredFile>& files) {
    json list = json::array();
    for (const daemon::RecordKind kind :
         {daemon::RecordKind::coincidences, daemon::RecordKind::singles, daemon::RecordKind::triples,
          daemon::RecordKind::tags, daemon::RecordKind::seconds}) {
        std::uint64_t first_record = 0;
        for (const RecoveredFile& file : files) {
            if (file.kind != kind || file.state == "lost") continue;
            for (const daemon::ListModePart& part : file.parts) {
                const auto time = [&](std::uint64_t ticks) {
                    return part.records == 0 ? json() : json(ticks);
                };
                list.push_back({{"name", part.name},
                                {"kind", daemon::name_of(kind)},
                                {"bytes", part.bytes},
                                {"first_record", first_record + part.first_record},
                                {"records", part.records},
                                {"first_time", time(part.first_time)},
                                {"last_time", time(part.last_time)}});
            }
            first_record += file.records;
        }
    }
    return list;
}

/// The entry `seconds`; null if the run has no file of them.
json seconds_of(const std::vector<RecoveredFile>& files) {
    for (const RecoveredFile& file : files) {
        if (file.kind != daemon::RecordKind::seconds || file.state == "lost") continue;
        return {{"file", file.name},
                {"records", file.records},
                {"write_failed", file.missing_records},
                {"failure", nullptr}};
    }
    return nullptr;
}

json fate_of(const std::vector<RecoveredFile>& files) {
    json fate = json::object();
    for (const RecoveredFile& file : files) {
        if (file.state == "lost") {
            fate[file.name] = {{"state", file.state}, {"why", file.why}};
        } else {
            fate[file.name] = {{"state", file.state},
                               {"records", file.records},
                               {"missing_records", file.missing_records},
                               {"lost_bytes", file.lost_bytes}};
        }
    }
    return fate;
}

}  // namespace

std::uint64_t RecoveredFile::first_time() const {
    std::uint64_t first = UINT64_MAX;
    for (const daemon::ListModePart& part : parts)
        if (part.records != 0) first = std::min(first, part.first_time);
    return first;
}

void RecoveredFile::join() {
    daemon::ListModePart all{name};
    all.records = records;
    for (const daemon::ListModePart& part : parts) {
        if (part.records == 0) continue;
        if (part.first_record == 0) all.first_time = part.first_time;
        all.last_time = std::max(all.last_time, part.last_time);
    }
    parts = {all};
}

std::optional<daemon::Coverage> recovered_coverage(const std::filesystem::path& run, const json& original,
                                                   const std::vector<RecoveredFile>& files,
                                                   const daemon::Intervals& seconds,
                                                   std::optional<std::uint64_t> run_begin) {
    for (const daemon::RecordKind kind : {daemon::RecordKind::coincidences, daemon::RecordKind::singles}) {
        std::vector<const RecoveredFile*> of_kind;  // not what was cut from them later
        for (const RecoveredFile& file : files) {
            if (file.kind == kind && file.state != "lost" && file.name.starts_with(daemon::name_of(kind)))
                of_kind.push_back(&file);
        }
        if (of_kind.empty()) continue;
        daemon::Intervals times;
        std::uint64_t before = UINT64_MAX;  // where the next file begins, and at last the first one
        for (auto file = of_kind.rbegin(); file != of_kind.rend(); ++file) {
            times = times.unite((*file)->times.intersect(gpu::TickRange{0, before}));
            before = std::min(before, (*file)->first_time());
        }
        const daemon::ListModeReader reader(run / of_kind.front()->name);
        const bool says = original.is_object() && original.contains("coverage");
        const daemon::Coverage whole =
            daemon::coverage_of(says ? original : reader.description(), original, true);
        return covered_by_survivors(whole, times, before, seconds, run_begin);
    }
    return std::nullopt;
}

json recovered_description(const std::filesystem::path& run, const json& original,
                           const std::vector<RecoveredFile>& files,
                           const std::optional<daemon::Coverage>& coverage) {
    json content = original.is_object() ? original : json{{"run_id", run.filename().string()}};
    const json state = content.value("state", json());
    const bool interrupted = !original.is_object() || state == "running" || state == "interrupted";
    const RecordTotals held = held_in(files);
    json recovered = {{"from", std::filesystem::absolute(run).string()},
                      {"utc", daemon::utc_text(std::chrono::system_clock::now())},
                      {"state", interrupted ? json("interrupted") : state},
                      {"files", fate_of(files)}};
    if (interrupted) {
        const LedgerOverTime over_time = ledger_over_time(run);
        content["ledger"] = ledger_of_rows(over_time, held);
        content["stop_reason"] = "interrupted: the daemon was killed or the host lost power";
        content["ledger_over_time"] = {
            {"file", daemon::ledger_file},
            {"rows", over_time.lines},
            {"failure", over_time.trouble.empty() ? "the run was interrupted" : over_time.trouble}};
        recovered["ledger_until_ticks"] =
            over_time.rows ? json(over_time.rows->to_ticks.back()) : json(nullptr);
    }
    if (content.value("ledger", json()).is_object()) count_records(content["ledger"], held);
    content["files"] = list_of(files);
    content["seconds"] = seconds_of(files);
    content["recovered"] = std::move(recovered);
    content["state"] = "recovered";
    if (coverage) daemon::state_in(content, *coverage);
    return content;
}

}  // namespace petacq::petlm
