#include "daemon/check/finding.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstddef>

namespace petacq::daemon {

namespace {

std::ptrdiff_t count(const Findings& findings, Level level) {
    return std::count_if(findings.begin(), findings.end(),
                         [level](const Finding& f) { return f.level == level; });
}

}  // namespace

std::string report(const Findings& findings) {
    constexpr std::array words{"good", "note", "warning", "problem"};
    std::string out;
    for (const Finding& finding : findings) {
        out += fmt::format("{:<8} {}: {}\n", words.at(static_cast<std::size_t>(finding.level)),
                           finding.subject, finding.text);
        if (!finding.fix.empty()) out += fmt::format("{:<8}   to do: {}\n", "", finding.fix);
    }
    const auto problems = count(findings, Level::problem);
    const auto warnings = count(findings, Level::warning);
    return out + fmt::format("{} problem{}, {} warning{}\n", problems, problems == 1 ? "" : "s", warnings,
                             warnings == 1 ? "" : "s");
}

bool any_problem(const Findings& findings) {
    return count(findings, Level::problem) > 0;
}

}  // namespace petacq::daemon
