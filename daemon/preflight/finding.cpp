#include "daemon/preflight/finding.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "daemon/system/quantity_text.hpp"

namespace petacq::daemon {

namespace {

std::uint64_t count(const Findings& findings, Level level) {
    return static_cast<std::uint64_t>(std::count_if(findings.begin(), findings.end(),
                                                    [level](const Finding& f) { return f.level == level; }));
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
    return out + counted_text(count(findings, Level::problem), "problem") + ", " +
           counted_text(count(findings, Level::warning), "warning") + "\n";
}

bool any_problem(const Findings& findings) {
    return count(findings, Level::problem) > 0;
}

}  // namespace petacq::daemon
