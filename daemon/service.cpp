#include "daemon/service.hpp"

#include <boost/asio/post.hpp>

#include <utility>

#include "daemon/logging.hpp"
#include "daemon/settings.hpp"

namespace petacq::daemon {

namespace {

constexpr std::chrono::seconds sample_interval{1};

const char* words[] = {"idle", "running", "stopping", "failed"};

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
      on_failure_(std::move(on_failure)) {}

Service::~Service() {
    if (finisher_.joinable()) finisher_.join();
}

void Service::attach(Acquisition& acquisition) {
    acquisition_ = &acquisition;
    take_sample();
    sample_before_ = sample_;
    tick();
}

void Service::take_sample() {
    sample_.taken = std::chrono::steady_clock::now();
    sample_.acquisition = acquisition_->snapshot();
    sample_.bytes_received = 0;
    for (const net::Receiver* receiver : receivers_)
        sample_.bytes_received += receiver->counters().bytes_received.value();
}

void Service::tick() {
    timer_.expires_after(sample_interval);
    timer_.async_wait([this](boost::system::error_code error) {
        if (error) return;
        sample_before_ = std::move(sample_);
        take_sample();
        const std::uint64_t stalls = current_ && current_->run ? current_->run->written().stalls : 0;
        if (!failed_ && !sample_.acquisition->failure.empty()) {
            failed_ = true;
            if (state_ == State::idle) {
                state_ = State::failed;
                on_failure_();
            }
        }
        const nlohmann::json health = status().at("health");
        const std::string text = health.dump();
        if (text != last_health_) {
            if (health.at("state") == "ok") {
                if (!last_health_.empty()) log_info("health: ok");
            } else {
                log_warning("health: {}: {}", health.at("state").get<std::string>(),
                            health.at("reasons").dump());
            }
            last_health_ = text;
        }
        stalls_before_ = stalls;
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
    RunRequest wanted{request.run, request.duration_s, request.note.value_or("")};
    std::unique_ptr<Run> run;
    try {
        run = std::make_unique<Run>(setting_, wanted);
    } catch (const std::exception& e) {
        log_warning("start refused: {}", e.what());
        return reply.error(rpc_refused, e.what());
    }
    state_ = State::running;
    Current current;
    current.run = run.get();
    current.status = {run->id(), wanted.note, utc_text(run->started()), wanted.duration_s, {}};
    const std::string path = run->path().string();
    log_info("run {} started in {}", run->id(), path);
    nlohmann::json answer = {{"run", run->id()}, {"path", path}, {"start_utc", current.status.start_utc}};
    current_ = std::move(current);
    std::optional<std::uint64_t> duration;
    if (wanted.duration_s) duration = ticks_of(*wanted.duration_s, *setting_.scanner);
    acquisition_->begin_run(std::move(run), duration,
                            [reply, answer = std::move(answer)] { reply.result(answer); });
}

void Service::stop(Reply reply) {
    if (!current_) return reply.error(rpc_refused, "no run is in progress");
    waiting_.push_back(std::move(reply));
    if (state_ == State::running) {
        state_ = State::stopping;
        acquisition_->end_run("stopped by operator");
    }
}

void Service::shut_down(const std::string& reason, std::function<void()> done) {
    shutting_down_ = true;
    if (!current_) return done();
    when_idle_.push_back(std::move(done));
    if (state_ == State::running) {
        state_ = State::stopping;
        acquisition_->end_run(reason);
    }
}

void Service::run_finished(FinishedRun finished) {
    auto shared = std::make_shared<FinishedRun>(std::move(finished));
    boost::asio::post(io_, [this, shared] {
        state_ = State::stopping;
        current_->run = nullptr;
        if (finisher_.joinable()) finisher_.join();
        finisher_ = std::thread([this, shared] {
            std::string failure;
            const auto seconds =
                std::chrono::duration<double>(std::chrono::system_clock::now() - shared->run->started())
                    .count();
            const Ledger ledger = shared->run->finish(shared->end, failure);
            const std::string id = shared->run->id();
            shared->run.reset();
            boost::asio::post(io_, [this, id, ledger, end = shared->end, failure, seconds] {
                finalised(id, ledger, end, failure, seconds);
            });
        });
    });
}

void Service::finalised(const std::string& id, const Ledger& ledger, const RunEnd& end,
                        const std::string& failure, double seconds) {
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
    if (!failure.empty()) {
        log_error("run {} failed: {}", id, failure);
    } else {
        log_info("run {} complete ({}): {} prompts, {} delayeds", id, end.reason, ledger.pairs.prompts_found,
                 ledger.pairs.delayeds_found);
    }
    for (const std::string& identity : open)
        log_error("run {}: the ledger does not close: {}", id, identity);
    if (!open.empty() && last_run_failure_.empty()) last_run_failure_ = "the ledger does not close";
    current_.reset();
    take_sample();
    failed_ = failed_ || !sample_.acquisition->failure.empty();
    state_ = failed_ ? State::failed : State::idle;
    for (const Reply& reply : std::exchange(waiting_, {}))
        reply.result(answer);
    for (const auto& done : std::exchange(when_idle_, {}))
        done();
    if (failed_) on_failure_();
}

nlohmann::json Service::status() {
    // A sample older than the interval would hide what a quick client has just done.
    if (std::chrono::steady_clock::now() - sample_.taken > sample_interval / 5) {
        const StatusSample kept = sample_before_;
        take_sample();
        sample_before_ = kept;
    }
    StatusInput in;
    in.state = words[static_cast<int>(state_)];
    in.backend = setting_.backend;
    in.uptime_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
    in.configuration = setting_.configuration;
    in.scanner = setting_.scanner;
    for (const net::Receiver* receiver : receivers_)
        in.ports.push_back(receiver->port());
    in.now = &sample_;
    in.before = &sample_before_;
    if (current_) {
        in.run = current_->status;
        if (current_->run) in.run->written = current_->run->written();
        in.stalls_before = stalls_before_;
    }
    in.last_run_ledger = last_run_ledger_;
    in.last_run_failure = last_run_failure_;
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
