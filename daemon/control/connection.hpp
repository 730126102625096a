// One client of the control server: reads lines, carries out the calls in them, and sends answers and
// notifications. Everything here runs in the thread of the io_context.
#pragma once

#include <array>
#include <atomic>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <deque>
#include <exception>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

#include "daemon/control/access.hpp"
#include "daemon/control/gate.hpp"
#include "daemon/control/server.hpp"
#include "daemon/system/logging.hpp"
#include "net/base/counter.hpp"

namespace petacq::daemon {

class ControlConnection;

/// Shared by the server and its connections; each of them keeps it alive.
struct ControlContext {
    ControlContext(boost::asio::io_context& io, ControlHandler& control_handler,
                   config::Control control_options, std::chrono::milliseconds client_stall_timeout)
        : handler(control_handler),
          options(std::move(control_options)),
          stall_timeout(client_stall_timeout),
          access{options.group, group_id(options.group)},
          gate(std::make_shared<ControlGate>(io)) {}

    ControlHandler& handler;
    const config::Control options;
    const std::chrono::milliseconds stall_timeout;
    const ControlAccess access;
    const std::shared_ptr<ControlGate> gate;
    /// The open connections. This set keeps them alive while they wait for a reply.
    std::unordered_set<std::shared_ptr<ControlConnection>> connections;
    /// The line that notifies of the latest status, and that status.
    std::shared_ptr<const std::string> status;
    std::shared_ptr<const std::string> status_line;
    RateLimit log_limit{std::chrono::seconds(10)};
    std::atomic<std::uint64_t> clients{0};
    net::Counter accepted;
    net::Counter refused;
    net::Counter requests;
    net::Counter errors;
    net::Counter dropped;
    net::Counter skipped;
};

class ControlConnection : public std::enable_shared_from_this<ControlConnection> {
  public:
    using Socket = boost::asio::local::stream_protocol::socket;

    ControlConnection(Socket socket, std::shared_ptr<ControlContext> context);
    ControlConnection(const ControlConnection&) = delete;
    ControlConnection& operator=(const ControlConnection&) = delete;
    ~ControlConnection() = default;

    /// Serves the client until close(): called when the client is gone or misbehaves, or from outside.
    void start();
    void close();
    /// Tells a client that is not to be served why.
    void refuse(const std::string& why);
    /// Sends the status now, if the client has subscribed to it.
    void tell();
    /// The client waits for no answer; it may have subscribed.
    [[nodiscard]] bool waits_for_nothing() const;
    [[nodiscard]] bool subscribed() const { return interval_.count() != 0; }
    /// Looked up once, as credentials do not change.
    [[nodiscard]] bool may_control() const { return may_control_; }
    /// When the client connected, asked, or took an answer.
    [[nodiscard]] std::chrono::steady_clock::time_point last_used() const { return last_used_; }
    /// Disconnects the client in favour of another one.
    void give_way();

  private:
    struct Exchange;
    using ExchangePtr = std::shared_ptr<Exchange>;

    /// Runs a step. An exception (such as std::bad_alloc) closes this connection and no other.
    template <class Step>
    void guarded(Step step) {
        if (closed_) return;
        try {
            step();
        } catch (const std::exception& error) {
            drop(error.what());
        }
    }
    /// Schedules one next_line(), however often it is called.
    void schedule();
    void next_line();
    void read();
    void send(std::string line);
    /// A line with its end.
    void send(std::shared_ptr<const std::string> line, bool notification);
    void write();
    void refuse_long_line();
    /// Why the client is disconnected, if there is room for a line in its socket. Does not wait.
    void send_last_words(const std::string& why);
    void drop(const char* why);
    [[nodiscard]] bool paused() const;
    void notify_after_interval();
    void notify();

    // connection_calls.cpp
    void handle(std::string_view line);
    void carry_out(const RpcCall& call, const ExchangePtr& exchange, std::size_t index);
    /// The answer, or nothing if a Reply delivers it later. Throws RpcError.
    std::optional<Answer> perform(const RpcCall& call, const ExchangePtr& exchange, std::size_t index);
    /// Throws RpcError unless this client may control.
    void require_control(const RpcCall& call);
    /// The status.
    std::string subscribe(const RpcCall& call);
    nlohmann::json log_level(const RpcCall& call);
    void end_subscription();
    [[nodiscard]] Reply make_reply(const RpcCall& call, const ExchangePtr& exchange, std::size_t index);
    void answer(const RpcCall& call, const ExchangePtr& exchange, std::size_t index, const Answer& answer);

    Socket socket_;
    const std::shared_ptr<ControlContext> context_;

    const bool may_control_;

    std::array<char, 16'384> chunk_{};
    std::string input_;
    std::size_t line_begin_ = 0;  ///< start of the first line in input_ that has not been handled
    std::size_t searched_ = 0;    ///< there is no line end before this position
    bool reading_ = false;
    bool scheduled_ = false;
    bool input_ended_ = false;    ///< the client has closed its sending side
    bool gone_ = false;           ///< the client has closed both sides
    bool disconnecting_ = false;  ///< close once output_ is written
    bool closed_ = false;
    std::size_t unanswered_ = 0;
    std::chrono::steady_clock::time_point last_used_;

    struct Message {
        std::shared_ptr<const std::string> text;  ///< a notification goes to many clients
        bool notification;
    };
    std::deque<Message> output_;  ///< the front message is being written
    std::size_t output_bytes_ = 0;
    boost::asio::steady_timer stall_timer_;

    boost::asio::steady_timer interval_timer_;
    std::chrono::nanoseconds interval_{0};  ///< 0: not subscribed
    bool notification_queued_ = false;
};

}  // namespace petacq::daemon
