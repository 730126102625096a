#include "daemon/service.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <nlohmann/json.hpp>
#include <utility>

#include "daemon/host/utc.hpp"

namespace petacq::daemon {

namespace {

/// A disk that has not told its free space after this time is shown as unknown.
constexpr std::chrono::seconds disk_patience{5};

/// The files of the run in progress may have been found before the run was known here.
void leave_out_current(RunState& run) {
    if (!run.current) return;
    std::erase_if(run.interrupted, [&](const InterruptedRun& found) { return found.id == run.current->id; });
}

}  // namespace

Service::Service(boost::asio::io_context& io, RunSetting& setting, const net::BatchPool& pool,
                 std::uint64_t pipeline_bytes, std::vector<const net::Receiver*> receivers,
                 std::function<void()> on_failure)
    : io_(io),
      timer_(io),
      setting_(setting),
      on_failure_(std::move(on_failure)),
      calibration_(io, setting),
      monitor_(setting, pool, pipeline_bytes, std::move(receivers)),
      run_list_(setting.configuration->data_dir) {}

Service::~Service() {
    run_files_.join();  // a run that is being closed is closed
}

void Service::attach(Acquisition& acquisition) {
    acquisition_ = &acquisition;
    calibration_.attach(acquisition);
    monitor_.attach(acquisition, run_);
    acquisition.on_second([this] { boost::asio::post(io_, [this] { second_measured(); }); });
    find_interrupted_runs();
    schedule_tick();
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
    start_reply_ = std::move(reply);
    show_change();
    RunRequest wanted{
        request.run, request.duration_s, request.note.value_or(""), std::move(request.operator_data), {}, {}};
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
    run_.current = {run->id(), request.note, run->started(), request.duration_s, request.operator_data};
    leave_out_current(run_);
    show_change();
    set_log_run(run->id());
    log_info("run {} started in {}", run->id(), path);
    nlohmann::json answer = {{"run", run->id()}, {"path", path}, {"start_utc", utc_text(run->started())}};
    RequestedInterval interval;
    if (request.duration_s) interval.duration = ticks_of(*request.duration_s, *setting_.scanner);
    Run* const open = run.get();  // it lives until run_files_ has finished it
    acquisition_->begin_run(std::move(run), interval, [this, open, answer = std::move(answer)] {
        boost::asio::post(run_files_, [open] { open->describe_start(); });
        boost::asio::post(io_, [this, answer, start = acquisition_->snapshot()] { started(answer, start); });
    });
    if (stop_reason_) stop_run(*std::exchange(stop_reason_, {}));
}

void Service::started(const nlohmann::json& answer, std::shared_ptr<const AcquisitionSnapshot> snapshot) {
    run_.start = std::move(snapshot);
    run_.start_asked.reset();
    show_change();  // with the ledger of the run, which a quick client asks for
    if (start_reply_) std::exchange(start_reply_, {})->result(answer);
}

void Service::stop(Reply reply) {
    if (run_.daemon == DaemonState::idle || run_.daemon == DaemonState::failed)
        return reply.error(rpc_refused, "no run is in progress");
    stop_replies_.push_back(std::move(reply));
    stop_run("stopped by operator");
}

void Service::stop_run(const std::string& reason) {
    if (run_.daemon == DaemonState::starting) stop_reason_ = reason;
    if (run_.daemon != DaemonState::running) return;
    run_.daemon = DaemonState::stopping;
    shown_.reset();
    log_info("run {} stopping: {}", run_.current->id, reason);
    acquisition_->end_run(reason);
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
        run_.closing = shared->run.get();
        run_.start_asked.reset();
        show_change();
        if (start_reply_) std::exchange(start_reply_, {})->error(rpc_refused, shared->end.reason);
        finalise(shared);
    });
}

/// Closing the files takes as long as the disk does.
void Service::finalise(const std::shared_ptr<FinishedRun>& finished) {
    boost::asio::post(run_files_, [this, finished] {
        RunResult result;
        Run& run = *finished->run;
        const std::chrono::duration<double> lasted = std::chrono::system_clock::now() - run.started();
        result.seconds = lasted.count();
        result.ledger = run.finish(finished->end, result.failure);
        result.capture = run.capture_status();
        boost::asio::post(io_, [this, finished, result] {
            finalised(finished->end, result);
            boost::asio::post(run_files_, [finished] { finished->run.reset(); });
        });
    });
}

void Service::log_result(const std::string& id, const RunEnd& end, const RunResult& result) {
    const PairLedger& pairs = result.ledger.pairs;
    if (!result.failure.empty()) {
        log_error("run {} failed: {}", id, result.failure);
    } else {
        log_info("run {} complete ({}): {} prompts, {} delayeds", id, end.reason, pairs.prompts_found,
                 pairs.delayeds_found);
    }
    if (result.capture && result.capture->counts.dropped > 0) {
        log_warning("run {}: the raw capture lacks {} of {} datagrams", id, result.capture->counts.dropped,
                    result.capture->counts.offered);
    }
    for (const std::string& identity : result.ledger.open_identities())
        log_error("run {}: the ledger does not close: {}", id, identity);
}

void Service::finalised(const RunEnd& end, const RunResult& result) {
    const std::string id = run_.current->id;
    const bool closed = result.ledger.open_identities().empty();
    nlohmann::json answer = {{"run", id},
                             {"reason", end.reason},
                             {"seconds", result.seconds},
                             {"prompts", result.ledger.pairs.prompts_found},
                             {"delayeds", result.ledger.pairs.delayeds_found},
                             {"ledger_closed", closed},
                             {"ledger", to_json(result.ledger)},
                             {"failure", nullptr},
                             {"capture", nullptr}};
    if (!result.failure.empty()) answer["failure"] = result.failure;
    if (result.capture) answer["capture"] = to_json(*result.capture);
    log_result(id, end, result);
    set_log_run("");
    run_.closing = nullptr;
    run_.current.reset();
    run_.start.reset();
    run_.last_id = id;
    run_.last_ledger = result.ledger;
    run_.last_failure = result.failure;
    if (!closed && result.failure.empty()) run_.last_failure = "the ledger does not close";
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

void Service::answer_from_files(Reply reply, std::function<nlohmann::json()> read) {
    boost::asio::post(files_, [reply = std::move(reply), read = std::move(read)] {
        try {
            reply.result(read());
        } catch (const RunDirectoryError& error) {
            reply.error(rpc_refused, error.what());
        } catch (const std::exception& error) {
            reply.error(rpc_internal_error, error.what());
        }
    });
}

void Service::runs(RunsRequest request, Reply reply) {
    const std::string current = run_.current ? run_.current->id : "";
    answer_from_files(std::move(reply), [this, request = std::move(request), current] {
        return run_list_.page(request.limit, request.before, current);
    });
}

void Service::ledger(std::optional<std::string> run, Reply reply) {
    const std::string current = run_.current ? run_.current->id : "";
    if (!run) run = run_.current ? current : run_.last_id;
    if (run != current) {
        return answer_from_files(std::move(reply),
                                 [this, run = *run, current] { return run_list_.ledger(run, current); });
    }
    // The run in progress; without one, and before the first run, the ledger since the daemon started.
    nlohmann::json answer = {{"run", nullptr}, {"state", nullptr}, {"ledger", document().at("ledger")}};
    if (run_.current) {
        answer["run"] = current;
        answer["state"] = name_of(run_.daemon);
    }
    reply.result(answer);
}

/// There may be many runs, on a slow disk.
void Service::find_interrupted_runs(std::function<void()> done) {
    const std::filesystem::path data_dir = setting_.configuration->data_dir;
    const std::string current = run_.current ? run_.current->id : "";
    boost::asio::post(files_, [this, data_dir, current, done = std::move(done)] {
        std::optional<std::vector<InterruptedRun>> found;
        try {
            found = find_interrupted(data_dir, current);
        } catch (const std::exception& error) {
            log_warning("interrupted runs: {}", error.what());
        }
        boost::asio::post(io_, [this, found = std::move(found), done] {
            if (found) run_.interrupted = *found;
            leave_out_current(run_);
            monitor_.assess(run_);
            shown_.reset();
            if (done) done();
        });
    });
}

void Service::acknowledge(std::string run, Reply reply) {
    const std::filesystem::path data_dir = setting_.configuration->data_dir;
    const std::string current = run_.current ? run_.current->id : "";
    boost::asio::post(files_, [reply, data_dir, run, current] {
        try {
            acknowledge_interrupted(data_dir, run, current);
            log_info("run {}: an operator has acknowledged that it was interrupted", run);
        } catch (const RunDirectoryError& error) {
            reply.error(rpc_refused, error.what());
        } catch (const std::exception& error) {
            reply.error(rpc_internal_error, error.what());
        }
    });
    // After an error, this answer is ignored.
    find_interrupted_runs([reply, run] { reply.result({{"run", run}, {"state", "interrupted"}}); });
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
