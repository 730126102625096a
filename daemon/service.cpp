#include "daemon/service.hpp"

#include <boost/asio/post.hpp>

#include <utility>

#include "daemon/logging.hpp"
#include "daemon/problems.hpp"
#include "daemon/settings.hpp"

namespace petacq::daemon {

namespace {

constexpr std::chrono::seconds sample_interval{1};

const char* words[] = {"idle", "running", "stopping", "failed"};

/// The id of the source that a problem is about, if there is one.
std::optional<std::uint32_t> source_of(const Problem& problem, const HealthReading& reading) {
    const auto& sources = reading.now->sources.sources;
    const bool about_one = std::string_view(problem.code).starts_with("source_");
    const bool has_ids = reading.configuration->receive.framing != "bare";
    if (!about_one || !has_ids || problem.subject >= sources.size()) return std::nullopt;
    return sources[problem.subject].id;
}

}  // namespace

Service::Service(boost::asio::io_context& io, const RunSetting& setting, const net::BatchPool& pool,
                 std::uint64_t pipeline_bytes, std::vector<const net::Receiver*> receivers,
                 std::function<void()> on_failure)
    : io_(io),
      timer_(io),
      setting_(setting),
      pool_(pool),
      pipeline_bytes_(pipeline_bytes),
      receivers_(std::move(receivers)),
      on_failure_(std::move(on_failure)),
      run_list_(setting.configuration->data_dir) {}

Service::~Service() {
    if (finisher_.joinable()) finisher_.join();
}

void Service::attach(Acquisition& acquisition) {
    acquisition_ = &acquisition;
    take_sample();
    sample_before_ = sample_tick_ = sample_;
    daemon_began_ = sample_.acquisition;
    look_around();
    tick();
}

void Service::take_sample() {
    sample_.taken = std::chrono::steady_clock::now();
    sample_.acquisition = acquisition_->snapshot();
}

std::vector<StageProgress> Service::stage_progress() const {
    std::vector<StageProgress> stages;
    for (std::size_t i = 0; i < receivers_.size(); ++i) {
        const net::ReceiverCounters& c = receivers_[i]->counters();
        const auto polls = c.polls.value();
        const auto read_at = std::chrono::nanoseconds(static_cast<std::int64_t>(c.cpu_read_ns.value()));
        // Not before it has been started.
        stages.push_back({"receiver " + std::to_string(i), polls, polls != 0,
                          static_cast<double>(c.cpu_ns.value()) * 1e-9,
                          std::chrono::steady_clock::time_point(read_at)});
    }
    const AcquisitionProgress& p = acquisition_->progress();
    const auto snapshot = acquisition_->snapshot();
    const auto collected = p.collected.value();
    stages.push_back(
        {"acquisition", p.turns.value(), p.turns.value() != 0, snapshot->busy_s, snapshot->taken});
    stages.push_back(
        {"pipeline", collected, p.submitted.value() > collected, snapshot->pipeline_busy_s, snapshot->taken});
    if (finishing_) {
        finishing_->run->add_progress(stages);
        finishing_->run->add_end_progress(stages);
    } else if (current_ && current_->run) {
        current_->run->add_progress(stages);
    } else {
        stages.push_back({"writer", 0, false, 0, sample_.taken});
    }
    return stages;
}

/// What is looked at once a second, and costs more than reading counters.
void Service::look_around() {
    progress_.observe(stage_progress(), std::chrono::steady_clock::now());
    if (current_ && current_->run) {
        const auto capture = current_->run->capture_status();
        const std::uint64_t raw = capture ? capture->counts.bytes : 0;
        write_rate_.observe(current_->run->written().bytes + raw, sample_.taken);
    } else {
        write_rate_.clear();
    }
    disk_ = {disk_space(setting_.configuration->data_dir), write_rate_.per_second()};
    if (randoms_) randoms_->observe(*sample_.acquisition, run_began_ ? *run_began_ : *daemon_began_);
}

void Service::assess() {
    HealthReading r;
    r.configuration = setting_.configuration.get();
    r.scanner = setting_.scanner;
    r.now = sample_.acquisition.get();
    r.before = sample_before_.acquisition.get();
    r.taken = sample_.taken;
    r.last_run_failure = last_run_failure_;
    if (current_ && current_->run) {
        r.written = current_->run->written();
        r.latency = current_->run->latency();
        r.capture = current_->run->capture_status();
    }
    r.stalls_before = stalls_before_;
    r.capture_dropped_before = capture_dropped_before_;
    r.disk = disk_;
    r.stages = progress_.states();
    for (const HealthChange& change : health_.observe(find_problems(r, health_), sample_.taken)) {
        const Problem& problem = change.reason.problem;
        const auto source = source_of(problem, r);
        if (!change.raised) {
            const std::chrono::duration<double> lasted = sample_.taken - change.reason.since;
            log_message(LogLevel::info,
                        fmt::format("recovered: {} (after {:.1f} s)", problem.what, lasted.count()), source);
        } else if (problem.failed) {
            log_message(LogLevel::error, "failed: " + problem.message(), source);
        } else {
            log_message(LogLevel::warning, "degraded: " + problem.message(), source);
        }
    }
    stalls_before_ = r.written ? r.written->stalls : 0;
    capture_dropped_before_ = r.capture ? r.capture->counts.dropped : 0;
}

void Service::tick() {
    timer_.expires_after(sample_interval);
    timer_.async_wait([this](boost::system::error_code error) {
        if (error) return;
        sample_before_ = std::move(sample_tick_);
        take_sample();
        sample_tick_ = sample_;
        look_around();
        if (!failed_ && !sample_.acquisition->failure.empty()) {
            failed_ = true;
            if (state_ == State::idle) {
                state_ = State::failed;
                on_failure_();
            }
        }
        assess();
        if (on_status_) on_status_(status());
        tick();
    });
}

void Service::start(StartRequest request, Reply reply) {
    if (shutting_down_) return reply.error(rpc_refused, "the daemon is shutting down");
    if (state_ == State::failed || failed_) {
        return reply.error(rpc_refused, "the pipeline has failed (" + sample_.acquisition->failure +
                                            "); restart the daemon");
    }
    if (state_ != State::idle) {
        return reply.error(rpc_refused,
                           std::string("run ") + current_->status.id +
                               (state_ == State::running ? " is in progress" : " is being finalised") +
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
    state_ = State::running;
    Current current;
    current.run = run.get();
    current.status = {run->id(), wanted.note, utc_text(run->started()), wanted.duration_s, {}, {}, {}};
    const std::string path = run->path().string();
    set_log_run(run->id());
    log_info("run {} started in {}", run->id(), path);
    nlohmann::json answer = {{"run", run->id()}, {"path", path}, {"start_utc", current.status.start_utc}};
    current_ = std::move(current);
    RunInterval interval;
    if (wanted.duration_s) interval.duration = ticks_of(*wanted.duration_s, *setting_.scanner);
    acquisition_->begin_run(std::move(run), interval, [this, reply, answer = std::move(answer)] {
        boost::asio::post(io_, [this, began = acquisition_->snapshot()] { run_began_ = began; });
        reply.result(answer);
    });
}

void Service::stop(Reply reply) {
    if (!current_) return reply.error(rpc_refused, "no run is in progress");
    waiting_.push_back(std::move(reply));
    if (state_ == State::running) {
        stop_run("stopped by operator");
    }
}

void Service::stop_run(const std::string& reason) {
    state_ = State::stopping;
    log_info("run {} stopping: {}", current_->status.id, reason);
    acquisition_->end_run(reason);
}

void Service::shut_down(const std::string& reason, std::function<void()> done) {
    shutting_down_ = true;
    if (!current_) return done();
    when_idle_.push_back(std::move(done));
    if (state_ == State::running) {
        stop_run(reason);
    }
}

void Service::run_finished(FinishedRun finished) {
    auto shared = std::make_shared<FinishedRun>(std::move(finished));
    boost::asio::post(io_, [this, shared] {
        if (state_ == State::running)
            log_info("run {} stopping: {}", current_->status.id, shared->end.reason);
        state_ = State::stopping;
        current_->run = nullptr;
        if (finisher_.joinable()) finisher_.join();
        finishing_ = shared;
        finisher_ = std::thread([this, shared] {
            std::string failure;
            const auto seconds =
                std::chrono::duration<double>(std::chrono::system_clock::now() - shared->run->started())
                    .count();
            const Ledger ledger = shared->run->finish(shared->end, failure);
            const std::string id = shared->run->id();
            const auto capture = shared->run->capture_status();
            boost::asio::post(io_, [this, id, ledger, end = shared->end, failure, capture, seconds] {
                finalised(id, ledger, end, failure, capture, seconds);
            });
        });
    });
}

void Service::finalised(const std::string& id, const Ledger& ledger, const RunEnd& end,
                        const std::string& failure, const std::optional<CaptureStatus>& capture,
                        double seconds) {
    finishing_.reset();
    last_run_id_ = id;
    last_run_ledger_ = ledger;
    last_run_failure_ = failure;
    const std::vector<std::string> open = ledger.open_identities();
    nlohmann::json answer = {{"run", id},
                             {"reason", end.reason},
                             {"seconds", seconds},
                             {"prompts", ledger.pairs.prompts_found},
                             {"delayeds", ledger.pairs.delayeds_found},
                             {"ledger_closed", open.empty()},
                             {"ledger", to_json(ledger)}};
    answer["failure"] = failure.empty() ? nlohmann::json() : nlohmann::json(failure);
    answer["capture"] = to_json(capture);
    if (!failure.empty()) {
        log_error("run {} failed: {}", id, failure);
    } else {
        log_info("run {} complete ({}): {} prompts, {} delayeds", id, end.reason, ledger.pairs.prompts_found,
                 ledger.pairs.delayeds_found);
    }
    if (capture && capture->counts.dropped > 0) {
        log_warning("run {}: the raw capture lacks {} of {} datagrams", id, capture->counts.dropped,
                    capture->counts.offered);
    }
    for (const std::string& identity : open)
        log_error("run {}: the ledger does not close: {}", id, identity);
    if (!open.empty() && last_run_failure_.empty()) last_run_failure_ = "the ledger does not close";
    set_log_run("");
    current_.reset();
    run_began_.reset();
    take_sample();
    assess();
    failed_ = failed_ || !sample_.acquisition->failure.empty();
    state_ = failed_ ? State::failed : State::idle;
    for (const Reply& reply : std::exchange(waiting_, {}))
        reply.result(answer);
    for (const auto& done : std::exchange(when_idle_, {}))
        done();
    if (failed_) on_failure_();
}

void Service::runs(RunsRequest request, Reply reply) {
    const std::string current = current_ ? current_->status.id : "";
    boost::asio::post(files_, [this, request = std::move(request), reply, current] {
        try {
            reply.result(run_list_.page(request.limit, request.before, current));
        } catch (const RunDirectoryError& error) {
            reply.error(rpc_refused, error.what());
        } catch (const std::exception& error) {
            reply.error(rpc_internal_error, error.what());
        }
    });
}

void Service::ledger(std::optional<std::string> run, Reply reply) {
    const std::string current = current_ ? current_->status.id : "";
    if (!run) run = current_ ? current : last_run_id_;
    if (run == current) {  // in progress, or there was no run yet
        const auto word = [&](const char* text) {
            return current_ ? nlohmann::json(text) : nlohmann::json();
        };
        return reply.result({{"run", word(current.c_str())},
                             {"state", word(words[static_cast<int>(state_)])},
                             {"ledger", status().at("ledger")}});
    }
    boost::asio::post(files_, [this, run = *run, reply, current] {
        try {
            reply.result(run_list_.ledger(run, current));
        } catch (const RunDirectoryError& error) {
            reply.error(rpc_refused, error.what());
        } catch (const std::exception& error) {
            reply.error(rpc_internal_error, error.what());
        }
    });
}

std::shared_ptr<const gpu::ExpectedRandoms> Service::expected_randoms() const {
    return randoms_ ? randoms_->recent() : nullptr;
}

nlohmann::json Service::status() {
    // A sample older than the interval would hide what a quick client has just done.
    if (std::chrono::steady_clock::now() - sample_.taken > sample_interval / 5) take_sample();
    StatusInput in;
    in.state = words[static_cast<int>(state_)];
    in.backend = setting_.backend;
    in.backend_choice = setting_.backend_choice;
    in.uptime_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
    in.configuration = setting_.configuration.get();
    in.scanner = setting_.scanner;
    for (const net::Receiver* receiver : receivers_)
        in.ports.push_back(receiver->port());
    in.now = &sample_;
    in.before = &sample_before_;
    if (current_) {
        in.run = current_->status;
        if (current_->run) {
            in.run->written = current_->run->written();
            in.run->latency = current_->run->latency();
            in.run->capture = current_->run->capture_status();
        }
    }
    in.began = run_began_ ? run_began_ : daemon_began_;
    if (randoms_) {
        in.expected_randoms = expected_randoms();
        in.average_randoms_per_s = randoms_->average();
    }
    in.health = &health_;
    in.disk = disk_;
    in.stages = progress_.states();
    in.last_run_ledger = last_run_ledger_;
    in.free_batches = pool_.free_count();
    in.batches = pool_.count();
    in.pool_bytes = pool_.count() * pool_.batch_bytes();
    in.pipeline_bytes = pipeline_bytes_;
    const LogStatistics log = log_statistics();
    in.log_overrun = log.overrun;
    in.log_unwritten = log.unwritten;
    const config::ListMode& listmode = setting_.configuration->listmode;
    in.block_buffer_bytes =
        std::uint64_t{listmode.queue_blocks} * listmode.block_bytes * (listmode.write_singles ? 2 : 1);
    return make_status(in);
}

}  // namespace petacq::daemon
