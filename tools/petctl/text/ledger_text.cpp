#include "tools/petctl/text/status_text.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "daemon/run/ledger.hpp"
#include "tools/petctl/text/values.hpp"

namespace petacq::petctl {

using nlohmann::json;

namespace {

std::optional<std::uint64_t> count_of(const json& ledger, const daemon::LedgerTerm& term) {
    const json& value = at(ledger, {term.section, term.name});
    if (!value.is_number_integer()) return std::nullopt;
    return term.times * value.get<std::uint64_t>();
}

/// Modulo 2^64, as the daemon does.
std::optional<std::uint64_t> sum(const json& ledger, const std::vector<daemon::LedgerTerm>& terms) {
    std::uint64_t total = 0;
    for (const daemon::LedgerTerm& term : terms) {
        const auto count = count_of(ledger, term);
        if (!count) return std::nullopt;
        total += *count;
    }
    return total;
}

void add_terms(Table& table, const json& ledger, const std::vector<daemon::LedgerTerm>& terms, char first) {
    char sign = first;
    for (const daemon::LedgerTerm& term : terms) {
        const std::string times = term.times == 1 ? "" : std::to_string(term.times) + " x ";
        const auto count = count_of(ledger, term);
        table.rows.push_back({{fmt::format("  {} {}{}.{}", sign, times, term.section, term.name)},
                              {count ? text_of(*count) : "-"},
                              {}});
        sign = '+';
    }
}

bool in_identity(const std::string& section, const std::string& name) {
    const auto is = [&](const daemon::LedgerTerm& term) {
        return section == term.section && name == term.name;
    };
    const auto& all = daemon::ledger_identities();
    return std::any_of(all.begin(), all.end(), [&](const daemon::LedgerIdentity& identity) {
        return std::any_of(identity.left.begin(), identity.left.end(), is) ||
               std::any_of(identity.right.begin(), identity.right.end(), is);
    });
}

}  // namespace

Lines ledger_lines(const json& answer) {
    const json& ledger = at(answer, {"ledger"});
    const json& verdict = at(ledger, {"closed"});
    const json& run = at(answer, {"run"});
    Table table{{true, false, true}, {}};
    for (const daemon::LedgerIdentity& identity : daemon::ledger_identities()) {
        const auto left = sum(ledger, identity.left);
        const auto right = sum(ledger, identity.right);
        Span found{"-"};
        if (left && right && *left == *right) found = {"closes", Style::good};
        if (left && right && *left != *right) {
            found = {fmt::format("DOES NOT CLOSE: off by {}", static_cast<std::int64_t>(*left - *right)),
                     Style::bad};
        }
        table.rows.push_back({{identity.name, Style::title}, {}, found});
        add_terms(table, ledger, identity.left, ' ');
        add_terms(table, ledger, identity.right, '=');
    }
    table.rows.push_back({{"other counters", Style::title}, {}, {}});
    if (ledger.is_object()) {
        for (const auto& [section, counters] : ledger.items()) {
            if (!counters.is_object()) continue;
            for (const auto& [name, value] : counters.items()) {
                if (in_identity(section, name)) continue;
                table.rows.push_back({{fmt::format("    {}", printable(fmt::format("{}.{}", section, name)))},
                                      {text_of(value)},
                                      {}});
            }
        }
    }
    Lines lines{{{run.is_null() ? "no run yet; since the daemon started: "
                                : fmt::format("run {} ({}): ", text_of(run), text_of(at(answer, {"state"}))),
                  Style::title},
                 {"ledger " + closed(verdict), verdict == false ? Style::bad : Style::plain}}};
    for (Line& line : table_lines(table))
        lines.push_back(std::move(line));
    return lines;
}

}  // namespace petacq::petctl
