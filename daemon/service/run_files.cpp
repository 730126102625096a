#include "daemon/service/run_files.hpp"

#include <boost/asio/post.hpp>
#include <nlohmann/json.hpp>
#include <utility>

#include "daemon/system/logging.hpp"

namespace petacq::daemon {

namespace {

RunResult result_of(const FinishedRun& finished) {
    RunResult result;
    result.id = finished.run->id();
    result.began = !finished.end.never_began;
    result.reason = finished.end.reason;
    return result;
}

/// Answers the errors of `work`.
template <class Work>
void answer_errors(const Reply& reply, Work work) {
    try {
        work();
    } catch (const RunDirectoryError& error) {
        reply.error(rpc_refused, error.what());
    } catch (const std::exception& error) {
        reply.error(rpc_internal_error, error.what());
    }
}

/// What `find` returns; absent, and logged as `what`, if it cannot.
template <class Find>
auto found_or_logged(const char* what, Find find) -> decltype(std::optional(find())) {
    try {
        return find();
    } catch (const std::exception& error) {
        log_warning("{}: {}", what, error.what());
        return std::nullopt;
    }
}

}  // namespace

RunFiles::RunFiles(boost::asio::io_context& io, const RunSetting& setting)
    : io_(io), setting_(setting), list_(setting.configuration->data_dir) {}

RunFiles::~RunFiles() {
    runs_.join();
}

void RunFiles::create(RunRequest request,
                      std::function<void(std::unique_ptr<Run> run, const std::string& failure)> done) {
    boost::asio::post(runs_,
                      [this, setting = setting_, request = std::move(request), done = std::move(done)] {
                          // A handler must be copyable.
                          const auto run = std::make_shared<std::unique_ptr<Run>>();
                          std::string failure;
                          try {
                              *run = std::make_unique<Run>(setting, request);
                          } catch (const std::exception& e) {
                              failure = e.what();
                          }
                          boost::asio::post(io_, [run, failure, done] { done(std::move(*run), failure); });
                      });
}

void RunFiles::note_start(Run& run) {
    // The same thread closes the run, later.
    boost::asio::post(runs_, [&run] { run.note_start(); });
}

void RunFiles::mark(Run& run, Mark made, std::function<void(const std::string& failure)> done) {
    // As above.
    boost::asio::post(runs_, [this, &run, made = std::move(made), done = std::move(done)] {
        std::string failure;
        try {
            run.add_mark(made);
        } catch (const std::exception& error) {
            failure = error.what();
        }
        boost::asio::post(io_, [done, failure] { done(failure); });
    });
}

void RunFiles::finalise(std::shared_ptr<FinishedRun> finished, std::function<void(const RunResult&)> done) {
    boost::asio::post(runs_, [this, finished = std::move(finished), done = std::move(done)] {
        RunResult result = result_of(*finished);
        Run& run = *finished->run;
        result.seconds =
            static_cast<double>(finished->end.covered.ticks()) * setting_.scanner->tick_ps * 1e-12;
        result.ledger = run.finish(finished->end, result.failure);
        result.verdict = run.verdict();
        result.capture = run.capture_status();
        boost::asio::post(io_, [this, finished, done, result] {
            done(result);
            boost::asio::post(runs_, [finished] { finished->run.reset(); });
        });
    });
}

void RunFiles::discard(std::shared_ptr<FinishedRun> finished, std::function<void(const RunResult&)> done) {
    boost::asio::post(runs_, [this, finished = std::move(finished), done = std::move(done)] {
        RunResult result = result_of(*finished);
        finished->run->discard();
        finished->run.reset();
        boost::asio::post(io_, [done, result = std::move(result)] { done(result); });
    });
}

void RunFiles::list(RunsRequest request, const std::string& current, Reply reply) {
    boost::asio::post(earlier_, [this, request = std::move(request), current, reply = std::move(reply)] {
        answer_errors(reply, [&] { reply.result(list_.page(request.limit, request.before, current)); });
    });
}

void RunFiles::ledger(const std::string& run, const std::string& current, Reply reply) {
    boost::asio::post(earlier_, [this, run, current, reply = std::move(reply)] {
        answer_errors(reply, [&] { reply.result(list_.ledger(run, current)); });
    });
}

void RunFiles::acknowledge(const std::string& run, const std::string& current, Reply reply) {
    boost::asio::post(earlier_,
                      [data_dir = setting_.configuration->data_dir, run, current, reply = std::move(reply)] {
                          answer_errors(reply, [&] {
                              acknowledge_interrupted(data_dir, run, current);
                              log_info("run {}: an operator has acknowledged that it was interrupted", run);
                          });
                      });
}

void RunFiles::find_interrupted(const std::string& current,
                                std::function<void(std::optional<std::vector<InterruptedRun>>)> done) {
    // There may be many runs, on a slow disk.
    boost::asio::post(
        earlier_, [this, data_dir = setting_.configuration->data_dir, current, done = std::move(done)] {
            auto found = found_or_logged("interrupted runs",
                                         [&] { return daemon::find_interrupted(data_dir, current); });
            boost::asio::post(io_, [done, found = std::move(found)] { done(found); });
        });
}

void RunFiles::find_last(std::function<void(std::optional<EndedRun>)> done) {
    boost::asio::post(earlier_, [this, data_dir = setting_.configuration->data_dir, done = std::move(done)] {
        auto last = found_or_logged("the last run", [&] { return last_ended_run(data_dir); });
        boost::asio::post(io_, [done, last = std::move(last)] { done(last); });
    });
}

}  // namespace petacq::daemon
