#include "daemon/preflight/finding.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <utility>

#include "config/base/colour.hpp"
#include "daemon/system/quantity_text.hpp"

namespace petacq::daemon {

using nlohmann::json;

namespace {

/// In the order of Level.
constexpr std::array level_words{"good", "note", "warning", "problem"};
constexpr std::array level_colours{config::colour::good, "", config::colour::warning, config::colour::bad};

std::uint64_t count(const Findings& findings, Level level) {
    return static_cast<std::uint64_t>(std::count_if(findings.begin(), findings.end(),
                                                    [level](const Finding& f) { return f.level == level; }));
}

}  // namespace

std::string report(const Findings& findings, bool all, bool colour) {
    std::string out;
    for (const Finding& finding : findings) {
        if (!all && finding.level < Level::warning) continue;
        const auto level = static_cast<std::size_t>(finding.level);
        out += fmt::format("{} {}: {}\n",
                           config::coloured(fmt::format("{:<8}", level_words.at(level)),
                                            level_colours.at(level), colour && finding.level != Level::note),
                           finding.subject, finding.text);
        if (!finding.fix.empty()) out += fmt::format("{:<8}   to do: {}\n", "", finding.fix);
    }
    out += counted_text(count(findings, Level::problem), "problem") + ", " +
           counted_text(count(findings, Level::warning), "warning");
    return out + (all ? "\n" : fmt::format("; --verbose shows all {} findings\n", findings.size()));
}

json to_json(const Findings& findings) {
    json list = json::array();
    for (const Finding& finding : findings) {
        list.push_back({{"level", level_words.at(static_cast<std::size_t>(finding.level))},
                        {"subject", finding.subject},
                        {"text", finding.text},
                        {"fix", finding.fix}});
    }
    return {{"findings", std::move(list)},
            {"problems", count(findings, Level::problem)},
            {"warnings", count(findings, Level::warning)}};
}

bool any_problem(const Findings& findings) {
    return count(findings, Level::problem) > 0;
}

}  // namespace petacq::daemon
