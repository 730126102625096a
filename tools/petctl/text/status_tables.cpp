#include "tools/petctl/text/status_tables.hpp"

#include <fmt/core.h>

#include <array>
#include <nlohmann/json.hpp>

#include "tools/petctl/text/values.hpp"

namespace petacq::petctl {

using nlohmann::json;

namespace {

std::string per_second(const json& value) {
    return scaled(value, "/s");
}

std::string tenths(const json& value) {
    return with_unit(value, "{:.1f}", "");
}

std::string hundredths(const json& value) {
    return with_unit(value, "{:+.2f}", "");
}

constexpr std::array sources{Column{"source", "id", text_of, true},
                             Column{"address", "address", text_of},
                             Column{"state", "state", text_of},
                             Column{"frames", "frames_per_s", per_second},
                             Column{"datagrams", "datagrams_per_s", per_second},
                             Column{"lost", "lost_per_s", per_second},
                             Column{"loss", "lost_fraction", percent},
                             Column{"lost in all", "lost", text_of},
                             Column{"skew us", "skew_us", tenths},
                             Column{"seen s ago", "last_seen_s", tenths},
                             Column{"reason", "reason", text_of, true}};

constexpr std::array modules{Column{"bdm", "bdm", text_of, true},
                             Column{"singles", "singles_per_s", per_second},
                             Column{"mean keV", "mean_keV", tenths},
                             Column{"peak keV", "peak_keV", tenths},
                             Column{"photopeak", "photopeak_keV", tenths},
                             Column{"mean dt ns", "mean_dt_ns", hundredths},
                             Column{"prompts", "prompts_per_single", percent},
                             Column{"temp C", "temperature_C", tenths},
                             Column{"dead time", "dead_time_fraction", percent},
                             Column{"randoms", "expected_randoms_per_s", per_second},
                             Column{"health", "health", text_of}};

constexpr std::array all_rates{
    Rate{"datagrams", "datagrams_per_s", per_second, 7},
    Rate{"bytes", "bytes_per_s", [](const json& value) { return scaled(value, "B/s"); }, 8},
    Rate{"lost", "lost_fraction", percent, 6},
    Rate{"frames", "frames_per_s", per_second, 5},
    Rate{"singles, raw", "singles_raw_per_s", per_second, 12},
    Rate{"singles", "singles_per_s", per_second, 4},
    Rate{"in multiples", "multiples_per_s", per_second, 13},
    Rate{"prompts", "prompts_per_s", per_second, 1},
    Rate{"delayeds", "delayeds_per_s", per_second, 2},
    Rate{"net trues", "net_trues_per_s", per_second, 3},
    Rate{"randoms", "randoms_fraction", percent, 9},
    Rate{"randoms expected", "expected_randoms_per_s", per_second, 11},
    Rate{"NECR, estimate", "necr_per_s", per_second, 10},
    Rate{"triples", "triples_per_s", per_second, 14}};

std::string stages_text(const json& stages) {
    std::string text;
    if (!stages.is_array()) return text;
    for (const json& stage : stages) {
        if (!text.empty()) text += ", ";
        text += text_of(at(stage, {"name"})) + " " + percent(at(stage, {"utilisation"}));
        if (at(stage, {"state"}) == "stalled") text += " STALLED";
    }
    return text;
}

std::string queues_text(const json& queues) {
    if (!queues.is_object()) return "";
    const auto count = [&](const char* field) { return text_of(at(queues, {field})); };
    return fmt::format(
        "{} of {} free (low {}), {} pending (high {}), {} for the disk (high {})", count("free_batches"),
        counted(at(queues, {"batches"}), "batch", "batches"), count("free_batches_low_water"),
        counted(at(queues, {"pending_singles"}), "single", "singles"), count("pending_singles_high_water"),
        counted(at(queues, {"writer_blocks"}), "block", "blocks"), count("writer_high_water"));
}

/// The raw capture of the run in progress; empty without one.
Line capture_line(const json& status) {
    const json& capture = at(status, {"run", "capture"});
    if (!capture.is_object()) return {};
    const json& dropped = at(capture, {"datagrams_dropped"});
    const json& failure = at(capture, {"failure"});
    std::string text = fmt::format("{}, {}, {} dropped, {} for the disk (high {})",
                                   counted(at(capture, {"datagrams_written"}), "datagram", "datagrams"),
                                   scaled(at(capture, {"bytes"}), "B"), text_of(dropped),
                                   counted(at(status, {"queues", "capture_batches"}), "batch", "batches"),
                                   text_of(at(status, {"queues", "capture_high_water"})));
    if (failure.is_string()) text += ", FAILED: " + text_of(failure);
    const bool whole = failure.is_null() && (dropped.is_null() || dropped == 0);
    return labelled("raw capture", std::move(text), whole ? Style::plain : Style::warning);
}

}  // namespace

std::string milliseconds(const json& value) {
    if (!value.is_number() || value.get<double>() < 999.5) return with_unit(value, "{:.3g}", " ms");
    return duration(value.get<double>() * 1e-3);
}

std::span<const Column> source_columns() {
    return sources;
}

std::span<const Column> module_columns() {
    return modules;
}

std::span<const Rate> rates() {
    return all_rates;
}

Table object_table(const json& array, std::span<const Column> columns, std::size_t marked) {
    Table table;
    Line headings;
    for (std::size_t i = 0; i < columns.size(); ++i) {
        table.left.push_back(columns[i].left);
        headings.push_back({columns[i].heading, i == marked ? Style::title : Style::faint});
    }
    table.rows.push_back(std::move(headings));
    if (!array.is_array()) return table;
    for (const json& object : array) {
        const json& health = at(object, {"health"});
        const Style style = health.is_string() && health != "ok" ? Style::warning : Style::plain;
        Line row;
        for (const Column& column : columns)
            row.push_back({column.text(at(object, {column.field})), style});
        table.rows.push_back(std::move(row));
    }
    return table;
}

void add_peer(Lines& lines, const json& peer) {
    if (!peer.is_object()) return;
    const json& state = at(peer, {"state"});
    std::string text = text_of(state) + ", " + text_of(at(peer, {"url"}));
    if (const json& run = at(peer, {"run"}); run.is_string()) text += ", run " + text_of(run);
    if (const json& failure = at(peer, {"failure"}); failure.is_string())
        text += fmt::format(", not heard for {}: {}", duration(at(peer, {"not_heard_s"})), text_of(failure));
    lines.push_back(labelled("peer", printable(text), state == "recording" ? Style::plain : Style::warning));
}

Lines fact_lines(const json& status) {
    Lines lines;
    if (const json& latency = at(status, {"latency"}); latency.is_object()) {
        const auto ms = [&](const char* field) { return milliseconds(at(latency, {field})); };
        lines.push_back(labelled(
            "latency", fmt::format("p50 {}, p99 {}, max {}", ms("p50_ms"), ms("p99_ms"), ms("max_ms"))));
    }
    if (const json& disk = at(status, {"disk"}); disk.is_object()) {
        lines.push_back(labelled(
            "disk", fmt::format("{} of {} free in {}, {} written, {} left",
                                scaled(at(disk, {"free_bytes"}), "B"), scaled(at(disk, {"total_bytes"}), "B"),
                                text_of(at(disk, {"path"})), scaled(at(disk, {"write_bytes_per_s"}), "B/s"),
                                duration(at(disk, {"time_left_s"})))));
    }
    add_peer(lines, at(status, {"peer"}));
    if (const json& dead_time = at(status, {"dead_time"}); dead_time.is_object()) {
        lines.push_back(
            labelled("dead time", fmt::format("{} at {} ({})", percent(at(dead_time, {"fraction"})),
                                              with_unit(at(dead_time, {"dead_time_ns"}), "{:.6g}", " ns"),
                                              text_of(at(dead_time, {"model"})))));
    }
    if (const json& from = at(status, {"rates", "necr_scatter_fraction_from"}); from.is_string()) {
        const json& fraction = at(status, {"rates", "necr_scatter_fraction"});
        const std::string source = text_of(from);
        lines.push_back(
            labelled("scatter fraction",
                     fraction.is_null() ? source : fmt::format("{} ({})", percent(fraction), source)));
    }
    if (const std::string stages = stages_text(at(status, {"stages"})); !stages.empty()) {
        const bool stalled = stages.find("STALLED") != std::string::npos;
        lines.push_back(labelled("stages", stages, stalled ? Style::bad : Style::plain));
    }
    if (const std::string queues = queues_text(at(status, {"queues"})); !queues.empty())
        lines.push_back(labelled("queues", queues));
    if (Line capture = capture_line(status); !capture.empty()) lines.push_back(std::move(capture));
    return lines;
}

Lines reason_lines(const json& health) {
    Lines lines;
    const json& reasons = at(health, {"reasons"});
    if (!reasons.is_array()) return lines;
    for (const json& reason : reasons) {
        const Style style = health_style(at(reason, {"severity"}));
        Line line{
            {"    "}, {text_of(at(reason, {"code"})), style}, {": " + text_of(at(reason, {"message"}))}};
        if (const json& since = at(reason, {"since_s"}); since.is_number())
            line.push_back({" (for " + duration(since) + ")", Style::faint});
        lines.push_back(std::move(line));
    }
    return lines;
}

Style health_style(const json& state) {
    if (state == "ok") return Style::good;
    if (state == "degraded") return Style::warning;
    return state == "failed" ? Style::bad : Style::plain;
}

}  // namespace petacq::petctl
