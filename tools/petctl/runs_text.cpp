#include "tools/petctl/runs_text.hpp"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tools/petctl/values.hpp"

namespace petacq::petctl {

using nlohmann::json;

Lines runs_lines(const json& runs) {
    Table table{{true, true, false, false, false, false, true, true}, {}};
    Line headings;
    for (const char* heading : {"run", "started", "duration", "prompts", "delayeds", "size", "ledger", "end"})
        headings.push_back({heading, Style::faint});
    table.rows.push_back(std::move(headings));
    for (const json& run : runs) {
        const json& state = at(run, {"state"});
        const json& verdict = at(run, {"ledger_closed"});
        std::string end = state == "running" ? "" : text_of(at(run, {"reason"}));
        Style style = Style::plain;
        if (state != "complete") {
            end = end.empty() || end == "-" ? text_of(state) : fmt::format("{}: {}", text_of(state), end);
            style = state == "running" ? Style::good : Style::warning;
            if (state == "failed" || state == "unreadable") style = Style::bad;
        }
        table.rows.push_back({{text_of(at(run, {"run"}))},
                              {text_of(at(run, {"start_utc"}))},
                              {duration(at(run, {"seconds"}))},
                              {text_of(at(run, {"prompts"}))},
                              {text_of(at(run, {"delayeds"}))},
                              {scaled(at(run, {"bytes"}), "B")},
                              {closed(verdict), verdict == false ? Style::bad : Style::plain},
                              {end, style}});
    }
    return table_lines(table);
}

}  // namespace petacq::petctl
