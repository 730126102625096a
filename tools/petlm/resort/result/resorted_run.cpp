#include "tools/petlm/resort/result/resorted_run.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "config/base/answer.hpp"
#include "daemon/listmode/format.hpp"
#include "daemon/run/directory.hpp"
#include "daemon/run/ledger.hpp"
#include "daemon/seconds/file.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/records/output.hpp"
#include "tools/petlm/records/run.hpp"
#include "tools/petlm/resort/result/merged_tags.hpp"

namespace petacq::petlm {
namespace {

using nlohmann::json;

/// Earlier versions do not count these.
bool later_counter(const daemon::LedgerCounter& counter, const json& section) {
    const std::string_view name = counter.name;
    const std::string_view of = counter.section;
    if ((of == "gammas" || of == "triples") && section.empty()) return true;
    return (name == "unnumbered" || name == "duplicates_suspected") && section.is_object() &&
           !section.empty() && !section.contains(name);
}

/// False if the ledger of the run lacks a counter.
bool read(const json& document, daemon::Ledger& ledger) {
    ledger.numbered = document.value("loss_known", true);
    for (const daemon::LedgerCounter& counter : daemon::ledger_counters()) {
        const json section = document.value(counter.section, json::object());
        const json number = section.is_object() ? section.value(counter.name, json()) : json();
        if (number.is_number_integer()) {
            counter.in(ledger) = number.is_number_unsigned()
                                     ? number.get<std::uint64_t>()
                                     : static_cast<std::uint64_t>(number.get<std::int64_t>());
        } else if (ledger.numbered && !later_counter(counter, section)) {
            return false;
        }
    }
    return true;
}

/// The sum of the ledgers. Absent if one lacks a counter.
std::optional<daemon::Ledger> sum_of_ledgers(const Inputs& inputs) {
    daemon::Ledger sum;
    for (const json& run : inputs.documents) {
        daemon::Ledger one;
        const json document = run.value("ledger", json());
        if (!document.is_object() || !read(document, one)) return std::nullopt;
        for (const daemon::LedgerCounter& counter : daemon::ledger_counters())
            counter.in(sum) += counter.of(one);
        sum.numbered = sum.numbered && one.numbered;
    }
    return sum;
}

/// Whether the ledgers count no other records of a section than those that were read: they count a whole run,
/// and the input may be some of its files or times. True where they do not say.
bool counts_only(const Inputs& inputs, const char* section, std::uint64_t read) {
    std::uint64_t written = 0;
    for (const json& run : inputs.documents) {
        const json::json_pointer at(fmt::format("/ledger/{}/written", section));
        if (!run.contains(at) || !run[at].is_number_unsigned()) return true;
        written += run[at].get<std::uint64_t>();
    }
    return written == read;
}

json resorted_ledger(const Inputs& inputs, const ResortedRun& made, std::uint64_t tags) {
    const bool whole = inputs.whole && counts_only(inputs, "saved_singles", made.taken.received) &&
                       counts_only(inputs, "tags", tags);
    const std::optional<daemon::Ledger> sum = whole ? sum_of_ledgers(inputs) : std::nullopt;
    daemon::Ledger ledger = sum.value_or(daemon::Ledger{});
    ledger.frames.below_window += made.taken.below_window;
    ledger.frames.above_window += made.taken.above_window;
    ledger.frames.accepted -= made.taken.below_window + made.taken.above_window;
    static_cast<gpu::SingleCounts&>(ledger.singles) = made.singles;
    ledger.pairs = {};
    ledger.pairs.prompts_found = made.singles.prompts;
    ledger.pairs.delayeds_found = made.singles.delayeds;
    ledger.pairs.written = made.singles.prompts + made.singles.delayeds;
    ledger.saved_singles = {};
    ledger.gammas = made.gammas.value_or(gpu::GammaCounts());
    ledger.triples = {};
    ledger.triples.found = ledger.triples.written = ledger.gammas.triples + ledger.gammas.delayed;
    json all = to_json(ledger);
    if (sum) return all;
    // Of a run that was interrupted, or of a part of one; nobody can tell whether it closes.
    json known = {{"tags", {{"written", tags}}}};
    if (inputs.runs.size() == 1 && whole && inputs.documents[0].value("ledger", json()).is_object())
        known = inputs.documents[0]["ledger"];
    for (const char* section : {"singles", "pairs", "saved_singles", "gammas", "triples"})
        known[section] = all.at(section);
    return known;
}

json from_inputs(const Inputs& inputs) {
    json from = json::array();
    for (const std::filesystem::path& run : inputs.heard_by(inputs.runs))
        from.push_back(std::filesystem::absolute(run).string());
    return from;
}

json missing_in(const Inputs& inputs) {
    json missing = json::array();
    for (const MissingData& m : inputs.missing)
        missing.push_back({{"run", m.run}, {"from_ticks", m.range.start}, {"to_ticks", m.range.end}});
    return missing;
}

/// "complete" if all runs are, else the state of the first that is not.
std::string state_of(const Inputs& inputs) {
    for (std::size_t i = 0; i < inputs.runs.size(); ++i) {
        std::string state = state_of_run(inputs.files_at[i], inputs.documents[i]);
        if (state != "complete") return state;
    }
    return inputs.missing.empty() ? "complete" : "partial";
}

}  // namespace

bool is_one_file(const std::filesystem::path& output) {
    return output.extension() == ".plm";
}

daemon::Coverage covered_by_result(const Inputs& inputs, const config::Configuration& configuration,
                                   const std::filesystem::path& output) {
    std::vector<daemon::Coverage> of_singles = inputs.coverages;
    for (std::size_t i = 0; i < of_singles.size(); ++i) {
        of_singles[i].rules = {};  // they may have been found again by others
        if (inputs.settled) {
            of_singles[i].intervals = times_of(of_singles[i], inputs.singles[i]);
        } else {
            of_singles[i].intervals.reset();
        }
    }
    daemon::Coverage covered;
    try {
        covered = daemon::united(of_singles, true);
    } catch (const daemon::CoverageError& error) {
        throw UsageError(fmt::format("the runs do not belong together: {}", error.what()));
    }
    // The earliest of all may lie before the time that they have in common.
    if (const auto& anchor = of_singles[inputs.first()].anchor) covered.anchor = anchor;
    if (covered.intervals) covered = daemon::part_of(covered, inputs.searched);
    covered = daemon::with_rules(std::move(covered), configuration.coincidence, configuration.energy);
    if (is_one_file(output)) return covered;
    covered.origin.runs = {{inputs.documents[inputs.first()].value("run_id", ""),
                            std::filesystem::absolute(output).lexically_normal()}};
    covered.loss.seconds_complete = true;
    return covered;
}

daemon::ListModePart part_of(const std::filesystem::path& file, std::uint64_t records,
                             std::uint64_t first_time, std::uint64_t last_time) {
    daemon::ListModePart part{file.filename().string()};
    part.records = records;
    part.bytes = std::filesystem::file_size(Outputs::partial(file));
    part.first_time = first_time;
    part.last_time = last_time;
    return part;
}

json file_entry(const daemon::ListModePart& part, daemon::RecordKind kind) {
    const auto time = [&](std::uint64_t ticks) { return part.records == 0 ? json() : json(ticks); };
    return {{"name", part.name},
            {"kind", name_of(kind)},
            {"bytes", part.bytes},
            {"first_record", part.first_record},
            {"records", part.records},
            {"first_time", time(part.first_time)},
            {"last_time", time(part.last_time)}};
}

void check_taken(const gpu::FrameCounts& taken, const Inputs& inputs) {
    if (taken.bad_address == 0) return;
    throw BadInput(fmt::format("{}: {} singles name crystals that the scanner does not have",
                               inputs.runs.front().string(), taken.bad_address));
}

config::Written summary(const std::filesystem::path& output, const ResortedRun& made,
                        const Outputs& outputs) {
    json facts = {{"prompts", made.singles.prompts},
                  {"delayeds", made.singles.delayeds},
                  {"singles", made.taken.accepted},
                  {"backend", made.back_end}};
    std::string triples;
    if (made.gammas) {
        facts["triples"] = made.gammas->triples + made.gammas->delayed;
        triples = fmt::format(", {} triples", facts["triples"].get<std::uint64_t>());
    }
    return {.facts = std::move(facts),
            .text = fmt::format("{}: {} prompts, {} delayeds{} from {} singles ({})\n", output.string(),
                                made.singles.prompts, made.singles.delayeds, triples, made.taken.accepted,
                                made.back_end),
            .files = outputs.written(),
            .warnings = {}};
}

void complete_run(const Inputs& inputs, const json& settings, daemon::Coverage covered,
                  const ResortedRun& made, const std::filesystem::path& output) {
    gpu::TickRange tag_times;
    const std::filesystem::path tags = output / daemon::tags_file;
    const std::uint64_t tag_count = merge_tags(inputs, covered, Outputs::partial(tags), tag_times);
    json content = inputs.documents[inputs.first()];
    for (const auto& [key, value] : settings.items())
        content["configuration"][key] = value;
    if (!settings.contains("gammas") && content["configuration"].contains("gammas"))
        content["configuration"]["gammas"] = nullptr;
    content["state"] = state_of(inputs);
    content["resorted"] = settings;
    content["resorted"]["from"] = from_inputs(inputs);
    content["resorted"]["missing"] = missing_in(inputs);
    content["backend"] = made.back_end;
    for (const char* of_the_daemon : {"backend_choice", "capture", "ledger_over_time", "spectra"})
        content.erase(of_the_daemon);
    covered.loss.live = made.live;
    daemon::state_in(content, covered);
    content["ledger"] = resorted_ledger(inputs, made, tag_count);
    if (json& randoms = content["expected_randoms"]; randoms.is_object()) {
        randoms =
            daemon::expected_randoms(made.seconds, covered.seconds(),
                                     !settings.at("coincidence").value("delay_ticks", json()).is_null());
    }
    json files = json::array();
    for (const daemon::ListModePart& part : made.coincidences_files)
        files.push_back(file_entry(part, daemon::RecordKind::coincidences));
    for (const daemon::ListModePart& part : made.triples_files)
        files.push_back(file_entry(part, daemon::RecordKind::triples));
    if (std::filesystem::exists(Outputs::partial(tags))) {
        files.push_back(
            file_entry(part_of(tags, tag_count, tag_times.start, tag_times.end), daemon::RecordKind::tags));
    }
    files.push_back(file_entry(made.seconds_file, daemon::RecordKind::seconds));
    content["files"] = files;
    content["seconds"] = {{"file", daemon::seconds_file},
                          {"records", made.seconds_file.records},
                          {"write_failed", 0},
                          {"failure", nullptr}};
    write_text(output / daemon::run_file, content.dump(2) + '\n');
}

}  // namespace petacq::petlm
