#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "tools/petctl/hosts/summary.hpp"
#include "tools/petctl/text/values.hpp"

namespace petacq::petctl {

using nlohmann::json;

namespace {

/// Adds the counters of a ledger, which are whole numbers in sections.
void add_to(json& sum, const json& ledger) {
    if (!ledger.is_object()) return;
    for (const auto& [section, counters] : ledger.items()) {
        if (!counters.is_object()) continue;
        for (const auto& [name, value] : counters.items()) {
            if (value.is_number_unsigned()) add_count(sum[section][name], value);
        }
    }
}

Span verdict(const json& closes) {
    return {closed(closes), closes == true ? Style::good : closes == false ? Style::bad : Style::warning};
}

}  // namespace

void add_count(json& sum, const json& count) {
    if (!count.is_number_unsigned()) return;
    sum = (sum.is_null() ? 0 : sum.get<std::uint64_t>()) + count.get<std::uint64_t>();
}

void add_counts(json& sum, const std::vector<std::pair<std::string, const json*>>& hosts, const char* name,
                const HostPairs& pairs) {
    for (const auto& unit : pairs.units()) {
        json most;
        for (const auto& [host, counts] : hosts) {
            const json& count = at(*counts, {name});
            if (std::find(unit.begin(), unit.end(), host) == unit.end() || !count.is_number_unsigned())
                continue;
            if (most.is_null() || count > most) most = count;
        }
        add_count(sum, most);
    }
}

void add_closed(json& all, const json& own) {
    if (own == false || (own != true && all == true)) all = own;
}

json group_ledger(const std::vector<HostAnswer>& ledgers, const HostPairs& pairs) {
    json hosts = json::object();
    for (const HostAnswer& answer : ledgers)
        hosts[answer.host] = answer.good() ? answer.result() : json{{"failure", answer.failure}};
    json sum = json::object();
    json closes = true;
    for (const auto& unit : pairs.units()) {
        const auto accepted = [&](const std::string& host) {
            const json& count = at(hosts[host], {"ledger", "datagrams", "accepted"});
            return count.is_number_unsigned() ? count.get<std::int64_t>() : -1;
        };
        const std::string& best = *std::max_element(
            unit.begin(), unit.end(),
            [&](const std::string& a, const std::string& b) { return accepted(a) < accepted(b); });
        const json& ledger = at(hosts[best], {"ledger"});
        add_closed(closes, at(ledger, {"closed"}));
        add_to(sum, ledger);
    }
    return {{"hosts", std::move(hosts)}, {"sum", std::move(sum)}, {"closed", std::move(closes)}};
}

Lines group_ledger_lines(const json& group) {
    const json& hosts = group["hosts"];
    Table table;
    const auto add_row = [&](const std::string& name, const auto& cell, Span last) {
        Line row{{name}};
        for (const json& answer : hosts)
            row.push_back(cell(answer));
        row.push_back(std::move(last));
        table.rows.push_back(std::move(row));
    };
    table.left.assign(hosts.size() + 2, false);
    table.left[0] = true;
    Line headings{{"", Style::faint}};
    for (const auto& [host, answer] : hosts.items())
        headings.push_back({host, Style::faint});
    headings.push_back({"all", Style::faint});
    table.rows.push_back(std::move(headings));
    const auto text = [](const char* field) {
        return [field](const json& answer) {
            return Span{answer.contains("failure") ? "no ledger" : text_of(at(answer, {field}))};
        };
    };
    add_row("run", text("run"), {""});
    add_row("state", text("state"), {""});
    for (const auto& [section, counters] : group["sum"].items()) {
        for (const auto& [name, total] : counters.items()) {
            if (total == 0) continue;
            add_row(printable(fmt::format("{}.{}", section, name)),
                    [&, section = section, name = name](const json& answer) {
                        return Span{text_of(at(answer, {"ledger", section.c_str(), name.c_str()}))};
                    },
                    {text_of(total)});
        }
    }
    add_row(
        "ledger",
        [](const json& answer) {
            return verdict(at(answer, {"ledger", "closed"}));
        },
        verdict(group["closed"]));
    Lines lines = table_lines(table);
    for (const auto& [host, answer] : hosts.items()) {
        if (answer.contains("failure"))
            lines.push_back({{fmt::format("  {}: {}", host, text_of(answer["failure"])), Style::bad}});
        const json& open = at(answer, {"ledger", "open"});
        if (!open.is_array()) continue;
        for (const json& identity : open)
            lines.push_back({{fmt::format("  {}: {}", host, text_of(identity)), Style::bad}});
    }
    return lines;
}

}  // namespace petacq::petctl
