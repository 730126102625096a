#include "tools/petctl/text/status_text.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "tools/petctl/text/status_tables.hpp"
#include "tools/petctl/text/values.hpp"

namespace petacq::petctl {

using nlohmann::json;

namespace {

void section(Lines& lines, const char* name) {
    lines.emplace_back();
    lines.push_back({{name, Style::title}});
}

/// Name and count of everything in one section of the ledger, names in front.
Line ledger_section(const char* name, const json& counters) {
    std::string text = fmt::format("  {:<10}", name);
    if (!counters.is_object() || counters.empty()) return {{text + "  -"}};
    // Counters that are 0 are left out, except the first few, which operators look for.
    constexpr std::array always{"received",      "lost",           "accepted", "decided",
                                "prompts_found", "delayeds_found", "written"};
    for (const auto& [key, value] : counters.items()) {
        const bool asked = std::find(always.begin(), always.end(), key) != always.end();
        const bool unknown = value.is_null() && asked;
        if (!unknown && (!value.is_number() || (!asked && value == 0))) continue;
        text += fmt::format("  {} {}", printable(key), text_of(value));
    }
    return {{text}};
}

bool all_zero(const json& counters) {
    if (!counters.is_object()) return true;
    return std::all_of(counters.begin(), counters.end(), [](const json& value) { return value == 0; });
}

void add_ledger(Lines& lines, const json& ledger) {
    const json& verdict = at(ledger, {"closed"});
    lines.emplace_back();
    lines.push_back(
        {{"ledger: ", Style::title}, {closed(verdict), verdict == false ? Style::bad : Style::plain}});
    for (const char* name : {"datagrams", "frames", "singles", "pairs"})
        lines.push_back(ledger_section(name, at(ledger, {name})));
    // Only if singles are saved, and if there are gammas.
    for (const char* name : {"saved_singles", "gammas", "triples"}) {
        if (const json& section = at(ledger, {name}); !all_zero(section))
            lines.push_back(ledger_section(name, section));
    }
}

/// What the operator said at the start of the run.
void add_operator(Lines& lines, const json& said) {
    const auto add = [&](const char* label, const std::string& value) {
        if (value != "-") lines.push_back(labelled(label, value));
    };
    add("  nuclide", text_of(at(said, {"nuclide"})));
    if (const json& activity = at(said, {"activity_MBq"}); activity.is_number()) {
        add("  activity", fmt::format("{} at {}, {} at the start", with_unit(activity, "{:.6g}", " MBq"),
                                      text_of(at(said, {"assay_utc"})),
                                      with_unit(at(said, {"activity_at_start_MBq"}), "{:.6g}", " MBq")));
    }
    add("  bed", with_unit(at(said, {"bed_mm"}), "{:.6g}", " mm"));
    add("  subject", text_of(at(said, {"subject"})));
    const json& keys = at(said, {"keys"});
    if (!keys.is_object()) return;
    for (const auto& [name, value] : keys.items())
        add(("  " + printable(name)).c_str(), text_of(value));
}

void add_calibration(Lines& lines, const json& calibration) {
    const auto named = [](const json& one) {
        return fmt::format("{} (SHA-256 {})", text_of(at(one, {"file"})),
                           text_of(at(one, {"sha256"})).substr(0, 12));
    };
    lines.push_back(labelled("calibration", named(calibration)));
    for (const auto& [key, label] :
         {std::pair{"made_by", "  made by"}, std::pair{"created_utc", "  made at"}}) {
        if (const json& value = at(calibration, {key}); value.is_string())
            lines.push_back(labelled(label, text_of(value)));
    }
    lines.push_back(labelled("  taken", text_of(at(calibration, {"taken_utc"}))));
    if (const json& next = at(calibration, {"next"}); next.is_object())
        lines.push_back(labelled("  after the run", named(next)));
}

void add_run(Lines& lines, const json& run) {
    lines.push_back(labelled("run", text_of(at(run, {"id"}))));
    if (!run.is_object()) return;
    lines.push_back(labelled("  started", text_of(at(run, {"start_utc"}))));
    lines.push_back(labelled("  duration", with_unit(at(run, {"duration_s"}), "{:.6g}", " s")));
    if (const json& ticks = at(run, {"start_ticks"}); ticks.is_number()) {
        const bool waiting = at(run, {"waiting"}) == true;
        lines.push_back(labelled(waiting ? "  waits for" : "  from", text_of(ticks) + " ticks"));
    }
    if (at(run, {"waiting_for_data"}) == true)
        lines.push_back(labelled("  from", "its first data, for which it waits"));
    if (const json& ticks = at(run, {"stop_ticks"}); ticks.is_number())
        lines.push_back(labelled("  to", text_of(ticks) + " ticks"));
    lines.push_back(labelled("  note", text_of(at(run, {"note"}))));
    add_operator(lines, at(run, {"operator"}));
    if (const json& latest = at(run, {"marks", "latest"}); latest.is_array() && !latest.empty()) {
        lines.push_back(labelled("  marks", text_of(at(run, {"marks", "count"}))));
        for (const json& mark : latest)
            lines.push_back(labelled("", text_of(at(mark, {"utc"})) + "  " + text_of(at(mark, {"text"}))));
    }
}

void add_rates(Lines& lines, const json& status) {
    Table table{{true, false, false},
                {{{"", Style::plain}, {"last second", Style::faint}, {"average", Style::faint}}}};
    for (const Rate& rate : rates()) {
        table.rows.push_back({{rate.label},
                              {rate.text(at(status, {"rates", rate.field}))},
                              {rate.text(at(status, {"average", rate.field}))}});
    }
    section(lines, "rates");
    append(lines, table_lines(table));
}

void add_table(Lines& lines, const char* name, const json& array, std::span<const Column> columns) {
    if (!array.is_array() || array.empty()) return;
    section(lines, name);
    append(lines, table_lines(object_table(array, columns)));
}

}  // namespace

Lines status_lines(const json& status, const Display& display) {
    Lines lines = strip_lines(status, display);
    lines.push_back({{"petacqd " + text_of(at(status, {"version"})), Style::title}});
    lines.push_back(labelled("state", text_of(at(status, {"state"}))));
    const json& health = at(status, {"health"});
    const json& state = at(health, {"state"});
    lines.push_back(labelled("health", text_of(state), health_style(state)));
    append(lines, reason_lines(health));
    lines.push_back(labelled("uptime", duration(at(status, {"uptime_s"}))));
    lines.push_back(labelled("scanner", text_of(at(status, {"scanner"}))));
    std::string backend = text_of(at(status, {"backend"}));
    if (const json& why = at(status, {"backend_choice"}); why.is_string())
        backend += " (" + text_of(why) + ")";
    lines.push_back(labelled("back-end", std::move(backend)));
    add_calibration(lines, at(status, {"calibration"}));
    add_run(lines, at(status, {"run"}));
    lines.push_back(labelled("watermark", with_unit(at(status, {"watermark_s"}), "{:.3f}", " s")));
    append(lines, fact_lines(status));
    add_rates(lines, status);
    add_ledger(lines, at(status, {"ledger"}));
    add_table(lines, "sources", at(status, {"sources"}), source_columns());
    add_table(lines, "BDMs", at(status, {"modules"}), module_columns());
    return lines;
}

std::string status_line(const json& status) {
    const auto rate = [&](const char* field) { return scaled(at(status, {"rates", field}), "/s"); };
    std::string codes;
    if (const json& reasons = at(status, {"health", "reasons"}); reasons.is_array()) {
        for (const json& reason : reasons)
            codes += (codes.empty() ? " (" : " ") + text_of(at(reason, {"code"}));
        if (!codes.empty()) codes += ")";
    }
    const std::string word = strip_word(status).text;
    return fmt::format("{}{}  {}{}  run {}  up {}  frames {}  singles {}  prompts {}  delayeds {}  lost {}",
                       word == "-" ? "" : word + "  ", text_of(at(status, {"state"})),
                       text_of(at(status, {"health", "state"})), codes, text_of(at(status, {"run", "id"})),
                       duration(at(status, {"uptime_s"})), rate("frames_per_s"), rate("singles_per_s"),
                       rate("prompts_per_s"), rate("delayeds_per_s"),
                       text_of(at(status, {"ledger", "datagrams", "lost"})));
}

bool never_began(const json& result) {
    return at(result, {"began"}) == false;
}

/// The messages of its reasons.
std::string verdict_text(const json& verdict) {
    std::string text;
    if (const json& reasons = at(verdict, {"reasons"}); reasons.is_array()) {
        for (const json& reason : reasons)
            text += (text.empty() ? "" : "; ") + text_of(at(reason, {"message"}));
    }
    return text;
}

std::string stop_line(const json& result) {
    if (never_began(result))
        return fmt::format("run {} had not begun, and nothing is left of it: {}",
                           text_of(at(result, {"run"})), text_of(at(result, {"reason"})));
    std::string line = fmt::format("run {} stopped: ", text_of(at(result, {"run"})));
    for (const auto& [key, one] :
         {std::pair{"prompts", "prompt"}, std::pair{"delayeds", "delayed"}, std::pair{"singles", "single"},
          std::pair{"triples", "triple"}, std::pair{"delayed_triples", "delayed triple"}}) {
        if (const json& count = at(result, {key}); count.is_number())
            line += counted(count, one, std::string(one) + "s") + ", ";
    }
    line += "ledger " + closed(at(result, {"ledger_closed"}));
    const json& dropped = at(result, {"capture", "datagrams_dropped"});
    if (dropped.is_number() && dropped != 0) {
        line += fmt::format(", raw capture lacks {} of {}", text_of(dropped),
                            counted(at(result, {"capture", "datagrams_offered"}), "datagram", "datagrams"));
    }
    if (const json& data = at(result, {"verdict", "state"}); data == "doubtful" || data == "bad")
        line += fmt::format(", the data are {}: {}", text_of(data), verdict_text(at(result, {"verdict"})));
    return line;
}

std::vector<std::string> stop_problems(const json& result) {
    std::vector<std::string> problems;
    if (const json& failure = at(result, {"failure"}); !failure.is_null()) {
        problems.push_back("the run failed: " + text_of(failure));
    }
    if (at(result, {"ledger_closed"}) == false) {
        std::string problem = "the ledger does not close";
        if (const json& open = at(result, {"ledger", "open"}); open.is_array()) {
            for (const json& identity : open)
                problem += "; " + text_of(identity);
        }
        problems.push_back(problem);
    }
    return problems;
}

Lines runs_lines(const json& runs) {
    const bool triples = std::any_of(runs.begin(), runs.end(),
                                     [](const json& run) { return at(run, {"triples"}).is_number(); });
    Table table{{true, true, false, false, false, false}, {}};
    Line headings;
    const auto add_heading = [&](const char* heading) { headings.push_back({heading, Style::faint}); };
    for (const char* heading : {"run", "started", "duration", "prompts", "delayeds", "singles"})
        add_heading(heading);
    if (triples) {
        add_heading("triples");
        add_heading("delayed triples");
        table.left.insert(table.left.end(), {false, false});
    }
    for (const char* heading : {"size", "ledger", "end"})
        add_heading(heading);
    table.left.insert(table.left.end(), {false, true, true});
    table.rows.push_back(std::move(headings));
    for (const json& run : runs) {
        const json& state = at(run, {"state"});
        const json& verdict = at(run, {"ledger_closed"});
        std::string end = state == "running" ? "" : text_of(at(run, {"reason"}));
        Style style = Style::plain;
        if (state != "complete") {
            end = end.empty() || end == "-"         ? text_of(state)
                  : end.starts_with(text_of(state)) ? end
                                                    : fmt::format("{}: {}", text_of(state), end);
            style = state == "running" ? Style::good : Style::warning;
            if (state == "failed" || state == "unreadable") style = Style::bad;
        } else if (const json& data = at(run, {"verdict", "state"}); data == "bad" || data == "doubtful") {
            end = fmt::format("{}: {}", text_of(data), verdict_text(at(run, {"verdict"})));
            style = data == "bad" ? Style::bad : Style::warning;
        }
        Line row{{text_of(at(run, {"run"})), style}, {text_of(at(run, {"start_utc"}))},
                 {duration(at(run, {"seconds"}))},   {text_of(at(run, {"prompts"}))},
                 {text_of(at(run, {"delayeds"}))},   {text_of(at(run, {"singles"}))}};
        if (triples) {
            row.push_back({text_of(at(run, {"triples"}))});
            row.push_back({text_of(at(run, {"delayed_triples"}))});
        }
        row.push_back({scaled(at(run, {"bytes"}), "B")});
        row.push_back({closed(verdict), verdict == false ? Style::bad : Style::plain});
        row.push_back({end, style});
        table.rows.push_back(std::move(row));
    }
    return table_lines(table);
}

}  // namespace petacq::petctl
