// Whether times, frames and energies are plausible.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "daemon/host/quantity_text.hpp"
#include "tools/petctl/doctor/evidence.hpp"
#include "tools/petctl/values.hpp"

namespace petacq::petctl {

using daemon::Level;
using nlohmann::json;

namespace {

/// Between the first and the last reading of a sender from which its clock is judged.
constexpr double shortest_stretch_s = 0.5;
/// Clocks of boards and of a host agree far better; a tick that is wrong by a factor does not.
constexpr double clock_tolerance = 0.02;
/// A board sends in batches, and a busy host takes datagrams late.
constexpr double arrival_tolerance_s = 0.1;
/// Without a calibration the photopeak is anywhere.
constexpr double lowest_peak_keV = 511 * 0.85;   // NOLINT(readability-identifier-naming): the unit's spelling
constexpr double highest_peak_keV = 511 * 1.15;  // NOLINT(readability-identifier-naming)
/// A share of the frames that is worth a word.
constexpr double much = 0.01;
constexpr double half = 0.5;

/// The larger of two in the middle.
double middle(std::vector<double> values) {
    const auto place = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), place, values.end());
    return *place;
}

/// The tick by the host's clock, in ps; not above 0: times do not increase.
double tick_between(const TimeReading& first, const TimeReading& last) {
    const auto ticks = static_cast<double>(static_cast<std::int64_t>(last.ticks - first.ticks));
    return 1e12 * (last.arrived_s - first.arrived_s) / ticks;
}

/// Whether both halves of the readings show what the whole does, a tick of `found` in place of `expected`. A
/// sender that was held up once shows it in one half only.
bool lasts(const std::vector<TimeReading>& readings, double found, double expected) {
    const double middle_s = (readings.front().arrived_s + readings.back().arrived_s) / 2;
    const auto middle = std::min_element(readings.begin(), readings.end(), [&](const auto& a, const auto& b) {
        return std::abs(a.arrived_s - middle_s) < std::abs(b.arrived_s - middle_s);
    });
    if (middle == readings.begin() || middle == readings.end() - 1) return false;
    const auto shows = [&](double tick) { return (tick - expected) / (found - expected) >= 0.5; };
    return shows(tick_between(readings.front(), *middle)) && shows(tick_between(*middle, readings.back()));
}

/// How the times of each sender go.
struct Clocks {
    std::size_t good = 0;
    std::vector<std::string> standing;
    std::vector<std::string> off;
    std::vector<double> ticks_ps;  ///< of those that are off, by the host's clock
    std::vector<std::string> not_judged;
};

Clocks clocks_of(const Evidence& evidence, double tick_ps) {
    Clocks clocks;
    for (const auto& [name, sender] : evidence.seen.senders) {
        const std::string who = sender_name(name);
        const auto& readings = sender.readings;
        const double stretch_s =
            readings.empty() ? 0 : readings.back().arrived_s - readings.front().arrived_s;
        if (stretch_s < shortest_stretch_s) {
            clocks.not_judged.push_back(who);
            continue;
        }
        if (readings.back().ticks <= readings.front().ticks) {
            clocks.standing.push_back(who);
            continue;
        }
        const double found = tick_between(readings.front(), readings.back());
        const double tolerance = std::max(clock_tolerance, arrival_tolerance_s / stretch_s);
        if (std::abs(found / tick_ps - 1) <= tolerance) {
            ++clocks.good;
        } else if (lasts(readings, found, tick_ps)) {
            clocks.off.push_back(who);
            clocks.ticks_ps.push_back(found);
        } else {
            clocks.not_judged.push_back(who);
        }
    }
    return clocks;
}

}  // namespace

void judge_times(const Evidence& evidence, Diagnosis& diagnosis) {
    if (!evidence.seen.markers || !evidence.seen.sure_of_framing()) {
        diagnosis.add(Level::note, "times", "not judged, since it is not sure what the samples are");
        return;
    }
    const double tick_ps = number(at(evidence.after, {"common", "tick_ps"}));
    const Clocks clocks = clocks_of(evidence, tick_ps);
    if (clocks.good > 0 && clocks.off.empty()) {
        diagnosis.add(Level::good, "times",
                      fmt::format("of {} increase, with ticks of {:.6g} ps by the host's clock",
                                  daemon::counted_text(clocks.good, "sender"), tick_ps));
    }
    if (!clocks.not_judged.empty()) {
        diagnosis.add(Level::note, "times",
                      fmt::format("too few samples to judge those of {}", joined(clocks.not_judged)),
                      "petctl doctor --seconds 20 takes more samples");
    }
    if (!clocks.standing.empty()) {
        diagnosis.add(Level::problem, "times", "do not increase: " + joined(clocks.standing),
                      "the clock of the board; or its frames have another format (reference/wire-format.md "
                      "of the documentation)");
    }
    if (clocks.off.empty()) return;
    const double tick = middle(clocks.ticks_ps);
    diagnosis.add(Level::problem, "times",
                  fmt::format("a tick lasts about {:.4g} ps by the host's clock, {:.6g} ps according to the "
                              "scanner description: {}",
                              tick, tick_ps, joined(clocks.off)),
                  clocks.good == 0 ? "see the exact tick in the manual of the boards, and write it as below"
                                   : "the clocks of these boards");
    if (clocks.good == 0)
        diagnosis.write("the scanner description", fmt::format("    \"tick_ps\": {:.4g}", tick));
}

void judge_frames(const Evidence& evidence, Diagnosis& diagnosis) {
    const double frames = evidence.gained("frames", "received");
    // `tolerable`: the largest share that a scanner can be run with.
    const auto complain = [&](const char* counter, double tolerable, const char* what, const char* fix) {
        const double share = frames > 0 ? evidence.gained("frames", counter) / frames : 0;
        if (share <= much) return;
        diagnosis.add(share > tolerable ? Level::problem : Level::warning, "frames",
                      fmt::format("{:.3g} % {}", 100 * share, what), fix);
    };
    complain("bad_marker", half, "have wrong markers",
             "frame.head_marker, frame.tail_marker; corrupted data");
    // No board sends one by chance: the description is wrong, or the number in a board.
    complain("bad_address", much, "have a BDM, DU, x or y out of range, or a BDM of another source",
             "geometry and sources of the scanner description; the numbers in the boards");
    complain("time_jump", half, "have times far from those of their source",
             "clock and common reset of the boards");
    complain("late", half, "come too late to be paired",
             "reset all boards together; watermark.max_disorder_us");
    complain("outside_crystal", half, "lie outside every crystal",
             "the position table of the calibration: petcal derive crystals");
}

void judge_energies(const Evidence& evidence, Diagnosis& diagnosis) {
    std::vector<double> peaks;
    for (const json& module : list(evidence.after, {"modules"})) {
        const json& peak = at(module, {"peak_keV"});
        if (number(at(module, {"singles_per_s"})) > 0 && peak.is_number()) peaks.push_back(peak);
    }
    if (peaks.empty()) return;
    const auto in_peak = [](double peak) { return peak >= lowest_peak_keV && peak <= highest_peak_keV; };
    const auto good = static_cast<std::size_t>(std::count_if(peaks.begin(), peaks.end(), in_peak));
    if (good == peaks.size()) {
        diagnosis.add(
            Level::good, "energies",
            good == 1 ? "the fullest energy of the only BDM with singles is near 511 keV"
                      : fmt::format("the fullest energy of all {} BDMs with singles is near 511 keV", good));
        return;
    }
    diagnosis.add(
        Level::warning, "energies",
        fmt::format("the fullest energy of {} of {} BDMs is not near 511 keV (in the middle {:.0f} keV)",
                    peaks.size() - good, peaks.size(), middle(peaks)),
        "is there a positron source? Then the energy calibration: petcal derive energy");
}

}  // namespace petacq::petctl
