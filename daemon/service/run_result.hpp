// The result of a run, from which the answer to `stop` and the messages of the log are made.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "daemon/run/list.hpp"
#include "daemon/run/run.hpp"

namespace petacq::daemon {

/// A run that never began has only its id and the reason.
struct RunResult {
    std::string id;
    bool began = true;
    std::string reason;  ///< why it stopped
    double seconds = 0;  ///< that have data
    Ledger ledger;
    std::string failure;  ///< of its files; empty: all are complete
    RunVerdict verdict;
    std::optional<CaptureStatus> capture;

    [[nodiscard]] bool failed() const;
};

/// The answer to `stop`. Numbers of records that are not saved are null.
nlohmann::json stop_answer(const RunResult& result, const config::Configuration& configuration);
/// The run, which has just been finalised, in the list of runs.
EndedRun ended_run(const RunResult& result);
void log_result(const RunResult& result, const config::Configuration& configuration);

}  // namespace petacq::daemon
