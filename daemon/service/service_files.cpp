// The service looks for runs on disk.
#include <boost/asio/post.hpp>
#include <nlohmann/json.hpp>
#include <utility>

#include "daemon/service/service.hpp"

namespace petacq::daemon {

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

/// The files of the run in progress may have been found before the run was known here.
void Service::leave_out_current() {
    if (!run_.current) return;
    std::erase_if(run_.interrupted,
                  [&](const InterruptedRun& found) { return found.id == run_.current->id; });
}

/// The strip says in the morning how the last run of the night ended, also after a restart of the daemon.
void Service::find_last_run() {
    boost::asio::post(files_, [this, data_dir = setting_.configuration->data_dir] {
        std::optional<EndedRun> found;
        try {
            found = last_ended_run(data_dir);
        } catch (const std::exception& error) {
            log_warning("the last run: {}", error.what());
        }
        boost::asio::post(io_, [this, found = std::move(found)] {
            if (run_.ended) return;
            run_.ended = found;
            monitor_.assess(run_);
            shown_.reset();
        });
    });
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
            leave_out_current();
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

}  // namespace petacq::daemon
