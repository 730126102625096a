#include "daemon/service/service.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <nlohmann/json.hpp>
#include <utility>

#include "daemon/system/utc.hpp"

namespace petacq::daemon {

namespace {

/// A disk that has not told its free space after this time is shown as unknown.
constexpr std::chrono::seconds disk_patience{5};
/// A run that is asked to stop waits at most so long for detector time to pass the stop.
constexpr double longest_wait_for_stop_s = 60;

}  // namespace

Service::Service(boost::asio::io_context& io, RunSetting& setting, const net::BatchPool& pool,
                 std::uint64_t pipeline_bytes, std::vector<const net::Receiver*> receivers,
                 Acquisition& acquisition, std::function<void()> on_failure)
    : io_(io),
      timer_(io),
      setting_(setting),
      on_failure_(std::move(on_failure)),
      acquisition_(acquisition),
      calibration_(io, setting, acquisition),
      monitor_(setting, pool, pipeline_bytes, std::move(receivers), acquisition, run_),
      run_list_(setting.configuration->data_dir) {
    acquisition.on_second([this] { boost::asio::post(io_, [this] { second_measured(); }); });
    find_interrupted_runs();
    find_last_run();
    schedule_tick();
}

Service::~Service() {
    acquisition_.stop();
    run_files_.join();  // a run that is being closed is closed
}

void Service::schedule_tick() {
    timer_.expires_after(Monitor::interval);
    timer_.async_wait([this](boost::system::error_code error) {
        if (error) return;
        tick();
        schedule_tick();
    });
}

void Service::tick() {
    look_at_disk();
    monitor_.observe(run_);
    shown_.reset();
    note_start();
    if (!failed_ && !reading().acquisition->failure.empty()) {
        failed_ = true;
        if (run_.daemon == DaemonState::idle) {
            run_.daemon = DaemonState::failed;
            on_failure_();
        }
    }
    if (on_status_) on_status_(document());
}

/// A fault of the detector need not wait for the next tick.
void Service::second_measured() {
    show_change();
    if (monitor_.assess(run_) && on_status_) on_status_(document());
}

void Service::look_at_disk() {
    const auto now = std::chrono::steady_clock::now();
    if (disk_asked_) {
        if (now - *disk_asked_ > disk_patience) monitor_.set_disk_space(std::nullopt);
        return;
    }
    disk_asked_ = now;
    boost::asio::post(disk_, [this, directory = setting_.configuration->data_dir] {
        boost::asio::post(io_, [this, space = disk_space(directory)] {
            disk_asked_.reset();
            monitor_.set_disk_space(space);
        });
    });
}

void Service::show_change() {
    monitor_.read(run_);
    shown_.reset();
}

std::string Service::start_refusal() const {
    if (shutting_down_) return "the daemon is shutting down";
    if (run_.daemon == DaemonState::failed || failed_)
        return "the pipeline has failed (" + reading().acquisition->failure + "); restart the daemon";
    switch (run_.daemon) {
        case DaemonState::starting:
            return "another run is being started";
        case DaemonState::running:
            return "run " + run_.current->id + " is in progress; stop it first";
        case DaemonState::stopping:
            return "run " + run_.current->id + " is being finalised; stop it first";
        case DaemonState::idle:
        case DaemonState::failed:
            break;
    }
    return "";
}

/// Creating the files takes as long as the disk does.
void Service::start(StartRequest request, Reply reply) {
    if (calibration_.taking())
        return calibration_.when_taken([this, request, reply] { start(request, reply); });
    if (const std::string refusal = start_refusal(); !refusal.empty())
        return reply.error(rpc_refused, refusal);
    run_.daemon = DaemonState::starting;
    run_.start_asked = std::chrono::steady_clock::now();
    run_asked_ = request.run;
    start_reply_ = std::move(reply);
    show_change();
    RunRequest wanted{request.run,
                      request.duration_s,
                      request.start_ticks,
                      request.stop_ticks,
                      request.note.value_or(""),
                      std::move(request.operator_data),
                      {},
                      {}};
    boost::asio::post(run_files_, [this, setting = setting_, wanted = std::move(wanted)] {
        try {
            // A handler must be copyable.
            auto run = std::make_shared<std::unique_ptr<Run>>(std::make_unique<Run>(setting, wanted));
            boost::asio::post(io_, [this, run, wanted] { created(std::move(*run), wanted); });
        } catch (const std::exception& e) {
            boost::asio::post(io_, [this, failure = std::string(e.what())] { not_created(failure); });
        }
    });
}

void Service::not_created(const std::string& failure) {
    log_limit_.log(LogLevel::warning, "start", "start refused: {}", failure);
    run_.start_asked.reset();
    stop_reason_.reset();
    std::exchange(start_reply_, {})->error(rpc_refused, failure);
    for (const Reply& reply : std::exchange(stop_replies_, {}))
        reply.error(rpc_refused, "no run is in progress: the start was refused");
    idle_again();
}

void Service::created(std::unique_ptr<Run> run, const RunRequest& request) {
    const std::string path = run->path().string();
    run_.daemon = DaemonState::running;
    run_.open = run.get();
    run_.current = {run->id(),           request.note,       run->started(),       request.duration_s,
                    request.start_ticks, request.stop_ticks, request.operator_data};
    run_.waiting = request.start_ticks.has_value();
    run_.data_since.reset();
    leave_out_current();
    show_change();
    set_log_run(run->id());
    log_info("run {} started in {}", run->id(), path);
    nlohmann::json answer = {{"run", run->id()}, {"path", path}, {"start_utc", utc_text(run->started())}};
    RequestedInterval interval{request.start_ticks, request.stop_ticks, {}};
    if (request.duration_s) interval.duration = ticks_of(*request.duration_s, *setting_.scanner);
    const auto on_start = [this, answer] {
        boost::asio::post(io_, [this, answer, start = acquisition_.snapshot()] { started(answer, start); });
    };
    const auto on_wait = [this, answer] { boost::asio::post(io_, [this, answer] { accepted(answer); }); };
    acquisition_.begin_run(std::move(run), interval, on_start,
                           run_.waiting ? std::function<void()>(on_wait) : nullptr);
    if (stop_reason_) stop_run(*std::exchange(stop_reason_, {}));
}

void Service::started(const nlohmann::json& answer, std::shared_ptr<const AcquisitionSnapshot> snapshot) {
    run_.start = std::move(snapshot);
    run_.waiting = false;
    show_change();  // with the ledger of the run, which a quick client asks for
    note_start();
    accepted(answer);
}

/// The run has started, or waits for the start that was asked for.
void Service::accepted(const nlohmann::json& answer) {
    if (run_.open == nullptr) return;  // it never began
    run_.start_asked.reset();
    if (start_reply_) std::exchange(start_reply_, {})->result(answer);
}

/// It changes when detector time starts again.
void Service::note_start() {
    const AcquisitionSnapshot& now = *reading().acquisition;
    if (run_.open == nullptr || !now.run || noted_start_ == now.run_start) return;
    noted_start_ = now.run_start;
    run_.data_since = now.run_start ? std::optional(now.taken) : std::nullopt;
    if (!now.run_start) return;
    run_.current->started = run_.open->start_utc();
    log_info("run {}: its data begin at {} ticks", run_.current->id, *now.run_start);
    // The thread of run_files_ closes the run, too, later.
    boost::asio::post(run_files_, [run = run_.open] { run->note_start(); });
}

void Service::stop(StopRequest request, Reply reply) {
    if (run_.daemon == DaemonState::idle || run_.daemon == DaemonState::failed)
        return reply.error(rpc_refused, "no run is in progress");
    const auto run = run_.daemon == DaemonState::starting ? run_asked_ : std::optional(run_.current->id);
    if (request.run && request.run != run) {
        return reply.error(rpc_refused, fmt::format("the run in progress is {}, not {}",
                                                    run.value_or("another one"), *request.run));
    }
    const std::uint64_t latest =
        reading().acquisition->watermark + ticks_of(longest_wait_for_stop_s, *setting_.scanner);
    if (request.stop_ticks.value_or(0) > latest) {
        return reply.error(rpc_refused, fmt::format("stop_ticks {}: expected at most {}, a minute from now",
                                                    *request.stop_ticks, latest));
    }
    stop_replies_.push_back(std::move(reply));
    stop_run("stopped by operator", request.stop_ticks);
}

void Service::stop_run(const std::string& reason, std::optional<std::uint64_t> stop_ticks) {
    if (run_.daemon == DaemonState::starting) stop_reason_ = reason;
    if (run_.daemon != DaemonState::running) return;
    run_.daemon = DaemonState::stopping;
    shown_.reset();
    log_info("run {} stopping: {}", run_.current->id, reason);
    acquisition_.end_run(reason, stop_ticks);
}

void Service::shut_down(const std::string& reason, std::function<void()> done) {
    shutting_down_ = true;
    if (run_.daemon == DaemonState::idle || run_.daemon == DaemonState::failed) return done();
    when_idle_.push_back(std::move(done));
    stop_run(reason);
}

void Service::run_finished(FinishedRun finished) {
    boost::asio::post(io_, [this, shared = std::make_shared<FinishedRun>(std::move(finished))] {
        if (run_.daemon == DaemonState::running)
            log_info("run {} stopping: {}", run_.current->id, shared->end.reason);
        run_.daemon = DaemonState::stopping;
        run_.open = nullptr;
        run_.waiting = false;
        noted_start_.reset();
        if (!shared->end.never_began) run_.closing = shared->run.get();  // one that never began is discarded
        run_.start_asked.reset();
        show_change();
        if (start_reply_ && !shared->end.never_began)
            std::exchange(start_reply_, {})->error(rpc_refused, shared->end.reason);
        finalise(shared);
    });
}

/// Closing the files takes as long as the disk does.
void Service::finalise(const std::shared_ptr<FinishedRun>& finished) {
    boost::asio::post(run_files_, [this, finished] {
        RunResult result;
        Run& run = *finished->run;
        if (finished->end.never_began) {
            run.discard();
            boost::asio::post(io_, [this, finished] { discarded(finished->end); });
            return;
        }
        result.seconds =
            static_cast<double>(finished->end.covered.ticks()) * setting_.scanner->tick_ps * 1e-12;
        result.ledger = run.finish(finished->end, result.failure);
        result.verdict = run.verdict();
        result.capture = run.capture_status();
        boost::asio::post(io_, [this, finished, result] {
            finalised(finished->end, result);
            boost::asio::post(run_files_, [finished] { finished->run.reset(); });
        });
    });
}

void Service::log_result(const std::string& id, const RunEnd& end, const RunResult& result) const {
    if (!result.failure.empty()) {
        log_error("run {} failed: {}", id, result.failure);
    } else {
        log_info("run {} complete ({}): {}", id, end.reason,
                 records_text(result.ledger, setting_.configuration->listmode.write_coincidences));
    }
    if (result.capture && result.capture->counts.dropped > 0) {
        log_warning("run {}: the raw capture lacks {} of {} datagrams", id, result.capture->counts.dropped,
                    result.capture->counts.offered);
    }
    for (const RunVerdict::Reason& reason : result.verdict.reasons)
        log_warning("run {}: {}", id, reason.message);
    for (const std::string& identity : result.ledger.open_identities())
        log_error("run {}: the ledger does not close: {}", id, identity);
}

/// The answer to `stop`.
nlohmann::json Service::stop_answer(const RunEnd& end, const RunResult& result) const {
    const config::ListMode& listmode = setting_.configuration->listmode;
    const auto if_saved = [](bool saved, std::uint64_t records) {
        return saved ? nlohmann::json(records) : nlohmann::json();
    };
    nlohmann::json answer = {
        {"run", run_.current->id},
        {"reason", end.reason},
        {"seconds", result.seconds},
        {"prompts", if_saved(listmode.write_coincidences, result.ledger.pairs.prompts_found)},
        {"delayeds", if_saved(listmode.write_coincidences, result.ledger.pairs.delayeds_found)},
        {"singles", if_saved(listmode.write_singles, result.ledger.saved_singles.found)},
        {"ledger_closed", result.ledger.open_identities().empty()},
        {"ledger", to_json(result.ledger)},
        {"verdict", to_json(result.verdict)},
        {"failure", nullptr},
        {"capture", nullptr}};
    if (!result.failure.empty()) answer["failure"] = result.failure;
    if (result.capture) answer["capture"] = to_json(*result.capture);
    return answer;
}

void Service::discarded(const RunEnd& end) {
    log_info("run {} did not begin: {}", run_.current->id, end.reason);
    if (start_reply_) std::exchange(start_reply_, {})->error(rpc_refused, end.reason);
    for (const Reply& reply : std::exchange(stop_replies_, {}))
        reply.result(stop_answer(end, {}));
    set_log_run("");
    run_.closing = nullptr;
    run_.current.reset();
    show_change();
    idle_again();
}

void Service::finalised(const RunEnd& end, const RunResult& result) {
    const std::string id = run_.current->id;
    const bool closed = result.ledger.open_identities().empty();
    const nlohmann::json answer = stop_answer(end, result);
    log_result(id, end, result);
    set_log_run("");
    run_.closing = nullptr;
    run_.current.reset();
    run_.start.reset();
    run_.last_id = id;
    run_.last_ledger = result.ledger;
    run_failed_ = !closed || !result.failure.empty();
    run_.ended = {id, std::chrono::system_clock::now(),
                  !result.failure.empty() ? result.failure
                  : closed                ? end.reason
                                          : "the ledger does not close",
                  run_failed_, name_of(result.verdict.state)};
    if (!result.failure.empty()) find_interrupted_runs();  // run.json may not be final
    monitor_.read(run_);
    monitor_.assess(run_);
    for (const Reply& reply : std::exchange(stop_replies_, {}))
        reply.result(answer);
    idle_again();
}

void Service::idle_again() {
    failed_ = failed_ || !reading().acquisition->failure.empty();
    run_.daemon = failed_ ? DaemonState::failed : DaemonState::idle;
    shown_.reset();
    for (const auto& done : std::exchange(when_idle_, {}))
        done();
    if (failed_) return on_failure_();
    if (run_.next_calibration) take_calibration([](const std::string& /*logged*/) {});
}

void Service::set_calibration(std::optional<NewCalibration> next,
                              std::function<void(const std::string& failure)> done) {
    calibration_.offer(std::move(next));
    run_.next_calibration = calibration_.waiting();
    shown_.reset();
    if (run_.daemon == DaemonState::idle) return take_calibration(std::move(done));
    if (run_.next_calibration)
        log_info("calibration {} will be taken after the run", described(*run_.next_calibration));
    done("");
}

void Service::take_calibration(std::function<void(const std::string& failure)> done) {
    calibration_.take([this, done = std::move(done)](const std::string& failure) {
        run_.next_calibration.reset();
        show_change();
        done(failure);
    });
}

std::shared_ptr<const std::string> Service::status() {
    document();
    return shown_->text;
}

const nlohmann::json& Service::document() {
    using Clock = std::chrono::steady_clock;
    // An older reading would hide what a quick client has just done.
    const Clock::duration longest =
        std::max<Clock::duration>(Monitor::interval / 5, shown_ ? 4 * shown_->cost : Clock::duration());
    const Clock::time_point start = Clock::now();
    if (start - reading().taken > longest) show_change();
    if (!shown_) {
        shown_ = Shown{};
        shown_->document = std::make_shared<const nlohmann::json>(monitor_.status(run_));
        shown_->text = std::make_shared<const std::string>(rpc_text(*shown_->document));
        shown_->cost = Clock::now() - start;
    }
    return *shown_->document;
}

}  // namespace petacq::daemon
