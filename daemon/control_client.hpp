// A small blocking client of the control socket, for petctl and the tests.
#pragma once

#include <chrono>
#include <deque>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "daemon/json_rpc.hpp"

namespace petacq::daemon {

/// No daemon, or none any more: "cannot reach petacqd at PATH: reason".
class ControlUnavailable : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// One connection. Not thread-safe.
class ControlClient {
  public:
    using Milliseconds = std::chrono::milliseconds;
    /// As a timeout: until it happens or the connection ends.
    static constexpr Milliseconds for_ever{-1};

    /// Throws ControlUnavailable.
    explicit ControlClient(std::filesystem::path socket);
    ControlClient(const ControlClient&) = delete;
    ControlClient& operator=(const ControlClient&) = delete;
    ~ControlClient();

    /// Sends one request and waits for its answer; notifications that come meanwhile are kept for
    /// next_notification(). Throws RpcError for an error answer, ControlUnavailable when the connection ends
    /// or the time is over.
    nlohmann::json call(std::string_view method, const nlohmann::json& params = nlohmann::json::object(),
                        Milliseconds timeout = Milliseconds(30'000));
    /// The next notification, whole; nothing when the time is over. Throws ControlUnavailable.
    std::optional<nlohmann::json> next_notification(Milliseconds timeout = for_ever);

    /// Of the connection, to wait for together with others: readable when there is more to come.
    [[nodiscard]] int descriptor() const { return descriptor_; }

    /// For tests: bytes as they are, and the next line without its end (nothing: time over). Both throw
    /// ControlUnavailable when the connection has ended.
    void send_bytes(std::string_view bytes);
    std::optional<std::string> read_line(Milliseconds timeout = Milliseconds(30'000));
    /// Says that nothing more will be sent.
    void finish_sending();

  private:
    using Clock = std::chrono::steady_clock;
    [[nodiscard]] ControlUnavailable unavailable(const std::string& reason) const;
    /// 0, or the errno.
    [[nodiscard]] int send_all(std::string_view bytes) const;
    std::optional<std::string> read_line_until(std::optional<Clock::time_point> deadline);
    std::optional<nlohmann::json> read_message(std::optional<Clock::time_point> deadline);

    std::filesystem::path path_;
    int descriptor_ = -1;
    std::int64_t last_id_ = 0;
    std::string input_;
    std::size_t searched_ = 0;
    std::deque<nlohmann::json> notifications_;
};

}  // namespace petacq::daemon
