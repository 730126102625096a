#include "tools/petlm/resorted_run.hpp"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "daemon/listmode/file_reader.hpp"
#include "daemon/listmode/format.hpp"
#include "daemon/run/directory.hpp"
#include "daemon/run/ledger.hpp"
#include "tools/petlm/records/run.hpp"

namespace petacq::petlm {
namespace {

using nlohmann::json;

std::vector<std::filesystem::path> tag_files(const std::filesystem::path& run) {
    try {
        return record_files(run, daemon::RecordKind::tags);
    } catch (const daemon::NotListMode&) {
        return {};  // there were none
    }
}

/// False if the ledger of the run lacks a counter.
bool read(const json& document, daemon::Ledger& ledger) {
    ledger.loss_known = document.value("loss_known", true);
    for (const daemon::LedgerCounter& counter : daemon::ledger_counters()) {
        const json section = document.value(counter.section, json::object());
        const json number = section.is_object() ? section.value(counter.name, json()) : json();
        if (number.is_number_integer()) {
            counter.in(ledger) = number.is_number_unsigned()
                                     ? number.get<std::uint64_t>()
                                     : static_cast<std::uint64_t>(number.get<std::int64_t>());
        } else if (ledger.loss_known) {
            return false;
        }
    }
    return true;
}

json resorted_ledger(const json& original, const ResortedRun& made) {
    daemon::Ledger ledger;
    const bool complete = original.is_object() && read(original, ledger);
    ledger.frames.below_window += made.taken.below_window;
    ledger.frames.above_window += made.taken.above_window;
    ledger.frames.accepted -= made.taken.below_window + made.taken.above_window;
    static_cast<gpu::SingleCounts&>(ledger.singles) = made.singles;
    ledger.pairs = {};
    ledger.pairs.prompts_found = made.singles.prompts;
    ledger.pairs.delayeds_found = made.singles.delayeds;
    ledger.pairs.written = made.singles.prompts + made.singles.delayeds;
    ledger.saved_singles = {};
    json all = to_json(ledger);
    if (complete) return all;
    // Of a run that was interrupted; nobody can tell whether it closes.
    json known = original.is_object() ? original : json::object();
    for (const char* section : {"singles", "pairs", "saved_singles"})
        known[section] = all.at(section);
    return known;
}

json entry(const daemon::ListModePart& part, daemon::RecordKind kind) {
    const auto time = [&](std::uint64_t ticks) { return part.records == 0 ? json() : json(ticks); };
    return {{"name", part.name},
            {"kind", name_of(kind)},
            {"bytes", part.bytes},
            {"first_record", 0},
            {"records", part.records},
            {"first_time", time(part.first_time)},
            {"last_time", time(part.last_time)}};
}

}  // namespace

void claim_run(Outputs& outputs, const std::filesystem::path& from, const std::filesystem::path& output) {
    outputs.make_directory(output);
    for (const char* name : {daemon::coincidences_file, daemon::seconds_file, daemon::run_file})
        outputs.claim(output / name);
    for (const auto& file : tag_files(from))
        outputs.claim(output / file.filename());
}

void complete_run(const std::filesystem::path& from, const json& run, const json& settings,
                  const ResortedRun& made, const std::filesystem::path& output) {
    for (const auto& file : tag_files(from)) {
        std::filesystem::copy_file(file, Outputs::partial(output / file.filename()),
                                   std::filesystem::copy_options::overwrite_existing);
    }
    json content = run;
    for (const auto& [key, value] : settings.items())
        content["configuration"][key] = value;
    content["state"] = state_of_run(from, run);
    content["resorted"] = settings;
    content["resorted"]["from"] = std::filesystem::absolute(from).string();
    content["backend"] = made.back_end;
    for (const char* of_the_daemon : {"backend_choice", "capture", "ledger_over_time"})
        content.erase(of_the_daemon);
    content["ledger"] = resorted_ledger(run.value("ledger", json()), made);
    if (json& randoms = content["expected_randoms"]; randoms.is_object()) {
        randoms["pairs"] = made.seconds.randoms;
        randoms["pairs_per_s"] = made.seconds.randoms / randoms.value("data_s", made.seconds.length_s);
        randoms["from_delayeds"] = settings.at("coincidence").value("delay_ticks", json()).is_null()
                                       ? json()
                                       : json(made.seconds.weighted_delayeds);
    }
    json files = {entry(made.coincidences_file, daemon::RecordKind::coincidences)};
    for (const json& file : run.value("files", json::array()))
        if (file.value("kind", "") == name_of(daemon::RecordKind::tags)) files.push_back(file);
    files.push_back(entry(made.seconds_file, daemon::RecordKind::seconds));
    content["files"] = files;
    content["seconds"] = {{"file", daemon::seconds_file},
                          {"records", made.seconds_file.records},
                          {"write_failed", 0},
                          {"failure", nullptr}};
    write_text(output / daemon::run_file, content.dump(2) + '\n');
}

}  // namespace petacq::petlm
