// The files of runs, for the control thread, which touches no file itself because a disk may take any time.
//
// Two threads do the work: one creates and closes the files of runs, the other one reads those of earlier
// runs.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "daemon/acquisition/run_control.hpp"
#include "daemon/control/server.hpp"
#include "daemon/run/interrupted.hpp"
#include "daemon/run/list.hpp"
#include "daemon/run/run.hpp"
#include "daemon/service/run_result.hpp"

namespace petacq::daemon {

/// The thread that runs the io_context calls all functions. What they take as `done` is called in that thread
/// later; replies are sent by the threads of this class.
class RunFiles {
  public:
    /// Both references outlive this object.
    RunFiles(boost::asio::io_context& io, const RunSetting& setting);
    /// Closes the files of runs that are to be finalised, and leaves what else is still to be done.
    ~RunFiles();
    RunFiles(const RunFiles&) = delete;
    RunFiles& operator=(const RunFiles&) = delete;

    // One thread carries out these calls, one after another.

    /// `done` gets the run, or nullptr and the reason why there is none.
    void create(RunRequest request,
                std::function<void(std::unique_ptr<Run> run, const std::string& failure)> done);
    /// The data of the run have begun.
    void note_start(Run& run);
    /// `done` gets the reason why the mark is not on the disk, or "".
    void mark(Run& run, Mark made, std::function<void(const std::string& failure)> done);
    /// Closes the files of the run, and lets it go after `done`.
    void finalise(std::shared_ptr<FinishedRun> finished, std::function<void(const RunResult&)> done);
    /// Removes the run, which never began.
    void discard(std::shared_ptr<FinishedRun> finished, std::function<void(const RunResult&)> done);

    // Another thread carries out these. `current`: the id of the run in progress, which they leave out; or
    // empty.

    void list(RunsRequest request, const std::string& current, Reply reply);
    void ledger(const std::string& run, const std::string& current, Reply reply);
    /// Answers an error alone; the caller looks for interrupted runs afterwards, and then answers.
    void acknowledge(const std::string& run, const std::string& current, Reply reply);
    /// Absent: they could not be read, which is logged.
    void find_interrupted(const std::string& current,
                          std::function<void(std::optional<std::vector<InterruptedRun>>)> done);
    void find_last(std::function<void(std::optional<EndedRun>)> done);

  private:
    boost::asio::io_context& io_;
    const RunSetting& setting_;
    RunList list_;  ///< used by the thread of earlier_ alone
    // One thread each.
    boost::asio::thread_pool runs_{1};
    boost::asio::thread_pool earlier_{1};
};

}  // namespace petacq::daemon
