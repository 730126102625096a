// Whether the data of a run can be trusted: one judgement of everything that is known of it, made when it is
// finished. It stands in run.json; all others show it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "daemon/detector/detector_watch.hpp"
#include "daemon/run/problem.hpp"
#include "daemon/tracking/source_tracker.hpp"

namespace petacq::daemon {

struct RunVerdict {
    enum class State : std::uint8_t {
        good,
        doubtful,  ///< something is worth knowing
        bad,       ///< do not use the data without looking at what is wrong
    };
    struct Reason {
        std::string code;  ///< docs/reference/ledger.md
        std::string message;
        bool bad = false;
    };
    State state = State::good;
    std::vector<Reason> reasons;  ///< the bad ones first
};
/// "good", "doubtful", "bad"
const char* name_of(RunVerdict::State state);
/// {"state", "reasons": [{"code", "message"}]}
nlohmann::json to_json(const RunVerdict& verdict);

/// What the acquisition saw during a run, besides its ledger.
struct SeenInRun {
    TrackerStatus sources_at_start;
    TrackerStatus sources;                ///< when it stopped
    std::uint64_t taken_from = 0;         ///< ticks
    std::uint64_t given_up = 0;           ///< slices that did not wait for slow sources
    std::vector<DetectorFault> detector;  ///< each once, at its largest
    std::optional<double> live;           ///< RunEnd::live
    std::vector<Problem> reported;        ///< by others: what a replay could not read
};

struct RunFacts {
    const Ledger& ledger;  ///< complete
    const SeenInRun& seen;
    double max_loss_fraction = 0;
    std::string failure;  ///< empty: the run did not fail
    std::string ledger_series_failure;
    std::string capture_failure;
    std::uint64_t capture_dropped = 0;
};
RunVerdict judge(const RunFacts& run);

}  // namespace petacq::daemon
