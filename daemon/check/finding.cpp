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

std::string size_text(double bytes) {
    constexpr std::array prefixes{"", "k", "M", "G", "T", "P"};
    std::size_t prefix = 0;
    while (bytes >= 999.5 && prefix + 1 < prefixes.size()) {
        bytes /= 1000;
        ++prefix;
    }
    return fmt::format("{:.3g} {}B", bytes, prefixes[prefix]);
}

std::string time_text(double seconds) {
    if (seconds < 120) return fmt::format("{:.3g} s", seconds);
    if (seconds < 2 * 3600.0) return fmt::format("{:.3g} min", seconds / 60);
    if (seconds < 2 * 86'400.0) return fmt::format("{:.3g} h", seconds / 3600);
    return fmt::format("{:.3g} days", seconds / 86'400);
}

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
