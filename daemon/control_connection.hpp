// One client of the control server: lines in, calls carried out, answers and notifications out.
// Everything here runs in the thread of the io_context.
#pragma once

#include <array>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

#include "daemon/control_access.hpp"
#include "daemon/control_server.hpp"
#include "daemon/logging.hpp"
#include "net/counter.hpp"

namespace petacq::daemon {

/// The way back from other threads: posts to the io_context as long as the server lives.
class ControlGate {
  public:
    explicit ControlGate(boost::asio::io_context& io) : io_(&io) {}
    void post(std::function<void()> work);
    void shut();

  private:
    std::mutex mutex_;
    boost::asio::io_context* io_;
};

class ControlConnection;

/// What the connections share with their server; each keeps it alive.
struct ControlContext {
    ControlContext(boost::asio::io_context& io, ControlHandler& control_handler,
                   ControlOptions control_options)
        : handler(control_handler),
          options(std::move(control_options)),
          access{options.group, group_id(options.group)},
          gate(std::make_shared<ControlGate>(io)) {}

    ControlHandler& handler;
    const ControlOptions options;
    const ControlAccess access;
    const std::shared_ptr<ControlGate> gate;
    /// The open ones, each kept alive by being here: one that waits for a reply has nothing else to hold it.
    std::unordered_set<std::shared_ptr<ControlConnection>> connections;
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

    /// Serves the client until close(), which is called when it is gone, for what it does wrong, or from
    /// outside.
    void start();
    void close();
    /// Sends the status now, if the client has subscribed to it.
    void tell();

  private:
    struct Exchange;
    using ExchangePtr = std::shared_ptr<Exchange>;

    /// Runs a step; what it throws (memory, at the most) costs this client its connection, nobody else.
    template <class Step>
    void guarded(Step step);
    /// Has next_line() run soon, once, however often it is called.
    void schedule();
    void next_line();
    void read();
    void handle(std::string_view line);
    void carry_out(const RpcCall& call, const ExchangePtr& exchange, std::size_t index);
    /// The answer, or none if it comes later through a Reply. Throws RpcError.
    std::optional<Answer> perform(const RpcCall& call, const ExchangePtr& exchange, std::size_t index);
    /// Throws RpcError unless this client may do more than look.
    void require_control(const RpcCall& call);
    nlohmann::json subscribe(const RpcCall& call);
    nlohmann::json log_level(const RpcCall& call);
    void end_subscription();
    [[nodiscard]] Reply make_reply(const RpcCall& call, const ExchangePtr& exchange, std::size_t index);
    void answer(const RpcCall& call, const ExchangePtr& exchange, std::size_t index, const Answer& answer);
    void notify_after_interval();
    void notify();
    void send(std::string line, bool notification = false);
    void write();
    void refuse_long_line();
    void drop(const char* why);
    [[nodiscard]] bool paused() const;

    Socket socket_;
    const std::shared_ptr<ControlContext> context_;

    std::optional<std::string> refusal_;  ///< of control; asked for once, since credentials do not change

    std::array<char, 16'384> chunk_{};
    std::string input_;
    std::size_t line_begin_ = 0;  ///< of the first line in input_ that was not handled yet
    std::size_t searched_ = 0;    ///< no line end before this
    bool reading_ = false;
    bool scheduled_ = false;
    bool input_ended_ = false;    ///< no more to read
    bool gone_ = false;           ///< nor anybody to answer
    bool disconnecting_ = false;  ///< close when output_ is written
    bool closed_ = false;
    std::size_t unanswered_ = 0;

    struct Message {
        std::string text;
        bool notification;
    };
    std::deque<Message> output_;  ///< the front one is being written
    std::size_t output_bytes_ = 0;
    boost::asio::steady_timer stall_timer_;

    boost::asio::steady_timer interval_timer_;
    std::chrono::nanoseconds interval_{0};  ///< 0: not subscribed
    bool notification_queued_ = false;
};

}  // namespace petacq::daemon
