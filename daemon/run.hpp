// One run: its directory, its list-mode files, and run.json.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config/configuration.hpp"
#include "config/scanner.hpp"
#include "daemon/capture.hpp"
#include "daemon/ledger.hpp"
#include "daemon/ledger_series.hpp"
#include "daemon/listmode_writer.hpp"
#include "daemon/progress.hpp"
#include "daemon/run_directory.hpp"
#include "gpu/pipeline.hpp"

namespace petacq::daemon {

/// What the operator asked for.
struct RunRequest {
    std::optional<std::string> id;     ///< absent: named after the time
    std::optional<double> duration_s;  ///< detector time; absent: until stopped
    std::string note;
    std::vector<std::string> replayed;  ///< captures that the data come from; empty: live
};

/// What is the same for every run of this daemon.
struct RunSetting {
    /// Another one after a reload; a run keeps that it began with.
    std::shared_ptr<const config::Configuration> configuration;
    const config::Scanner* scanner = nullptr;
    std::string calibration_sha256;
    std::string backend;             ///< what computes
    std::string backend_choice;      ///< and why
    net::BatchPool* pool = nullptr;  ///< a raw capture gives its batches back there; nullptr: none is made
};

/// How a run ended, as the acquisition saw it.
struct RunEnd {
    std::string reason;                 ///< "stopped by operator", "duration reached", a failure, ...
    bool failed = false;                ///< the reason is a failure
    std::uint64_t start_ticks = 0;      ///< singles at or above it belong to the run
    std::uint64_t stop_ticks = 0;       ///< and below it
    std::uint64_t data_ticks = 0;       ///< of that, from the first frame on
    Ledger ledger;                      ///< without what only the writer knows
    gpu::SinglesHistograms histograms;  ///< of the singles converted during the run
};

struct CaptureStatus {
    CaptureCounts counts;
    std::string failure;  ///< empty while all is well
};

/// append() by one thread; finish() after the last append, by any.
class Run {
  public:
    /// Makes the directory and the files and writes the first run.json. Throws RunDirectoryError for what the
    /// operator can mend, std::system_error for I/O.
    Run(const RunSetting& setting, const RunRequest& request);

    void append(const gpu::SliceResult& result);
    /// Of the datagrams, when asked for; else nullptr.
    [[nodiscard]] Capture* capture() const { return capture_.get(); }
    [[nodiscard]] std::optional<CaptureStatus> capture_status() const;
    /// Everything of the data that arrived at these times (steady clock, ns) has been appended.
    void mark(std::span<const std::int64_t> arrivals) { coincidences_->mark(arrivals); }
    /// The ledger over time; its rows come from the thread that appends.
    [[nodiscard]] LedgerSeries& ledger_series() const { return *ledger_series_; }
    /// What went wrong with the files; empty while all is well.
    [[nodiscard]] std::string write_failure() const;
    /// Of the files together; the largest queue of them.
    [[nodiscard]] ListModeCounts written() const;
    /// From arrival until the coincidences were written, lately.
    [[nodiscard]] LatencySummary latency() const { return coincidences_->latency(); }
    /// "writer"; "writer singles" when singles are saved; "capture" when datagrams are. Also during finish().
    void add_progress(std::vector<StageProgress>& stages) const;
    /// "run end": of finish(), while that is under way in another thread.
    void add_end_progress(std::vector<StageProgress>& stages) const;
    /// Fills in what the writers know, as of now: all that was appended is written, failed or in the queue.
    void complete(Ledger& ledger) const;

    /// Closes the files and writes the final run.json. Returns the ledger, complete. May take as long as the
    /// disk does; never throws for I/O: what goes wrong is in the `failure` given out.
    Ledger finish(const RunEnd& end, std::string& failure);

    [[nodiscard]] const std::string& id() const { return directory_.run_id(); }
    [[nodiscard]] std::chrono::system_clock::time_point started() const { return started_; }
    [[nodiscard]] const std::filesystem::path& path() const { return directory_.path(); }

  private:
    [[nodiscard]] std::unique_ptr<ListModeWriter> make_writer(RecordKind kind, const char* file) const;
    [[nodiscard]] nlohmann::json description() const;
    void open_files();
    void discard();

    RunSetting setting_;
    RunRequest request_;
    std::chrono::system_clock::time_point started_;
    RunDirectory directory_;
    std::unique_ptr<ListModeWriter> coincidences_;
    std::unique_ptr<ListModeWriter> singles_;  ///< when asked for
    std::unique_ptr<Capture> capture_;         ///< when asked for
    std::atomic<std::uint64_t> end_steps_{0};  ///< of finish()
    std::unique_ptr<LedgerSeries> ledger_series_;
};

}  // namespace petacq::daemon
