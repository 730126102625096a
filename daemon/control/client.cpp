#include "daemon/control/client.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "config/base/json_file.hpp"

namespace petacq::daemon {

using nlohmann::json;

namespace {

/// Notifications kept during a call; beyond that the oldest are discarded.
constexpr std::size_t max_notifications = 16;
/// Bytes; far beyond the longest answer.
constexpr std::size_t longest_line = std::size_t{256} << 20;
/// How long to wait if the daemon's queue of connections is full.
constexpr timeval connect_patience{5, 0};

template <class TimePoint>
std::optional<TimePoint> deadline_after(std::chrono::milliseconds timeout) {
    if (timeout < std::chrono::milliseconds(0)) return std::nullopt;
    return TimePoint::clock::now() + timeout;
}

std::string text_of(int error) {
    return std::generic_category().message(error);
}

/// Behind the reason why nobody answers at a socket.
const char* advice_for(int error) {
    if (error == EACCES) return ": only the socket's owner and group may connect";
    if (error == ENOENT || error == ECONNREFUSED)
        return ": is it running (systemctl status petacqd), and is this its socket?";
    return "";
}

}  // namespace

ControlClient::ControlClient(const std::filesystem::path& socket) : where_("at " + socket.string()) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (socket.empty() || socket.native().size() >= sizeof address.sun_path) {
        throw unavailable("expected a path of 1 to " + std::to_string(sizeof address.sun_path - 1) +
                          " bytes");
    }
    std::memcpy(address.sun_path, socket.c_str(), socket.native().size());
    descriptor_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (descriptor_ < 0) throw unavailable(text_of(errno));
    ::setsockopt(descriptor_, SOL_SOCKET, SO_SNDTIMEO, &connect_patience, sizeof connect_patience);
    if (::connect(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        const int error = errno;
        ::close(descriptor_);
        throw unavailable(text_of(error) + advice_for(error));
    }
}

ControlClient::ControlClient(int descriptor, std::string where)
    : where_(std::move(where)), descriptor_(descriptor) {}

ControlClient::~ControlClient() {
    ::close(descriptor_);
}

ControlUnavailable ControlClient::unavailable(const std::string& reason) const {
    return ControlUnavailable("cannot reach petacqd " + where_ + ": " + reason);
}

json ControlClient::call(std::string_view method, const json& params, Milliseconds timeout) {
    const auto deadline = deadline_after<Clock::time_point>(timeout);
    const std::int64_t id = ++last_id_;
    const int failed = send_all(rpc_request_text(id, method, params) + '\n');
    // A daemon that refused the connection has sent the reason before it closed: read it.
    if (failed != 0 && failed != EPIPE && failed != ECONNRESET)
        throw unavailable("sending: " + text_of(failed));
    while (true) {
        json message;
        auto line = read_message(message, deadline);
        if (!line) throw unavailable("no answer within " + std::to_string(timeout.count()) + " ms");
        if (message.contains("method")) {
            if (notifications_.size() == max_notifications) notifications_.pop_front();
            notifications_.push_back(std::move(*line));
            continue;
        }
        const json answered = message.value("id", json());
        if (const auto error = message.find("error"); error != message.end() && error->is_object()) {
            // A null id means that the daemon could not identify the request; there is only ours.
            if (answered.is_null() || answered == id) {
                throw RpcError(error->value("code", rpc_internal_error),
                               error->value("message", "no reason given"));
            }
        }
        if (answered == id && message.contains("result")) return std::move(message["result"]);
    }
}

json ControlClient::call(std::string_view method) {
    return call(method, json::object());
}

std::optional<json> ControlClient::next_notification(Milliseconds timeout) {
    const auto deadline = deadline_after<Clock::time_point>(timeout);
    if (!notifications_.empty()) {
        json first = json::parse(notifications_.front());
        notifications_.pop_front();
        return first;
    }
    json message;
    while (read_message(message, deadline)) {
        if (message.contains("method")) return message;
    }
    return std::nullopt;
}

int ControlClient::send_all(std::string_view bytes) const {
    while (!bytes.empty()) {
        const ssize_t sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0) return errno;
        bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return 0;
}

void ControlClient::send_bytes(std::string_view bytes) {
    if (const int failed = send_all(bytes); failed != 0) throw unavailable("sending: " + text_of(failed));
}

void ControlClient::finish_sending() {
    ::shutdown(descriptor_, SHUT_WR);
}

std::optional<std::string> ControlClient::read_line(Milliseconds timeout) {
    return read_line_until(deadline_after<Clock::time_point>(timeout));
}

std::optional<std::string> ControlClient::read_line_until(std::optional<Clock::time_point> deadline) {
    std::array<char, 65'536> chunk;
    while (true) {
        if (const std::size_t end = input_.find('\n', searched_); end != std::string::npos) {
            std::string line = input_.substr(0, end);
            input_.erase(0, end + 1);
            searched_ = 0;
            return line;
        }
        if (input_.size() > longest_line) throw unavailable("it sends a line that does not end");
        searched_ = input_.size();
        int patience = -1;
        if (deadline) {
            const auto left = std::chrono::ceil<Milliseconds>(*deadline - Clock::now()).count();
            patience = static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000));
        }
        pollfd readable{descriptor_, POLLIN, 0};
        const int polled = ::poll(&readable, 1, patience);
        if (polled < 0 && errno == EINTR) continue;
        if (polled < 0) throw unavailable(text_of(errno));
        if (polled == 0) return std::nullopt;
        const ssize_t got = ::recv(descriptor_, chunk.data(), chunk.size(), 0);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) throw unavailable(text_of(errno));
        if (got == 0) throw unavailable("it closed the connection");
        input_.append(chunk.data(), static_cast<std::size_t>(got));
    }
}

std::optional<std::string> ControlClient::read_message(json& message,
                                                       std::optional<Clock::time_point> deadline) {
    auto line = read_line_until(deadline);
    if (!line) return std::nullopt;
    message = config::json_nested_deeper(*line, rpc_max_depth) ? json() : json::parse(*line, nullptr, false);
    if (!message.is_object()) throw unavailable("the program that answers there does not speak JSON-RPC");
    return line;
}

}  // namespace petacq::daemon
