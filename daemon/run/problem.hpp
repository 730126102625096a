// What is wrong, in words, with what to look at: the same for health, which looks at a second, and for the
// verdict of a run, which looks at all of it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/detector/detector_watch.hpp"
#include "daemon/run/ledger.hpp"
#include "daemon/tracking/source_tracker.hpp"

namespace petacq::daemon {

/// Something wrong, in one reading.
struct Problem {
    const char* code = "";      ///< fixed word, docs/how-to/alarms.md
    std::uint32_t subject = 0;  ///< which of several: position of the source, module or stage
    std::string what;           ///< "source 3 has been silent for 2.1 s"
    std::string advice;         ///< what to look at; may be empty
    bool failed = false;        ///< else degraded
    /// The reason disappears when the problem has not been seen for this long.
    std::chrono::steady_clock::duration lasts = std::chrono::seconds(5);
    std::string several{};  ///< what several have in common: "BDMs above 50 C"; empty: there is only one
    std::string name{};     ///< of the subject among several: "7"
    double size = 0;        ///< the larger, the worse, among several

    Problem& is_one_of(std::string all, std::string this_one, double how_bad) {
        several = std::move(all);
        name = std::move(this_one);
        size = how_bad;
        return *this;
    }
    [[nodiscard]] std::string message() const { return advice.empty() ? what : what + ": " + advice; }
};

/// What a source does, and what to look at.
struct SourceTrouble {
    const char* code;
    const char* does;
    const char* advice;
    const char* several;
};
inline constexpr SourceTrouble source_stepped_back{
    "source_stepped_back", "stepped back in time",
    "frames are late until the step has been made up for: check the clock", "sources stepped back in time"};
inline constexpr SourceTrouble source_restarted{
    "source_restarted", "has restarted its sequence numbers",
    "the board was reset or replaced, or two boards use one id: check them",
    "sources have restarted their sequence numbers"};
inline constexpr SourceTrouble source_silent{"source_silent", "has been silent", "check power and cable",
                                             "sources are silent"};
inline constexpr SourceTrouble sequence_meaningless{
    "sequence_meaningless", "",
    "loss of its datagrams is unknown; the number must grow by one with each datagram, big-endian, and each "
    "board needs an id of its own",
    "sources have sequence numbers that say nothing"};
inline constexpr SourceTrouble source_clock{
    "source_clock", "",
    "check the counter and the unit of its times, and tick_ps of the scanner description (petctl doctor)",
    "sources have clocks of another rate"};

/// `does`: instead of that of the trouble.
Problem source_problem(const SourceTrouble& trouble, std::uint32_t subject, const std::string& name,
                       const std::string& does, double size = 0);
/// "source 3: its sequence number stands still at 0: loss of its datagrams is unknown; ..."
Problem sequence_problem(std::uint32_t subject, const std::string& name, const NumberPattern& pattern);
/// "source 3: its clock makes 1e+09 ticks a second, 6.4e+10 are expected: check ..."
Problem rate_problem(std::uint32_t subject, const std::string& name, const ClockRate::Wrong& rate);
Problem detector_problem(const DetectorFault& fault);

/// What is known besides a growth of the ledger.
struct LedgerView {
    double max_fraction = 0;  ///< health.max_loss_fraction
    /// Whether the reason stands already: it goes at half of the limit.
    std::function<bool(const char* code)> raised = [](const char*) { return false; };
    std::string lost_by{};         ///< ", 12 of them from source 3", or empty
    std::string repeated_by{};     ///< likewise
    std::string unknown_sender{};  ///< ", the latest is ...", or empty
    bool batches_waited = false;
    bool sources_replaced = false;
    bool gave_up = false;
    bool cause_known = true;     ///< false: invalid frames count as bad markers, whatever is wrong
    bool frames_wanted = false;  ///< a run is in progress: tags alone are not enough
};

/// `growth`: of a second, or of a run.
std::vector<Problem> find_ledger_problems(const Ledger& growth, const LedgerView& view);

}  // namespace petacq::daemon
