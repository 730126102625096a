// A small blocking client of the control socket, for petctl and the tests.
#pragma once

#include <chrono>
#include <deque>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "daemon/control/json_rpc.hpp"

namespace petacq::daemon {

/// There is no daemon, or the connection has ended: "cannot reach petacqd at PATH: reason".
class ControlUnavailable : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// One connection. Not thread-safe.
class ControlClient {
  public:
    using Milliseconds = std::chrono::milliseconds;
    /// No timeout: waits until the connection ends.
    static constexpr Milliseconds for_ever{-1};

    /// Throws ControlUnavailable.
    explicit ControlClient(const std::filesystem::path& socket);
    /// Over a connected stream socket, which it then owns. `where` is for messages: "on HOST".
    ControlClient(int descriptor, std::string where);
    ControlClient(const ControlClient&) = delete;
    ControlClient& operator=(const ControlClient&) = delete;
    ~ControlClient();

    /// Sends one request and waits for its answer; notifications that arrive meanwhile are kept for
    /// next_notification(). Throws RpcError for an error answer, ControlUnavailable if the connection ends or
    /// the timeout expires.
    nlohmann::json call(std::string_view method, const nlohmann::json& params,
                        Milliseconds timeout = Milliseconds(30'000));
    nlohmann::json call(std::string_view method);
    /// The next notification as a whole message; nothing if the timeout expires. Throws ControlUnavailable.
    std::optional<nlohmann::json> next_notification(Milliseconds timeout = for_ever);

    /// Descriptor of the connection, for poll(): readable when a message may have arrived.
    [[nodiscard]] int descriptor() const { return descriptor_; }

    /// For tests: sends bytes as they are; returns the next line without its end, or nothing if the timeout
    /// expires. Both throw ControlUnavailable if the connection has ended.
    void send_bytes(std::string_view bytes);
    std::optional<std::string> read_line(Milliseconds timeout = Milliseconds(30'000));
    /// Closes the sending side.
    void finish_sending();

  private:
    using Clock = std::chrono::steady_clock;
    [[nodiscard]] ControlUnavailable unavailable(const std::string& reason) const;
    /// 0, or the errno.
    [[nodiscard]] int send_all(std::string_view bytes) const;
    std::optional<std::string> read_line_until(std::optional<Clock::time_point> deadline);
    /// Reads a message into `message`, and returns its line; nothing if the deadline passes.
    std::optional<std::string> read_message(nlohmann::json& message,
                                            std::optional<Clock::time_point> deadline);

    std::string where_;
    int descriptor_ = -1;
    std::int64_t last_id_ = 0;
    std::string input_;
    std::size_t searched_ = 0;
    std::deque<std::string> notifications_;  ///< lines
};

}  // namespace petacq::daemon
