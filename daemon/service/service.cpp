#include "daemon/service/service.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <nlohmann/json.hpp>
#include <utility>

#include "daemon/system/utc.hpp"

namespace petacq::daemon {

namespace {

/// How long a run that is asked to stop waits for detector time to pass the stop.
constexpr double longest_wait_for_stop_s = 60;

DaemonState state_of(RunLifecycle::Phase phase) {
    switch (phase) {
        case RunLifecycle::Phase::idle:
            return DaemonState::idle;
        case RunLifecycle::Phase::creating:
            return DaemonState::starting;
        case RunLifecycle::Phase::running:
            return DaemonState::running;
        case RunLifecycle::Phase::stopping:
        case RunLifecycle::Phase::finalising:
            return DaemonState::stopping;
        case RunLifecycle::Phase::failed:
            break;
    }
    return DaemonState::failed;
}

}  // namespace

Service::Service(boost::asio::io_context& io, RunSetting& setting, const net::BatchPool& pool,
                 std::uint64_t pipeline_bytes, std::vector<const net::Receiver*> receivers,
                 Acquisition& acquisition, ServiceCallbacks callbacks)
    : io_(io),
      timer_(io),
      setting_(setting),
      callbacks_(std::move(callbacks)),
      acquisition_(acquisition),
      calibration_(io, setting, acquisition),
      monitor_(setting, pool, pipeline_bytes, std::move(receivers), acquisition, run_),
      files_(io, setting),
      space_(io, [this](std::optional<DiskSpace> space) { monitor_.set_disk_space(space); }) {
    acquisition.on_second([this] { boost::asio::post(io_, [this] { second_measured(); }); });
    find_interrupted_runs();
    // The strip says in the morning how the last run of the night ended, also after a restart of the daemon.
    files_.find_last([this](std::optional<EndedRun> found) {
        if (run_.ended) return;
        run_.ended = std::move(found);
        monitor_.assess(run_);
        shown_.reset();
    });
    ask_peer();
    schedule_tick();
}

Service::~Service() {
    acquisition_.stop();
}

// The way of a run.

void Service::start(StartRequest request, Reply reply) {
    if (calibration_.taking())
        return calibration_.when_taken([this, request, reply] { start(request, reply); });
    if (const RunDecision decision = lifecycle_.start_asked(request.run); !decision.create_files)
        return reply.error(rpc_refused, decision.refusal);
    run_.start_asked = std::chrono::steady_clock::now();
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
    files_.create(wanted, [this, wanted](std::unique_ptr<Run> run, const std::string& failure) {
        run ? created(std::move(run), wanted) : not_created(failure);
    });
}

void Service::not_created(const std::string& failure) {
    log_limit_.log(LogLevel::warning, "start", "start refused: {}", failure);
    note_failure();
    const RunDecision decision = lifecycle_.files_not_created();
    run_.start_asked.reset();
    refuse_start(failure);
    for (const Reply& reply : std::exchange(stop_replies_, {}))
        reply.error(rpc_refused, "no run is in progress: the start was refused");
    rest(decision);
}

void Service::created(std::unique_ptr<Run> run, const RunRequest& request) {
    const std::string id = run->id();
    const std::string path = run->path().string();
    const RunDecision decision = lifecycle_.files_created(id);
    run_.open = run.get();
    run_.current = {id,
                    request.note,
                    run->started(),
                    request.duration_s,
                    request.start_ticks,
                    request.stop_ticks,
                    request.operator_data};
    run_.waiting = request.start_ticks.has_value();
    run_.data_since.reset();
    leave_out_current();
    show_change();
    set_log_run(id);
    log_info("run {} started in {}", id, path);
    const nlohmann::json answer = {{"run", id}, {"path", path}, {"start_utc", utc_text(run->started())}};
    RequestedInterval interval{request.start_ticks, request.stop_ticks, {}};
    if (request.duration_s) interval.duration = ticks_of(*request.duration_s, *setting_.scanner);
    const auto on_start = [this, id, answer] {
        boost::asio::post(
            io_, [this, id, answer, start = acquisition_.snapshot()] { started(id, answer, start); });
    };
    const auto on_wait = [this, id, answer] {
        boost::asio::post(io_, [this, id, answer] { started(id, answer, nullptr); });
    };
    acquisition_.begin_run(std::move(run), interval, on_start,
                           run_.waiting ? std::function<void()>(on_wait) : nullptr);
    end_run(decision);
}

/// No snapshot: the run waits for the start that was asked for.
void Service::started(const std::string& run, const nlohmann::json& answer,
                      std::shared_ptr<const AcquisitionSnapshot> snapshot) {
    if (!lifecycle_.started(run).accept_start) return;
    if (snapshot) {
        run_.start = std::move(snapshot);
        run_.waiting = false;
        show_change();  // with the ledger of the run, which a quick client asks for
        note_start();
    }
    run_.start_asked.reset();
    if (start_reply_) std::exchange(start_reply_, {})->result(answer);
    callbacks_.on_status();
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
    files_.note_start(*run_.open);
}

void Service::stop(StopRequest request, Reply reply) {
    const std::uint64_t latest =
        reading().acquisition->watermark + ticks_of(longest_wait_for_stop_s, *setting_.scanner);
    const RunDecision decision = lifecycle_.stop_asked(request.run, request.stop_ticks, latest);
    if (!decision.refusal.empty()) return reply.error(rpc_refused, decision.refusal);
    stop_replies_.push_back(std::move(reply));
    end_run(decision);
}

void Service::shut_down(const std::string& reason, std::function<void()> done) {
    when_idle_.push_back(std::move(done));
    const RunDecision decision = lifecycle_.shut_down(reason);
    end_run(decision);
    rest(decision);
}

void Service::end_run(const RunDecision& decision) {
    if (!decision.end_run) return;
    show_phase();
    log_info("run {} stopping: {}", lifecycle_.run(), lifecycle_.end_reason());
    acquisition_.end_run(lifecycle_.end_reason(), lifecycle_.end_ticks());
}

void Service::run_finished(FinishedRun finished) {
    boost::asio::post(
        io_, [this, shared = std::make_shared<FinishedRun>(std::move(finished))] { this->finished(shared); });
}

void Service::finished(const std::shared_ptr<FinishedRun>& finished) {
    const RunEnd& end = finished->end;
    const RunDecision decision = lifecycle_.finished(end.never_began);
    if (decision.ended_itself) log_info("run {} stopping: {}", lifecycle_.run(), end.reason);
    run_.open = nullptr;
    run_.waiting = false;
    noted_start_.reset();
    if (decision.finalise) {
        run_.closing = finished->run.get();
        run_.last_ledger = end.ledger;
        run_.closing->complete(*run_.last_ledger);
    }
    run_.start_asked.reset();
    show_change();
    if (decision.refuse_start) refuse_start(end.reason);
    if (decision.finalise) files_.finalise(finished, [this](const RunResult& result) { finalised(result); });
    if (decision.discard) files_.discard(finished, [this](const RunResult& result) { discarded(result); });
}

void Service::finalised(const RunResult& result) {
    log_result(result, *setting_.configuration);
    run_.start.reset();
    run_.last_id = result.id;
    run_.last_ledger = result.ledger;
    run_.ended = ended_run(result);
    run_gone(result);
    const RunDecision decision = lifecycle_.finalised(result.failed());
    if (!result.failure.empty()) find_interrupted_runs();  // run.json may not be final
    monitor_.assess(run_);
    rest(decision);
}

void Service::discarded(const RunResult& result) {
    log_info("run {} did not begin: {}", result.id, result.reason);
    refuse_start(result.reason);
    run_gone(result);
    rest(lifecycle_.discarded());
}

/// The files of the run are closed or removed.
void Service::run_gone(const RunResult& result) {
    set_log_run("");
    run_.closing = nullptr;
    run_.current.reset();
    show_change();
    note_failure();
    for (const Reply& reply : std::exchange(stop_replies_, {}))
        reply.result(stop_answer(result, *setting_.configuration));
    callbacks_.on_status();
}

/// Unless it has been answered.
void Service::refuse_start(const std::string& why) {
    if (start_reply_) std::exchange(start_reply_, {})->error(rpc_refused, why);
}

/// What follows when there is no run any more.
void Service::rest(const RunDecision& decision) {
    show_phase();
    if (decision.now_idle) {
        for (const auto& done : std::exchange(when_idle_, {}))
            done();
    }
    if (decision.report_failure) callbacks_.on_failure();
    if (decision.take_calibration) take_calibration([](const std::string& /*logged*/) {});
}

/// The pipeline may have failed.
void Service::note_failure() {
    const std::string& why = reading().acquisition->failure;
    if (!why.empty()) rest(lifecycle_.pipeline_failed(why));
}

void Service::set_calibration(std::optional<NewCalibration> next,
                              std::function<void(const std::string& failure)> done) {
    calibration_.offer(std::move(next));
    run_.next_calibration = calibration_.waiting();
    shown_.reset();
    if (lifecycle_.calibration_offered(run_.next_calibration.has_value()).take_calibration)
        return take_calibration(std::move(done));
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

void Service::mark(std::string text, Reply reply) {
    if (run_.open == nullptr || !run_.current)
        return reply.error(rpc_refused, "no run is in progress: there is nothing to mark");
    RunMarks& marks = run_.current->marks;
    if (marks.count >= max_marks) {
        return reply.error(rpc_refused, fmt::format("run {} has {} marks already, and can have no more",
                                                    run_.current->id, marks.count));
    }
    ++marks.count;
    Mark made{std::chrono::system_clock::now(), detector_time_now(), std::move(text)};
    files_.mark(*run_.open, made, [this, run = run_.current->id, made, reply](const std::string& failure) {
        marked(run, made, reply, failure);
    });
}

/// On which the sources agree; absent before the data of the run.
std::optional<std::uint64_t> Service::detector_time_now() const {
    const auto snapshot = acquisition_.snapshot();
    if (!snapshot->run_start) return {};
    const std::chrono::duration<double> since = std::chrono::steady_clock::now() - snapshot->taken;
    return snapshot->sources.reference.value_or(snapshot->watermark) +
           ticks_of(since.count(), *setting_.scanner);
}

void Service::marked(const std::string& run, const Mark& made, const Reply& reply,
                     const std::string& failure) {
    const bool current = run_.current && run_.current->id == run;
    if (!failure.empty()) {
        if (current) --run_.current->marks.count;
        return reply.error(rpc_internal_error, "the mark is not on the disk: " + failure);
    }
    log_info("run {}: mark: {}", run, made.text);
    if (current) run_.current->marks.add(made);
    shown_.reset();
    nlohmann::json answer = to_json(made);
    answer["run"] = run;
    reply.result(answer);
    callbacks_.on_status();
}

// What the status shows.

void Service::schedule_tick() {
    timer_.expires_after(Monitor::interval);
    timer_.async_wait([this](boost::system::error_code error) {
        if (error) return;
        tick();
        schedule_tick();
    });
}

void Service::tick() {
    space_.look(setting_.configuration->data_dir);
    monitor_.observe(run_);
    shown_.reset();
    note_start();
    note_failure();
    callbacks_.on_status();
}

/// A fault of the detector need not wait for the next tick.
void Service::second_measured() {
    show_change();
    if (monitor_.assess(run_)) callbacks_.on_status();
}

void Service::ask_peer() {
    const auto url = config::http_url_from(setting_.configuration->peer.url);
    if (!url) return;  // there is none: the configuration was checked
    peer_.emplace(*url, [this](PeerAnswer answer) {
        boost::asio::post(io_,
                          [this, answer = std::move(answer)]() mutable { heard_peer(std::move(answer)); });
    });
}

void Service::heard_peer(PeerAnswer answer) {
    monitor_.hear_peer(std::move(answer));
    show_change();
    if (monitor_.assess(run_)) callbacks_.on_status();
}

/// The state of the runs has changed: reads the counters, and makes the next status anew.
void Service::show_change() {
    show_phase();
    monitor_.read(run_);
}

void Service::show_phase() {
    run_.daemon = state_of(lifecycle_.phase());
    shown_.reset();
}

std::shared_ptr<const std::string> Service::status() {
    const nlohmann::json& shown = document();
    if (shown_->text == nullptr) {
        const auto start = std::chrono::steady_clock::now();
        shown_->text = std::make_shared<const std::string>(rpc_text(shown));
        shown_->cost += std::chrono::steady_clock::now() - start;
    }
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
        shown_->cost = Clock::now() - start;
    }
    return *shown_->document;
}

// Earlier runs.

void Service::runs(RunsRequest request, Reply reply) {
    files_.list(std::move(request), current_id(), std::move(reply));
}

void Service::ledger(std::optional<std::string> run, Reply reply) {
    const std::string current = current_id();
    if (!run) run = run_.current ? current : run_.last_id;
    if (run != current) return files_.ledger(*run, current, std::move(reply));
    // The run in progress; without one, and before the first run, the ledger since the daemon started.
    nlohmann::json answer = {{"run", nullptr}, {"state", nullptr}, {"ledger", document().at("ledger")}};
    if (run_.current) {
        answer["run"] = current;
        answer["state"] = name_of(run_.daemon);
    }
    reply.result(answer);
}

void Service::acknowledge(std::string run, Reply reply) {
    files_.acknowledge(run, current_id(), reply);
    // After an error, this answer is ignored.
    find_interrupted_runs([reply, run] { reply.result({{"run", run}, {"state", "interrupted"}}); });
}

/// Calls `done` when the status shows them.
void Service::find_interrupted_runs(std::function<void()> done) {
    files_.find_interrupted(current_id(),
                            [this, done = std::move(done)](std::optional<std::vector<InterruptedRun>> found) {
                                if (found) run_.interrupted = *std::move(found);
                                leave_out_current();
                                monitor_.assess(run_);
                                shown_.reset();
                                if (done) done();
                            });
}

/// The files of the run in progress may have been found before the run was known here.
void Service::leave_out_current() {
    std::erase_if(run_.interrupted, [&](const InterruptedRun& found) { return found.id == current_id(); });
}

}  // namespace petacq::daemon
