// The run of the acquisition thread, and its result when it has ended.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "daemon/acquisition/run_interval.hpp"
#include "daemon/acquisition/undecided_arrivals.hpp"
#include "daemon/run/ledger.hpp"
#include "daemon/run/run.hpp"
#include "gpu/pipeline.hpp"

namespace petacq::daemon {

/// A run that has ended; its files are still open.
struct FinishedRun {
    std::unique_ptr<Run> run;
    RunEnd end;
};

/// The run that waits or is in progress. `interval` says which; without a run the rest means nothing.
struct ActiveRun {
    explicit ActiveRun(std::uint64_t decided_reach) : arrivals(decided_reach) {}

    RunInterval interval;
    std::unique_ptr<Run> run;
    std::function<void()> started;  ///< to be called when the run starts
    Ledger at_start;
    SeenInRun seen;  ///< since the start; complete when the run has stopped
    gpu::SinglesHistograms histograms_at_start;
    UndecidedArrivals arrivals;  ///< from which the latency of the run is measured
};

}  // namespace petacq::daemon
