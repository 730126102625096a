#include "tools/petctl/text/status_summary.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/petctl/text/status_tables.hpp"
#include "tools/petctl/text/values.hpp"

namespace petacq::petctl {

using nlohmann::json;

namespace {

constexpr std::size_t max_rates = 6;
/// Besides these, of a daemon that records triples.
constexpr std::string_view triples_rate = "triples_per_s";

/// "74 active, 2 silent": how many of the array have which value of `field`, the most frequent first.
std::string tally(const json& array, const char* field) {
    std::map<std::string, std::size_t> counts;
    for (const json& one : array)
        ++counts[text_of(at(one, {field}))];
    std::vector<std::pair<std::string, std::size_t>> order(counts.begin(), counts.end());
    std::stable_sort(order.begin(), order.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    std::string text;
    for (const auto& [value, count] : order)
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, value);
    return text;
}

void add_tally(Lines& lines, const char* title, const json& array, const char* field) {
    if (!array.is_array() || array.empty()) return;
    const bool well = std::all_of(array.begin(), array.end(), [](const json& one) {
        const json& health = at(one, {"health"});
        return !health.is_string() || health == "ok";
    });
    lines.push_back(labelled(title, fmt::format("{}: {}", array.size(), tally(array, field)),
                             well ? Style::plain : Style::warning));
}

Lines main_rates(const json& status) {
    Table table{{true, false, false},
                {{{"rates", Style::title}, {"last second", Style::faint}, {"average", Style::faint}}}};
    for (const Rate& rate : rates()) {
        const bool of_triples = rate.field == triples_rate && at(status, {"rates", rate.field}).is_number();
        if (rate.rank > max_rates && !of_triples) continue;
        table.rows.push_back({{fmt::format("{:<16}", rate.label)},
                              {rate.text(at(status, {"rates", rate.field}))},
                              {rate.text(at(status, {"average", rate.field}))}});
    }
    return table_lines(table);
}

/// The verdict, and what good data did not become coincidences on the disk.
Line ledger_line(const json& ledger) {
    const json& verdict = at(ledger, {"closed"});
    std::string text = closed(verdict) + ", " +
                       counted(at(ledger, {"datagrams", "lost"}), "datagram", "datagrams") + " lost";
    const auto sum = [&](std::initializer_list<std::pair<const char*, const char*>> counters) {
        std::uint64_t total = 0;
        for (const auto& [section, name] : counters) {
            const json& count = at(ledger, {section, name});
            if (count.is_number_integer()) total += count.get<std::uint64_t>();
        }
        return total;
    };
    const auto say = [&](std::uint64_t count, const char* one, const char* fate) {
        if (count > 0) text += fmt::format(", {} {}", counted(count, one, std::string(one) + "s"), fate);
    };
    say(sum({{"pairs", "write_failed"},
             {"saved_singles", "write_failed"},
             {"triples", "write_failed"},
             {"tags", "write_failed"}}),
        "record", "not written");
    say(sum({{"frames", "late"}}), "frame", "late");
    say(sum({{"frames", "time_jump"}}), "time jump", "rejected");
    say(sum({{"frames", "bad_marker"}, {"frames", "bad_address"}, {"frames", "bad_time"}}), "frame",
        "invalid");
    return labelled("ledger", std::move(text), verdict == false ? Style::bad : Style::plain);
}

/// One line for each of the rest.
Lines facts(const json& status) {
    Lines lines;
    const auto ms = [&](const char* field) { return milliseconds(at(status, {"latency", field})); };
    if (at(status, {"latency", "p99_ms"}).is_number())
        lines.push_back(labelled("latency", fmt::format("p50 {}, p99 {}", ms("p50_ms"), ms("p99_ms"))));
    if (const json& disk = at(status, {"disk"}); disk.is_object()) {
        lines.push_back(
            labelled("disk", fmt::format("{} of {} free, {} written", scaled(at(disk, {"free_bytes"}), "B"),
                                         scaled(at(disk, {"total_bytes"}), "B"),
                                         scaled(at(disk, {"write_bytes_per_s"}), "B/s"))));
    }
    add_tally(lines, "sources", at(status, {"sources"}), "state");
    add_tally(lines, "BDMs", at(status, {"modules"}), "health");
    lines.push_back(ledger_line(at(status, {"ledger"})));
    add_peer(lines, at(status, {"peer"}));
    return lines;
}

/// The first reasons, each in full, in about `most` lines, and how many more there are.
Lines brief_reasons(const json& health, std::size_t width, std::size_t most) {
    const Lines whole = reason_lines(health);
    Lines brief;
    for (std::size_t i = 0; i < whole.size(); ++i) {
        const Lines full = wrapped(whole[i], width, 6);
        const std::size_t room_for_rest = i + 1 < whole.size() ? 1 : 0;
        if (i > 0 && brief.size() + full.size() + room_for_rest > most) {
            brief.push_back({{fmt::format("    and {} more", whole.size() - i), Style::warning}});
            break;
        }
        append(brief, full);
    }
    return brief;
}

}  // namespace

Lines status_summary(const json& status, const Display& display) {
    Lines lines = strip_lines(status, display);
    Lines rest = main_rates(status);
    append(rest, facts(status));
    rest.push_back({{"  petctl status --full shows everything", Style::faint}});

    const json& health = at(status, {"health"});
    const json& state = at(health, {"state"});
    lines.push_back(labelled("health", text_of(state), health_style(state)));
    const std::size_t taken = lines.size() + rest.size();
    const std::size_t left = max_summary_lines > taken ? max_summary_lines - taken : 0;
    append(lines, brief_reasons(health, display.width, std::max<std::size_t>(left, 2)));
    for (Line& line : rest)
        lines.push_back(clipped(std::move(line), display.width));
    return lines;
}

}  // namespace petacq::petctl
