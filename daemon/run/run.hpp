// One run: its directory, its files, and run.json.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "config/configuration.hpp"
#include "config/scanner/scanner.hpp"
#include "config/spectra.hpp"
#include "daemon/listmode/writer.hpp"
#include "daemon/marks/marks.hpp"
#include "daemon/placement/machine.hpp"
#include "daemon/run/calibration_in_use.hpp"
#include "daemon/run/capture.hpp"
#include "daemon/run/directory.hpp"
#include "daemon/run/ledger.hpp"
#include "daemon/run/ledger_series.hpp"
#include "daemon/run/operator_data.hpp"
#include "daemon/run/run_coverage.hpp"
#include "daemon/run/verdict.hpp"
#include "daemon/seconds/file.hpp"
#include "daemon/seconds/second.hpp"
#include "daemon/space/reserve.hpp"
#include "daemon/system/progress.hpp"
#include "gpu/pipeline.hpp"

namespace petacq::daemon {

/// The operator's request.
struct RunRequest {
    std::optional<std::string> id;             ///< absent: derived from the time
    std::optional<double> duration_s;          ///< detector time; absent: until stopped
    std::optional<std::uint64_t> start_ticks;  ///< absent: now
    std::optional<std::uint64_t> stop_ticks;   ///< absent: after `duration_s`, or until stopped
    std::string note;
    OperatorData operator_data;
    std::vector<std::string> replayed;  ///< the captures being replayed; empty: live data
    /// When the first packet of a replay was taken; absent: now.
    std::optional<std::chrono::system_clock::time_point> started;
};

/// The settings that all runs share.
struct RunSetting {
    /// A reload replaces it; a run keeps the configuration that it started with.
    std::shared_ptr<const config::Configuration> configuration;
    const config::Scanner* scanner = nullptr;
    gpu::CoincidenceRules rules;
    net::Framing framing = net::Framing::sequenced;
    CalibrationInUse calibration;    ///< a reload replaces it between runs
    std::string backend;             ///< name of the back-end
    std::string backend_choice;      ///< why this back-end
    Placement placement;             ///< of the threads of the daemon; the writers are with the results
    net::BatchPool* pool = nullptr;  ///< where a raw capture returns its batches; nullptr: no capture
};

/// How a run stopped, as the acquisition reports it.
struct RunEnd {
    std::string reason;                 ///< "stopped by operator", "duration reached", a failure, ...
    bool failed = false;                ///< whether the reason is a failure
    bool never_began = false;           ///< it has no data, and nothing of it is kept
    gpu::TickRange taken;               ///< it holds the singles of these times
    gpu::TickRange covered;             ///< the part of it that has data
    Ledger ledger;                      ///< without the counters of the writers
    gpu::SinglesHistograms histograms;  ///< of the singles converted during the run
    config::Spectra spectra;            ///< if requested; empty: not known, since the pipeline has failed
    SecondsTotal seconds;               ///< of the run
    std::optional<double> live;  ///< mean share of the data of the boards that arrived; absent: unknown
    SeenInRun seen;
};

struct CaptureStatus {
    CaptureCounts counts;
    std::string failure;  ///< empty while all is well
};
/// `run.capture` of the status document, and part of `capture` in run.json.
nlohmann::json to_json(const CaptureStatus& capture);

/// One thread calls append(), restart_data(), begin_data() and mark(). Any thread calls finish(), after the
/// last append(), and the const functions.
class Run {
  public:
    /// Creates the directory and the files and writes the first run.json. Throws RunDirectoryError for errors
    /// that the operator can correct, std::system_error for I/O errors.
    Run(const RunSetting& setting, const RunRequest& request);

    /// Takes the records of the slice. Leaves vectors of unspecified content, whose memory can be used again.
    void append(gpu::SliceResult& result);
    /// Takes the seconds of the run. The last one ends where the run stops. finish() closes it.
    [[nodiscard]] SecondsFile& seconds() const { return *seconds_; }
    /// Detector time has started again, before the run had any record: forgets where its data begin.
    void restart_data() { coverage_.restart(); }
    /// The first data of the run, which takes the singles from `taken_from` on, lie at this tick.
    /// `arrival_ns`: host time at which a datagram with frames up to `arrival_ticks` arrived, on the steady
    /// clock or, in a replay, since 1970; absent: unknown.
    struct Arrival {
        std::uint64_t ticks = 0;
        std::int64_t host_ns = 0;
    };
    void begin_data(std::uint64_t ticks, const std::optional<Arrival>& arrival, std::uint64_t taken_from);
    /// Whether the run saves spectra.
    [[nodiscard]] bool counts_spectra() const { return setting_.configuration->spectra.enabled; }
    /// Memory for the spectra, with the name of the calibration. They are large, so that the thread that ends
    /// the run need not wait for it. Once.
    [[nodiscard]] config::Spectra take_spectra_memory() { return std::move(spectra_memory_); }
    /// The raw capture, or nullptr if none was requested.
    [[nodiscard]] Capture* capture() const { return capture_.get(); }
    [[nodiscard]] std::optional<CaptureStatus> capture_status() const;
    /// All data that arrived at these times (steady clock, ns) have been appended.
    void mark(std::span<const std::int64_t> arrivals) { measured().mark(arrivals); }
    /// The ledger over time. The thread that appends adds its rows.
    [[nodiscard]] LedgerSeries& ledger_series() const { return *ledger_series_; }
    /// Why writing list-mode or seconds failed; empty while all is well.
    [[nodiscard]] std::string write_failure() const;
    /// Why the ledger over time stopped early; empty while all is well.
    [[nodiscard]] std::string ledger_series_failure() const { return ledger_series_->status().failure; }
    /// The sizes and stalls of all list-mode files together, and their longest queue; without the seconds.
    [[nodiscard]] ListModeCounts written() const;
    [[nodiscard]] std::uint64_t seconds_bytes() const { return seconds_->counts().bytes; }
    /// The recent latency from arrival until the coincidences were written; without them, the singles.
    [[nodiscard]] LatencySummary latency() const { return measured().latency(); }
    /// Adds "writer", or "writer 1", "writer 2", ... if there are several, if coincidences are saved. Saved
    /// singles and triples have "writer singles" and "writer triples" in the same way. Adds "writer tags" if
    /// there were tags, "writer seconds", and "capture" if datagrams are kept. Also in finish().
    void add_progress(std::vector<StageProgress>& stages) const;
    /// Adds "run end", the progress of finish() in another thread.
    void add_end_progress(std::vector<StageProgress>& stages) const;
    /// Sets the current counters of the writers: everything appended is written, failed or in the queue.
    void complete(Ledger& ledger) const;

    /// Closes the files and writes spectra.h5, histograms.json and, last, the final run.json: its state is
    /// "complete" only if nothing failed, the ledger closes, and every file of the run is still there.
    /// Returns the complete ledger. Waits for the disk. Does not throw for I/O errors: `failure` receives the
    /// reason, or stays empty.
    Ledger finish(const RunEnd& end, std::string& failure);
    /// After finish().
    [[nodiscard]] const RunVerdict& verdict() const { return verdict_; }

    /// Instead of finish(): removes the run, which has no data, so that its id can be used again. Nobody else
    /// may use the run any more.
    void discard();
    /// The data of the run have begun: writes that into run.json, for readers of a run in progress. Waits for
    /// the disk; the caller sees to it that finish() comes later. Only logs I/O errors, which finish() will
    /// meet.
    void note_start();
    /// What an operator has noted. Returns when it is on the disk; the caller sees to it that finish() comes
    /// later. Throws std::system_error.
    void add_mark(const Mark& made) { marks_.append(made); }

    [[nodiscard]] const std::string& id() const { return directory_.run_id(); }
    /// When the command came; of a replay, when its first packet was taken.
    [[nodiscard]] std::chrono::system_clock::time_point started() const { return started_; }
    /// When its data began; before that, started().
    [[nodiscard]] std::chrono::system_clock::time_point start_utc() const;
    [[nodiscard]] const std::filesystem::path& path() const { return directory_.path(); }

  private:
    [[nodiscard]] std::unique_ptr<ListModeWriter> make_writer(RecordKind kind, const char* file) const;
    [[nodiscard]] std::unique_ptr<SecondsFile> make_seconds() const;
    [[nodiscard]] nlohmann::json listmode_description(RecordKind kind) const;
    [[nodiscard]] nlohmann::json description() const;
    [[nodiscard]] Coverage known_coverage() const;
    [[nodiscard]] Closing closing_of(RecordKind kind) const;
    [[nodiscard]] std::chrono::system_clock::time_point stop_utc(std::uint64_t ticks) const;
    /// Returns the reason if spectra were requested and cannot be saved, else "".
    [[nodiscard]] std::string save_spectra(const RunEnd& end) const;
    /// Files that another program has removed, replaced or cut since they were written, with the reason.
    [[nodiscard]] std::string lost_files() const;
    void open_files();
    [[nodiscard]] RunVerdict verdict_on(const RunEnd& end, const Ledger& ledger,
                                        const std::string& failure) const;
    void write_description(nlohmann::json content);
    struct Writer {
        RecordKind kind;
        const char* name;  ///< in the status
        ListModeWriter* writer;
    };
    /// Those that the run has.
    [[nodiscard]] std::vector<Writer> writers() const;
    /// The writer whose latency is that of the run.
    [[nodiscard]] ListModeWriter& measured() const { return coincidences_ ? *coincidences_ : *singles_; }

    RunSetting setting_;
    RunRequest request_;
    std::chrono::system_clock::time_point started_;
    std::chrono::steady_clock::time_point started_steady_ = std::chrono::steady_clock::now();
    RunDirectory directory_;
    RunCoverage coverage_;
    std::unique_ptr<RunReserve> reserve_;
    FileIdentity description_identity_;             ///< of the first run.json
    std::unique_ptr<ListModeWriter> coincidences_;  ///< if requested
    std::unique_ptr<ListModeWriter> singles_;       ///< likewise; at least one of the two
    std::unique_ptr<ListModeWriter> triples_;       ///< if triples are found
    std::unique_ptr<ListModeWriter> tags_;          ///< one file, made with the first tag
    std::unique_ptr<SecondsFile> seconds_;
    std::unique_ptr<Capture> capture_;         ///< if requested
    std::atomic<std::uint64_t> end_steps_{0};  ///< steps of finish() done
    std::unique_ptr<LedgerSeries> ledger_series_;
    MarksFile marks_;
    RunVerdict verdict_;
    config::Spectra spectra_memory_;  ///< if requested
};

}  // namespace petacq::daemon
