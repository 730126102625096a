// Whether times are plausible: byte order, unit, roll-over.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "config/median.hpp"
#include "daemon/system/quantity_text.hpp"
#include "tools/petctl/doctor/arrangement.hpp"
#include "tools/petctl/doctor/evidence.hpp"
#include "tools/petctl/text/values.hpp"

namespace petacq::petctl {

using daemon::Level;

namespace {

/// Between the first and the last reading of a sender from which its clock is judged.
constexpr double shortest_stretch_s = 0.5;
/// Clocks of boards and of a host agree far better; a tick that is wrong by a factor does not.
constexpr double clock_tolerance = 0.02;
/// A board sends in batches, and a busy host takes datagrams late.
constexpr double arrival_tolerance_s = 0.1;

/// Median size of the differences between neighbouring frames, as 2^this; without those that are 0.
double usual_step(const std::vector<net::Frame>& frames, const Arrangement& arrangement) {
    std::vector<double> steps;
    for (std::size_t i = 1; i < frames.size(); ++i) {
        const auto step = static_cast<std::int64_t>(arrangement.value(frames[i].time) -
                                                    arrangement.value(frames[i - 1].time));
        if (step != 0) steps.push_back(std::log2(std::abs(static_cast<double>(step))));
    }
    return steps.empty() ? 0 : config::median(steps);
}

/// The arrangement in which neighbouring frames are near each other in time.
const Arrangement& arrangement_of(const Sender& sender) {
    constexpr double far_nearer = 12;  // 2^this
    const Arrangement* best = &arrangements.front();
    double least = usual_step(sender.frames, *best) - far_nearer;
    for (const Arrangement& one : arrangements) {
        const double step = usual_step(sender.frames, one);
        if (step >= least) continue;
        best = &one;
        least = step - far_nearer;
    }
    return *best;
}

/// Bits of a counter that begins again and again; 0: it does not.
unsigned rolls_over_at(const std::vector<TimeReading>& readings) {
    constexpr std::size_t fewest = 6;
    constexpr unsigned max_bits = 48;
    if (readings.size() < fewest) return 0;
    std::size_t back = 0;
    std::uint64_t largest = 0;
    for (std::size_t i = 0; i < readings.size(); ++i) {
        largest = std::max(largest, readings[i].ticks);
        back += i > 0 && readings[i].ticks < readings[i - 1].ticks ? 1 : 0;
    }
    const auto bits = static_cast<unsigned>(std::bit_width(largest));
    return back >= 2 && bits <= max_bits ? bits : 0;
}

/// What a tick of this length is: "nanoseconds".
std::string unit_of(double tick_ps) {
    constexpr std::array units{std::pair{1.0, "picoseconds"}, std::pair{1e3, "nanoseconds"},
                               std::pair{1e6, "microseconds"}, std::pair{1e9, "milliseconds"},
                               std::pair{1e12, "seconds"}};
    for (const auto& [length, name] : units)
        if (std::abs(tick_ps / length - 1) < clock_tolerance) return name;
    constexpr std::array clocks_MHz{10.0,  20.0,   25.0,  40.0,  50.0,  62.5,  80.0,  100.0,  // NOLINT
                                    125.0, 156.25, 160.0, 200.0, 250.0, 320.0, 400.0, 500.0};
    for (const double clock : clocks_MHz)
        if (std::abs(tick_ps * clock / 1e6 - 1) < clock_tolerance)
            return fmt::format("counts of a clock of {:g} MHz", clock);
    return "";
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
    std::vector<std::string> standing;  ///< all the same
    std::vector<std::string> going_back;
    std::map<std::string, std::vector<std::string>> arranged;  ///< by what is wrong with the bytes
    std::map<unsigned, std::vector<std::string>> rolling;      ///< by the bits of the counter
    std::vector<std::string> off;
    std::vector<double> ticks_ps;  ///< of those that are off, by the host's clock
    std::vector<std::string> not_judged;
};

Clocks clocks_of(const Evidence& evidence, double tick_ps) {
    Clocks clocks;
    for (const auto& [name, sender] : evidence.seen.senders) {
        const std::string who = sender_name(name);
        const Arrangement& arrangement = arrangement_of(sender);
        std::vector<TimeReading> readings = sender.readings;
        for (TimeReading& reading : readings)
            reading.ticks = arrangement.value(reading.ticks);
        const bool arranged = *arrangement.text != '\0';
        if (arranged) clocks.arranged[arrangement.text].push_back(who);
        if (const unsigned bits = rolls_over_at(readings); bits != 0) {
            clocks.rolling[bits].push_back(who);
            continue;
        }
        const double stretch_s =
            readings.empty() ? 0 : readings.back().arrived_s - readings.front().arrived_s;
        if (stretch_s < shortest_stretch_s) {
            clocks.not_judged.push_back(who);
            continue;
        }
        if (readings.back().ticks <= readings.front().ticks) {
            const bool same = std::all_of(sender.frames.begin(), sender.frames.end(), [&](const auto& frame) {
                return frame.time == sender.frames.front().time;
            });
            (same ? clocks.standing : clocks.going_back).push_back(who);
            continue;
        }
        const double found = tick_between(readings.front(), readings.back());
        const double tolerance = std::max(clock_tolerance, arrival_tolerance_s / stretch_s);
        if (std::abs(found / tick_ps - 1) <= tolerance) {
            clocks.good += arranged ? 0 : 1;
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
    for (const auto& [text, senders] : clocks.arranged) {
        diagnosis.add(Level::problem, "times",
                      fmt::format("the time of {} is sent with {}", joined(senders), text),
                      "send bytes 2 to 9 of each frame with the most significant byte first");
    }
    for (const auto& [bits, senders] : clocks.rolling) {
        diagnosis.add(
            Level::problem, "times",
            fmt::format("begin again and again below 2^{}: {}: a counter of {} bits that rolls over "
                        "every {:.3g} s",
                        bits, joined(senders), bits, std::exp2(bits) * tick_ps * 1e-12),
            "send 64 bits that do not roll over: count the roll-overs in the board (or the board is "
            "reset again and again)");
    }
    if (!clocks.standing.empty()) {
        diagnosis.add(Level::problem, "times",
                      "stand still: all frames have the same time: " + joined(clocks.standing),
                      "the clock of the board, and whether the frame takes its counter");
    }
    if (!clocks.going_back.empty()) {
        diagnosis.add(Level::problem, "times", "do not increase: " + joined(clocks.going_back),
                      "the clock of the board; or its frames have another format (reference/wire-format.md "
                      "of the documentation)");
    }
    if (clocks.off.empty()) return;
    const double tick = config::median(clocks.ticks_ps);
    const std::string unit = unit_of(tick);
    diagnosis.add(
        Level::problem, "times",
        fmt::format("a tick lasts about {:.4g} ps by the host's clock, {:.6g} ps according to the "
                    "scanner description: {}{}",
                    tick, tick_ps, joined(clocks.off),
                    unit.empty() ? "" : ": they are " + unit + " rather than ticks"),
        clocks.good == 0
            ? "send ticks as described; or see the exact tick in the manual of the boards, and write it "
              "as below"
            : "the clocks of these boards, or the unit of their times");
    if (clocks.good == 0)
        diagnosis.write("the scanner description", fmt::format("    \"tick_ps\": {:.4g}", tick));
}

}  // namespace petacq::petctl
