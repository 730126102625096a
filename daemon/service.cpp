#include "daemon/service.hpp"

#include <boost/asio/post.hpp>
#include <nlohmann/json.hpp>
#include <utility>

#include "daemon/host/utc.hpp"

namespace petacq::daemon {

Service::Service(boost::asio::io_context& io, const RunSetting& setting, const net::BatchPool& pool,
                 std::uint64_t pipeline_bytes, std::vector<const net::Receiver*> receivers,
                 std::function<void()> on_failure)
    : io_(io),
      timer_(io),
      setting_(setting),
      on_failure_(std::move(on_failure)),
      monitor_(setting, pool, pipeline_bytes, std::move(receivers)),
      run_list_(setting.configuration->data_dir) {}

Service::~Service() {
    if (finisher_.joinable()) finisher_.join();
}

void Service::attach(Acquisition& acquisition) {
    acquisition_ = &acquisition;
    monitor_.attach(acquisition, run_);
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
    monitor_.observe(run_);
    if (!failed_ && !reading().acquisition->failure.empty()) {
        failed_ = true;
        if (run_.daemon == DaemonState::idle) {
            run_.daemon = DaemonState::failed;
            on_failure_();
        }
    }
    if (on_status_) on_status_(monitor_.status(run_));
}

void Service::start(StartRequest request, Reply reply) {
    if (shutting_down_) return reply.error(rpc_refused, "the daemon is shutting down");
    if (run_.daemon == DaemonState::failed || failed_) {
        return reply.error(rpc_refused, "the pipeline has failed (" + reading().acquisition->failure +
                                            "); restart the daemon");
    }
    if (run_.daemon != DaemonState::idle) {
        return reply.error(rpc_refused, std::string("run ") + run_.current->id +
                                            (run_.daemon == DaemonState::running ? " is in progress"
                                                                                 : " is being finalised") +
                                            "; stop it first");
    }
    RunRequest wanted{request.run, request.duration_s, request.note.value_or(""), {}};
    std::unique_ptr<Run> run;
    try {
        run = std::make_unique<Run>(setting_, wanted);
    } catch (const std::exception& e) {
        log_limit_.log(LogLevel::warning, "start", "start refused: {}", e.what());
        return reply.error(rpc_refused, e.what());
    }
    const std::string path = run->path().string();
    run_.daemon = DaemonState::running;
    run_.open = run.get();
    run_.current = {run->id(), wanted.note, utc_text(run->started()), wanted.duration_s};
    monitor_.read(run_);
    set_log_run(run->id());
    log_info("run {} started in {}", run->id(), path);
    nlohmann::json answer = {{"run", run->id()}, {"path", path}, {"start_utc", run_.current->start_utc}};
    RequestedInterval interval;
    if (wanted.duration_s) interval.duration = ticks_of(*wanted.duration_s, *setting_.scanner);
    acquisition_->begin_run(std::move(run), interval, [this, reply, answer = std::move(answer)] {
        boost::asio::post(io_, [this, start = acquisition_->snapshot()] {
            run_.start = start;
            monitor_.read(run_);  // with the ledger of the run, which a quick client asks for
        });
        reply.result(answer);
    });
}

void Service::stop(Reply reply) {
    if (!run_.current) return reply.error(rpc_refused, "no run is in progress");
    stop_replies_.push_back(std::move(reply));
    if (run_.daemon == DaemonState::running) stop_run("stopped by operator");
}

void Service::stop_run(const std::string& reason) {
    run_.daemon = DaemonState::stopping;
    log_info("run {} stopping: {}", run_.current->id, reason);
    acquisition_->end_run(reason);
}

void Service::shut_down(const std::string& reason, std::function<void()> done) {
    shutting_down_ = true;
    if (!run_.current) return done();
    when_idle_.push_back(std::move(done));
    if (run_.daemon == DaemonState::running) stop_run(reason);
}

void Service::run_finished(FinishedRun finished) {
    boost::asio::post(io_, [this, shared = std::make_shared<FinishedRun>(std::move(finished))] {
        if (run_.daemon == DaemonState::running)
            log_info("run {} stopping: {}", run_.current->id, shared->end.reason);
        run_.daemon = DaemonState::stopping;
        run_.open = nullptr;
        run_.closing = shared->run.get();
        monitor_.read(run_);
        finalise(shared);
    });
}

/// Closes the files in a thread of its own: that takes as long as the disk does.
void Service::finalise(const std::shared_ptr<FinishedRun>& finished) {
    if (finisher_.joinable()) finisher_.join();
    finisher_ = std::thread([this, finished] {
        RunResult result;
        Run& run = *finished->run;
        const std::chrono::duration<double> lasted = std::chrono::system_clock::now() - run.started();
        result.seconds = lasted.count();
        result.ledger = run.finish(finished->end, result.failure);
        result.capture = run.capture_status();
        boost::asio::post(io_, [this, finished, result] { finalised(*finished, result); });
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

void Service::finalised(const FinishedRun& finished, const RunResult& result) {
    const std::string id = finished.run->id();
    const bool closed = result.ledger.open_identities().empty();
    nlohmann::json answer = {{"run", id},
                             {"reason", finished.end.reason},
                             {"seconds", result.seconds},
                             {"prompts", result.ledger.pairs.prompts_found},
                             {"delayeds", result.ledger.pairs.delayeds_found},
                             {"ledger_closed", closed},
                             {"ledger", to_json(result.ledger)},
                             {"failure", nullptr},
                             {"capture", nullptr}};
    if (!result.failure.empty()) answer["failure"] = result.failure;
    if (result.capture) answer["capture"] = to_json(*result.capture);
    log_result(id, finished.end, result);
    set_log_run("");
    run_.closing = nullptr;
    run_.current.reset();
    run_.start.reset();
    run_.last_id = id;
    run_.last_ledger = result.ledger;
    run_.last_failure = result.failure;
    if (!closed && result.failure.empty()) run_.last_failure = "the ledger does not close";
    monitor_.read(run_);
    monitor_.assess(run_);
    failed_ = failed_ || !reading().acquisition->failure.empty();
    run_.daemon = failed_ ? DaemonState::failed : DaemonState::idle;
    for (const Reply& reply : std::exchange(stop_replies_, {}))
        reply.result(answer);
    for (const auto& done : std::exchange(when_idle_, {}))
        done();
    if (failed_) on_failure_();
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
    nlohmann::json answer = {{"run", nullptr}, {"state", nullptr}, {"ledger", status().at("ledger")}};
    if (run_.current) {
        answer["run"] = current;
        answer["state"] = name_of(run_.daemon);
    }
    reply.result(answer);
}

nlohmann::json Service::status() {
    // An older reading would hide what a quick client has just done.
    if (std::chrono::steady_clock::now() - reading().taken > Monitor::interval / 5) monitor_.read(run_);
    return monitor_.status(run_);
}

}  // namespace petacq::daemon
