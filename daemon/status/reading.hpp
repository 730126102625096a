// One reading of every counter of the daemon, and the other input of its views (status, health).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/acquisition/acquisition.hpp"
#include "daemon/listmode/latency.hpp"
#include "daemon/listmode/writer.hpp"
#include "daemon/marks/marks.hpp"
#include "daemon/peer/judge.hpp"
#include "daemon/run/interrupted.hpp"
#include "daemon/run/list.hpp"
#include "daemon/run/run.hpp"
#include "daemon/space/disk_space.hpp"
#include "daemon/system/logging.hpp"
#include "daemon/system/network_counters.hpp"
#include "daemon/system/progress.hpp"
#include "net/receive/multicast.hpp"
#include "net/receive/samples.hpp"
#include "net/receive/unknown_senders.hpp"

namespace petacq::daemon {

/// Counters of the run in progress.
struct RunReading {
    std::string id;
    ListModeCounts written;
    LatencySummary latency;
    std::optional<CaptureStatus> capture;  ///< if the run keeps a raw capture
    std::string ledger_series_failure;     ///< why ledger.csv stopped early; empty: it did not
    std::uint64_t seconds_bytes = 0;       ///< size of seconds.plm

    /// The sizes of all files that grow with the run.
    [[nodiscard]] std::uint64_t bytes() const {
        return written.bytes + seconds_bytes + (capture ? capture->counts.bytes : 0);
    }
};

/// When frames arrived last.
struct LastFrames {
    bool any = false;                              ///< since the daemon started
    std::chrono::steady_clock::time_point latest;  ///< else: when the daemon started
    std::chrono::system_clock::time_point latest_utc;
};

struct NetworkReading {
    NetworkCounters counters;
    std::chrono::steady_clock::time_point taken;
};

struct Reading {
    std::chrono::steady_clock::time_point taken;
    LastFrames arrival;
    std::shared_ptr<const AcquisitionSnapshot> acquisition;
    std::optional<RunReading> run;                    ///< while the files of a run are open
    std::vector<net::UnknownSender> unknown_senders;  ///< heard last, by all receivers; the latest first
    std::vector<net::Membership> groups;              ///< multicast groups of all receivers
    std::vector<net::DatagramSample> samples;         ///< of datagrams, by all receivers
    std::size_t free_batches = 0;
    std::uint64_t batch_waits = 0;  ///< how often a receiver has waited for a free batch
    LogStatistics log;
    std::optional<PeerState> peer;  ///< the other host of a pair, if there is one
    // Read once a second, since they cost more than a counter:
    DiskStatus disk;
    std::vector<StageState> stages;
    NetworkReading network;
    NetworkReading network_earlier;  ///< an interval before that
};

enum class DaemonState : std::uint8_t { idle, starting, running, stopping, failed };
/// The word, as above.
const char* name_of(DaemonState state);

/// What operators have noted in the run in progress.
struct RunMarks {
    static constexpr std::size_t max_shown = 20;

    std::size_t count = 0;     ///< those on their way to the disk included
    std::vector<Mark> latest;  ///< on the disk, in the order in which they were made

    void add(const Mark& made) {
        latest.push_back(made);
        if (latest.size() > max_shown) latest.erase(latest.begin());
    }
};

/// The run in progress, as the operator asked for it.
struct RunDescription {
    std::string id;
    std::string note;
    std::chrono::system_clock::time_point started;
    std::optional<double> duration_s;
    std::optional<std::uint64_t> start_ticks;
    std::optional<std::uint64_t> stop_ticks;
    OperatorData operator_data;
    RunMarks marks{};
};

/// The runs, as the service knows them.
struct RunState {
    DaemonState daemon = DaemonState::idle;
    std::optional<RunDescription> current;  ///< until it is finalised
    /// When the operator asked for the run; absent once it has started.
    std::optional<std::chrono::steady_clock::time_point> start_asked;
    bool waiting = false;          ///< detector time has not reached the start that was asked for
    Run* open = nullptr;           ///< the current run, until the acquisition is done with it
    const Run* closing = nullptr;  ///< the current run, while another thread finalises it
    std::shared_ptr<const AcquisitionSnapshot> start;  ///< when the current run started; nullptr before that
    /// Since when the run in progress has had data; absent: it waits for them.
    std::optional<std::chrono::steady_clock::time_point> data_since;
    std::string last_id;                ///< of the last run that was finalised
    std::optional<Ledger> last_ledger;  ///< of the last run with which the acquisition was done
    std::optional<EndedRun> ended;      ///< the last run, also one of an earlier daemon
    std::optional<CalibrationInUse> next_calibration;  ///< taken when the current run has ended
    std::vector<InterruptedRun>
        interrupted;  ///< runs that nobody has acknowledged, in the order of their starts
};

class LastingReasons;

/// The input of the views: two readings and the state between them. All pointers are valid.
struct Observation {
    const RunSetting* setting = nullptr;
    const RunState* run = nullptr;
    const Reading* now = nullptr;
    const Reading* before = nullptr;  ///< one to two seconds earlier: rates are differences
    const AcquisitionSnapshot* start =
        nullptr;  ///< when the run started, or the daemon: averages count from it
    const LastingReasons* health = nullptr;

    [[nodiscard]] const config::Configuration& configuration() const { return *setting->configuration; }
    [[nodiscard]] const config::Scanner& scanner() const { return *setting->scanner; }
};

}  // namespace petacq::daemon
