#include "tools/petctl/text/history_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <ctime>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "config/base/error.hpp"
#include "daemon/system/utc.hpp"
#include "tools/petctl/text/values.hpp"

namespace petacq::petctl {

using nlohmann::json;
using Time = std::chrono::system_clock::time_point;

namespace {

constexpr std::size_t most_parts = 30;
/// Lengths of the parts, seconds; the last is used for what is longer.
constexpr std::array<std::int64_t, 8> part_lengths{60, 300, 600, 1800, 3600, 7200, 21'600, 86'400};

struct HistoryEntry {
    Time time;
    const char* what;
    std::string text;
    Style style = Style::plain;
    std::string host = {};  ///< "": the only one
};

Time time_of(double seconds) {
    return Time(std::chrono::duration_cast<Time::duration>(std::chrono::duration<double>(seconds)));
}

double epoch_seconds(Time time) {
    return std::chrono::duration<double>(time.time_since_epoch()).count();
}

Time time_in(const json& document, const char* key) {
    const json& text = at(document, {key});
    return text.is_string() ? daemon::utc_time(text.get_ref<const std::string&>()).value_or(Time()) : Time();
}

std::string local_text(Time time, const char* format) {
    const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
    std::tm fields{};
    ::localtime_r(&seconds, &fields);
    std::array<char, 64> text{};
    return {text.data(), std::strftime(text.data(), text.size(), format, &fields)};
}

bool local_is_utc(Time time) {
    return local_text(time, "%z") == "+0000";
}

HistoryEntry history_entry(const json& event) {
    const std::string kind = text_of(at(event, {"kind"}));
    std::string text = text_of(at(event, {"text"}));
    const Time time = time_in(event, "utc");
    if (kind == "mark") {
        if (const json& ticks = at(event, {"ticks"}); ticks.is_number())
            text += " (" + text_of(ticks) + " ticks)";
        return {time, "mark", std::move(text), Style::title};
    }
    if (kind == "raised") return {time, "raised", std::move(text), Style::warning};
    if (kind == "cleared") return {time, "cleared", std::move(text), Style::plain};
    if (kind == "recording") {
        const json& state = at(event, {"code"});
        const bool bad = state == "failed" || state == "no_data" || state == "interrupted";
        return {time, "strip", std::move(text), bad ? Style::bad : Style::plain};
    }
    if (kind == "run_started") return {time, "run", std::move(text), Style::good};
    if (kind == "run_ended") {
        const bool failed = text.find(" failed") != std::string::npos;
        return {time, "run", std::move(text), failed ? Style::bad : Style::good};
    }
    return {time, "daemon", std::move(text), kind == "daemon_gone" ? Style::bad : Style::plain};
}

/// What a column of the rates has at these rows: the mean, or the largest; empty: nothing.
std::string combined(const json& rates, const char* column, const std::vector<std::size_t>& rows, bool mean) {
    const json& values = at(rates, {column});
    double sum = 0;
    double most = 0;
    std::size_t known = 0;
    for (const std::size_t row : rows) {
        if (!values.is_array() || row >= values.size() || !values[row].is_number()) continue;
        const double value = values[row].get<double>();
        sum += value;
        most = std::max(most, value);
        ++known;
    }
    if (known == 0) return "";
    if (mean) return scaled(json(sum / static_cast<double>(known)), "/s");
    return fmt::format("{:.3g} %", 100 * most);
}

std::vector<HistoryEntry> rate_entries(const json& answer) {
    const json& rates = at(answer, {"rates"});
    const json& times = at(rates, {"time"});
    if (!times.is_array() || times.empty()) return {};
    const double span = epoch_seconds(time_in(answer, "until")) - epoch_seconds(time_in(answer, "since"));
    const auto* const fits = std::find_if(part_lengths.begin(), part_lengths.end(), [&](std::int64_t length) {
        return span <= static_cast<double>(length) * most_parts;
    });
    const std::int64_t length = fits == part_lengths.end() ? part_lengths.back() : *fits;
    const double step_s = at(answer, {"step_s"}).is_number() ? at(answer, {"step_s"}).get<double>() : 0;
    std::map<std::int64_t, std::vector<std::size_t>> parts;
    for (std::size_t row = 0; row < times.size(); ++row) {
        if (times[row].is_number())
            parts[static_cast<std::int64_t>(
                      std::floor(times[row].get<double>() / static_cast<double>(length)))]
                .push_back(row);
    }
    std::vector<HistoryEntry> entries;
    for (const auto& [part, rows] : parts) {
        const double end =
            std::min(static_cast<double>((part + 1) * length), epoch_seconds(time_in(answer, "until")));
        std::string text;
        const auto say = [&](const char* before, const char* column, const char* after, bool mean) {
            if (const std::string value = combined(rates, column, rows, mean); !value.empty())
                text += before + value + after;
        };
        say("", "prompts_per_s", " prompts, ", true);
        say("", "net_trues_per_s", " net trues, ", true);
        say("", "singles_per_s", " singles, ", true);
        say("at most ", "lost_fraction", " lost, ", false);
        entries.push_back(
            {time_of(end), "rates",
             text + "over " + fmt::format("{:g} min", static_cast<double>(rows.size()) * step_s / 60),
             Style::faint});
    }
    return entries;
}

/// What the answer tells, of that host.
void append_entries(std::vector<HistoryEntry>& entries, const json& answer, const std::string& host) {
    std::vector<HistoryEntry> own = rate_entries(answer);
    if (const json& events = at(answer, {"events"}); events.is_array()) {
        for (const json& event : events)
            own.push_back(history_entry(event));
    }
    for (HistoryEntry& entry : own) {
        entry.host = host;
        entries.push_back(std::move(entry));
    }
}

/// In the order of time.
Lines lines_of(std::vector<HistoryEntry> entries) {
    if (entries.empty()) return {{{"nothing is known of that time"}}};
    std::stable_sort(entries.begin(), entries.end(),
                     [](const HistoryEntry& a, const HistoryEntry& b) { return a.time < b.time; });
    const bool both = !std::all_of(entries.begin(), entries.end(),
                                   [](const HistoryEntry& entry) { return local_is_utc(entry.time); });
    const bool hosts = !entries.front().host.empty();
    Table table{{true, true, true}, {}};
    if (both) table.left.push_back(true);
    if (hosts) table.left.push_back(true);
    const auto add = [&](std::string utc, std::string local, std::string host, std::string what, Span text) {
        Line row{{std::move(utc)}};
        if (both) row.push_back({std::move(local), Style::faint});
        if (hosts) row.push_back({std::move(host)});
        row.push_back({std::move(what)});
        row.push_back(std::move(text));
        table.rows.push_back(std::move(row));
    };
    std::pair<std::string, std::string> date;
    for (HistoryEntry& entry : entries) {
        std::pair days{daemon::utc_text(entry.time, "%F"), both ? local_text(entry.time, "%F") : ""};
        if (days != date) {
            add(days.first, days.second, "", "", {""});
            date = std::move(days);
        }
        add(daemon::utc_text(entry.time, "%H:%M:%S UTC"), local_text(entry.time, "%H:%M:%S %Z"), entry.host,
            entry.what, {std::move(entry.text), entry.style});
    }
    return table_lines(table);
}

}  // namespace

std::string history_time(const std::string& option, const std::string& text, Time now) {
    if (daemon::utc_time(text)) return text;
    double number = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, number);
    const std::string unit(rest, end);
    const std::array<std::pair<const char*, double>, 4> units{
        {{"s", 1}, {"min", 60}, {"h", 3600}, {"d", 86'400}}};
    const auto* const known =
        std::find_if(units.begin(), units.end(), [&](const auto& one) { return unit == one.first; });
    constexpr double longest_s = 366 * 86'400.0;
    if (error != std::errc() || known == units.end() || !(number > 0) ||
        !(number * known->second <= longest_s))
        throw config::Error(option +
                            ": expected a time such as 2026-11-20T18:45:00Z, or how long ago, such as "
                            "90min, 12h or 2d; found " +
                            text);
    return daemon::utc_text(now - std::chrono::duration_cast<Time::duration>(
                                      std::chrono::duration<double>(number * known->second)));
}

Lines history_lines(const json& answer) {
    std::vector<HistoryEntry> entries;
    append_entries(entries, answer, "");
    return lines_of(std::move(entries));
}

Lines group_history_lines(const json& group) {
    std::vector<HistoryEntry> entries;
    Lines failures;
    for (const auto& [host, answer] : at(group, {"hosts"}).items()) {
        if (answer.contains("failure")) {
            failures.push_back({{fmt::format("  {}: {}", host, text_of(answer["failure"])), Style::bad}});
        } else {
            append_entries(entries, answer, host);
        }
    }
    Lines lines = lines_of(std::move(entries));
    append(lines, std::move(failures));
    return lines;
}

std::string mark_text(const json& answer) {
    const json& ticks = at(answer, {"ticks"});
    return fmt::format(
        "run {} marked at {}{}: {}\n", text_of(at(answer, {"run"})), text_of(at(answer, {"utc"})),
        ticks.is_number() ? ", " + text_of(ticks) + " ticks" : "", text_of(at(answer, {"text"})));
}

}  // namespace petacq::petctl
