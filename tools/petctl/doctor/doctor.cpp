#include "tools/petctl/doctor/doctor.hpp"

#include <unistd.h>

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "config/base/exit_status.hpp"
#include "daemon/system/quantity_text.hpp"
#include "tools/petctl/doctor/diagnosis.hpp"
#include "tools/petctl/doctor/evidence.hpp"
#include "tools/petctl/text/text.hpp"
#include "tools/petctl/text/values.hpp"

namespace petacq::petctl {

namespace {

using daemon::Level;
using nlohmann::json;

/// Faster than samples are taken.
constexpr std::chrono::milliseconds look_interval{250};
/// For another status: there is one each second.
constexpr std::chrono::seconds longest_wait{5};

const char* word_of(Level level) {
    constexpr std::array words{"good", "note", "warning", "problem"};
    return words.at(static_cast<std::size_t>(level));
}

std::size_t count_of(const daemon::Findings& findings, Level level) {
    std::size_t count = 0;
    for (const daemon::Finding& finding : findings)
        count += finding.level == level ? 1 : 0;
    return count;
}

json document_of(const Diagnosis& diagnosis) {
    json findings = json::array();
    for (const daemon::Finding& finding : diagnosis.findings) {
        findings.push_back({{"level", word_of(finding.level)},
                            {"subject", finding.subject},
                            {"text", finding.text},
                            {"to_do", finding.fix}});
    }
    return {{"problems", count_of(diagnosis.findings, Level::problem)},
            {"warnings", count_of(diagnosis.findings, Level::warning)},
            {"findings", findings},
            {"to_write", diagnosis.to_write}};
}

Lines lines_of(const daemon::Findings& findings) {
    constexpr std::array styles{Style::good, Style::faint, Style::warning, Style::bad};
    Lines lines;
    for (const daemon::Finding& finding : findings) {
        lines.push_back({{fmt::format("{:<8}", word_of(finding.level)),
                          styles.at(static_cast<std::size_t>(finding.level))},
                         {fmt::format(" {}: {}", finding.subject, printable(finding.text))}});
        if (!finding.fix.empty())
            lines.push_back({{fmt::format("{:<8}   to do: {}", "", printable(finding.fix))}});
    }
    lines.push_back({{daemon::counted_text(count_of(findings, Level::problem), "problem") + ", " +
                      daemon::counted_text(count_of(findings, Level::warning), "warning")}});
    return lines;
}

}  // namespace

int doctor(daemon::ControlClient& client, double seconds, bool as_json) {
    using Clock = std::chrono::steady_clock;
    const json before = client.call("status");
    const ReceivedPackets packets = read_received_packets();
    json after = before;
    std::set<Sample> samples;
    Meanwhile meanwhile;
    const auto end =
        Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    const bool counts_down = ::isatty(STDOUT_FILENO) == 1 && !as_json;
    if (!as_json && !counts_down) print("listening ...\n");
    const auto same = [&] { return at(after, {"uptime_s"}) == at(before, {"uptime_s"}); };
    while (Clock::now() < end || (same() && Clock::now() < end + longest_wait)) {
        if (counts_down) {
            const double left = std::chrono::duration<double>(end - Clock::now()).count();
            print(fmt::format("\rlistening: {:.0f} s   ", std::max(0.0, std::ceil(left))));
        }
        std::this_thread::sleep_for(look_interval);
        json now = client.call("status");
        if (at(now, {"uptime_s"}) != at(after, {"uptime_s"})) {
            const auto lost = [](const json& s) { return number(at(s, {"total", "datagrams", "lost"})); };
            meanwhile.lost.push_back(lost(now) - lost(after));
        }
        after = std::move(now);
        add_samples(after, samples);
    }
    if (counts_down) print("\r                     \r");
    meanwhile.packets = growth(packets, read_received_packets());
    const Diagnosis diagnosis = diagnose(before, after, samples, std::move(meanwhile));
    if (as_json) {
        print(document_of(diagnosis).dump(2) + "\n");
    } else {
        print(joined(lines_of(diagnosis.findings), colour_wanted()));
        if (!diagnosis.to_write.empty()) print("\nTo write into the files:\n\n" + diagnosis.to_write);
    }
    return daemon::any_problem(diagnosis.findings) ? exit_status::has_problems : 0;
}

}  // namespace petacq::petctl
