// Whether the fields of the sampled frames are in range, and the right way round.
#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "tools/petctl/doctor/evidence.hpp"
#include "tools/petctl/text/values.hpp"

namespace petacq::petctl {

using daemon::Level;
using nlohmann::json;

namespace {

/// What values beyond `count` have in common.
std::string cause_of(const std::set<unsigned>& values, unsigned count) {
    const unsigned factor = std::accumulate(values.begin(), values.end(), 0U, std::gcd<unsigned, unsigned>);
    if (factor > 1 && *values.rbegin() / factor < count && values.size() > 3)
        return fmt::format(": all are multiples of {}, so {} times too large", factor, factor);
    if (*values.begin() > 0 && *values.rbegin() == count) return ": one too high, counted from 1?";
    if (*values.begin() >= count) return fmt::format(": none is below {}", count);
    return "";
}

void judge_range(const Evidence& evidence, Diagnosis& diagnosis, const char* name, const char* key,
                 unsigned (*field)(const net::Frame&)) {
    const auto count = static_cast<unsigned>(number(at(evidence.after, {"reception", key})));
    if (count == 0) return;
    std::set<unsigned> values;
    std::vector<std::string> senders;
    std::size_t beyond = 0;
    std::size_t all = 0;
    for (const auto& [who, sender] : evidence.seen.senders) {
        std::set<unsigned> own;
        std::size_t bad = 0;
        for (const net::Frame& frame : sender.frames) {
            own.insert(field(frame));
            bad += field(frame) >= count ? 1 : 0;
        }
        if (bad == 0) continue;
        senders.push_back(sender_name(who));
        values.merge(own);
        beyond += bad;
        all += sender.frames.size();
    }
    if (beyond < 2 || static_cast<double>(beyond) <= much * static_cast<double>(all)) return;
    diagnosis.add(
        Level::problem, "fields",
        fmt::format("{} {} to {} seen, 0 to {} allowed, in {}{} ({:.3g} % of its sampled frames are out "
                    "of range)",
                    name, *values.begin(), *values.rbegin(), count - 1, joined(senders),
                    cause_of(values, count), 100.0 * static_cast<double>(beyond) / static_cast<double>(all)),
        fmt::format("correct {} in the board, or {} in geometry of the scanner description", name, key));
}

/// The upper byte of an energy takes few values, and the lower one many.
void judge_energy_order(const Evidence& evidence, Diagnosis& diagnosis) {
    constexpr std::size_t many = 8;
    constexpr std::size_t far_more = 4;
    const auto& modules = list(evidence.after, {"modules"});
    const bool good_peak = std::any_of(modules.begin(), modules.end(), [](const json& module) {
        const double peak = number(at(module, {"peak_keV"}));
        return peak > 511 * 0.85 && peak < 511 * 1.15 && number(at(module, {"singles_per_s"})) > 0;
    });
    if (good_peak) return;
    std::vector<std::string> senders;
    for (const auto& [who, sender] : evidence.seen.senders) {
        std::set<unsigned> up;
        std::set<unsigned> low;
        for (const net::Frame& frame : sender.frames) {
            up.insert(frame.energy >> 8U);
            low.insert(frame.energy & 0xFFU);
        }
        if (up.size() >= many && far_more * low.size() <= up.size()) senders.push_back(sender_name(who));
    }
    if (senders.empty()) return;
    diagnosis.add(
        Level::problem, "fields",
        fmt::format("the energy of {} is little-endian: its lower byte takes a few values, and its upper "
                    "byte many",
                    joined(senders)),
        "send bytes 12 and 13 of each frame with the most significant byte first");
}

}  // namespace

void judge_fields(const Evidence& evidence, Diagnosis& diagnosis) {
    if (!evidence.seen.markers || !evidence.seen.sure_of_framing()) return;
    judge_range(evidence, diagnosis, "DU", "du_count", [](const net::Frame& f) -> unsigned { return f.du; });
    judge_range(evidence, diagnosis, "x", "position_size",
                [](const net::Frame& f) -> unsigned { return f.x; });
    judge_range(evidence, diagnosis, "y", "position_size",
                [](const net::Frame& f) -> unsigned { return f.y; });
    judge_energy_order(evidence, diagnosis);
}

}  // namespace petacq::petctl
