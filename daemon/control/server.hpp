// The control socket: JSON-RPC 2.0, one message per line, over a Unix stream socket.
//
// The server reads, checks and answers requests, and sends the status to subscribers. A ControlHandler
// carries out the requests. docs/reference/control.md describes the protocol.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "config/configuration.hpp"
#include "daemon/control/reply.hpp"
#include "daemon/run/operator_data.hpp"

namespace boost::asio {
class io_context;
}  // namespace boost::asio

namespace petacq::daemon {

/// Parameters of `start`. The server has checked them, but not whether the run id can be used.
struct StartRequest {
    std::optional<std::string> run;            ///< run id; absent: the daemon names the run
    std::optional<double> duration_s;          ///< detector time; absent: until stopped
    std::optional<std::uint64_t> start_ticks;  ///< detector time; absent: now
    std::optional<std::uint64_t>
        stop_ticks;  ///< ticks at which the run ends; absent: after `duration_s`, or until stopped
    std::optional<std::string> note;
    OperatorData operator_data;
};

/// Checks the parameters of a `start`. Throws RpcError.
StartRequest start_request(const RpcCall& call);

/// Parameters of `stop`.
struct StopRequest {
    std::optional<std::string> run;           ///< refused if another run is in progress; absent: any
    std::optional<std::uint64_t> stop_ticks;  ///< detector time; absent: now
};

/// Checks the parameters of a `stop`. Throws RpcError.
StopRequest stop_request(const RpcCall& call);

/// The text of a `mark`, checked. Throws RpcError.
std::string mark_text(const RpcCall& call);

/// Parameters of `runs`.
struct RunsRequest {
    std::size_t limit = 100;            ///< largest number of runs; the latest ones are listed
    std::optional<std::string> before;  ///< only runs that started before this one
};

/// Parameters of `history`.
struct HistoryRequest {
    std::optional<std::chrono::system_clock::time_point> since;  ///< absent: a day ago
    std::optional<std::chrono::system_clock::time_point> until;  ///< absent: now
};

/// Its functions are called in the thread that runs the io_context, and must not block. An exception becomes
/// an internal error for the client.
class ControlHandler {
  public:
    ControlHandler() = default;
    ControlHandler(const ControlHandler&) = delete;
    ControlHandler& operator=(const ControlHandler&) = delete;
    virtual ~ControlHandler() = default;

    virtual void start(StartRequest request, Reply reply) = 0;
    /// Answered when the run is finalised, which may take seconds.
    virtual void stop(StopRequest request, Reply reply) = 0;
    /// The status document as JSON text; the same object until the document changes, so that many
    /// subscribers cost little.
    virtual std::shared_ptr<const std::string> status() = 0;
    /// Lists the runs on disk. Reading them may take long.
    virtual void runs(RunsRequest request, Reply reply) = 0;
    /// The ledger of a run on disk; without a name, that of the run in progress or of the last one.
    virtual void ledger(std::optional<std::string> run, Reply reply) = 0;
    /// What happened: events, rates and runs.
    virtual void history(HistoryRequest request, Reply reply) = 0;
    /// Reads the configuration and the calibration again.
    virtual void reload(Reply reply) = 0;
    /// An operator notes something in the run in progress. Answered when it is on the disk.
    virtual void mark(std::string text, Reply reply) = 0;
    /// An operator has seen that the run was interrupted.
    virtual void acknowledge(std::string run, Reply reply) = 0;
};

/// A snapshot; all numbers but `clients` only grow.
struct ControlStatistics {
    std::uint64_t clients = 0;   ///< connected now
    std::uint64_t accepted = 0;  ///< connections served
    std::uint64_t refused = 0;   ///< connections refused: max_clients
    std::uint64_t requests = 0;  ///< calls, including those answered with an error
    std::uint64_t errors = 0;    ///< error answers
    std::uint64_t dropped =
        0;  ///< clients disconnected by the server: request too long, not reading, or idle
    std::uint64_t skipped =
        0;  ///< status notifications omitted because the previous one was still in the queue
};

/// Serves clients from construction to close(). Construct it and call close() (or destroy it) in the thread
/// that runs `io`, or while no thread runs it; destroy it before `io`. The handler outlives it. Replies that
/// are answered later are ignored.
class ControlServer {
  public:
    /// A client that does not read one message within `stall_timeout` is disconnected. A group that does not
    /// exist is a warning in the log. Throws std::runtime_error if it cannot make the socket
    /// (daemon/system/sockets/listening_socket.hpp).
    ControlServer(boost::asio::io_context& io, ControlHandler& handler, config::Control options,
                  std::chrono::milliseconds stall_timeout = std::chrono::seconds(30));
    ControlServer(const ControlServer&) = delete;
    ControlServer& operator=(const ControlServer&) = delete;
    ~ControlServer();

    /// Sends the status to every subscriber at once: the last one before the daemon exits.
    void tell_subscribers();
    /// Removes the socket and disconnects all clients; answers already sent still reach them.
    void close();
    /// May be called from any thread.
    [[nodiscard]] ControlStatistics statistics() const;

  private:
    class Implementation;
    std::unique_ptr<Implementation> implementation_;
};

}  // namespace petacq::daemon
