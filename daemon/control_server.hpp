// The control socket: JSON-RPC 2.0, one message per line, over a Unix stream socket.
//
// The server reads, checks and answers requests, and sends status to subscribers. What a start or a stop does
// is the business of its ControlHandler. docs/control.md describes the protocol.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "daemon/json_rpc.hpp"

namespace boost::asio {
class io_context;
}  // namespace boost::asio

namespace petacq::daemon {

/// Parameters of `start`. The server has checked types only, and that the duration is finite and above 0.
struct StartRequest {
    std::optional<std::string> run;    ///< run id; absent: the daemon names the run
    std::optional<double> duration_s;  ///< detector time; absent: until stopped
    std::optional<std::string> note;
};

/// Parameters of `runs`.
struct RunsRequest {
    std::size_t limit = 100;            ///< at most so many, the latest
    std::optional<std::string> before;  ///< of those that began before this run
};

/// How a request ended: a result, or an error.
struct Answer {
    nlohmann::json result;
    std::optional<RpcError> error;
};

/// The promise of exactly one answer. Copies share it: the first result() or error() of any copy, from any
/// thread, is delivered, and later ones do nothing. When the last copy goes unanswered, an internal error is
/// delivered, so that nobody waits for ever.
class Reply {
  public:
    /// `deliver` is called once, in the thread that answers, and must not throw.
    explicit Reply(std::function<void(Answer)> deliver);
    void result(nlohmann::json document) const;
    /// `code`: rpc_refused for what is not possible now.
    void error(int code, const std::string& message) const;

  private:
    struct State;
    std::shared_ptr<State> state_;
};

/// Called in the thread that runs the io_context; must not block. An exception becomes an internal error for
/// the client.
class ControlHandler {
  public:
    ControlHandler() = default;
    ControlHandler(const ControlHandler&) = delete;
    ControlHandler& operator=(const ControlHandler&) = delete;
    virtual ~ControlHandler() = default;

    virtual void start(StartRequest request, Reply reply) = 0;
    /// Answered when the run is finalised, which may take seconds.
    virtual void stop(Reply reply) = 0;
    virtual nlohmann::json status() = 0;
    /// The runs on disk; reading them may take long.
    virtual void runs(RunsRequest request, Reply reply) = 0;
    /// The ledger of a run on disk; without a name, of the run in progress or the last one.
    virtual void ledger(std::optional<std::string> run, Reply reply) = 0;
};

struct ControlOptions {
    std::filesystem::path socket;
    /// Mode and group of the socket: who may connect, and so look. The members of the group, root and the
    /// daemon's own user may control, too (daemon/control_access.hpp). One that does not exist: a warning.
    mode_t socket_mode = 0660;
    std::string group = "petacq";
    std::uint32_t max_clients = 128;
    std::uint64_t max_request_bytes = 1U << 20;
    std::uint64_t send_buffer_bytes = 4U << 20;  ///< for each client; one with more waiting is disconnected
    /// A client that does not take one message within this time is disconnected.
    std::chrono::milliseconds stall_timeout{30'000};
};

/// A snapshot; all but `clients` only grow.
struct ControlStatistics {
    std::uint64_t clients = 0;   ///< connected now
    std::uint64_t accepted = 0;  ///< connections served
    std::uint64_t refused = 0;   ///< connections turned away: max_clients
    std::uint64_t requests = 0;  ///< calls, those that are answered with an error included
    std::uint64_t errors = 0;    ///< error answers
    std::uint64_t dropped = 0;   ///< clients disconnected by the server: too long a request, or did not read
    std::uint64_t skipped = 0;   ///< status notifications left out since the one before was still being sent
};

/// Serves clients from construction to close(). Construct it and call close() (or destroy it) in the thread
/// that runs `io`, or while nobody runs it; destroy it before `io`. The handler outlives it. Replies may
/// still be answered after that; they go nowhere.
class ControlServer {
  public:
    /// Throws std::runtime_error when the socket cannot be had (daemon/control_socket.hpp).
    ControlServer(boost::asio::io_context& io, ControlHandler& handler, ControlOptions options);
    ControlServer(const ControlServer&) = delete;
    ControlServer& operator=(const ControlServer&) = delete;
    ~ControlServer();

    /// Sends the status to every subscriber now: how the daemon ends.
    void tell_subscribers();
    /// Removes the socket and disconnects everybody; answers already sent reach their clients.
    void close();
    /// Any thread.
    [[nodiscard]] ControlStatistics statistics() const;

  private:
    class Implementation;
    std::shared_ptr<Implementation> implementation_;
};

}  // namespace petacq::daemon
