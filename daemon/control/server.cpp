#include "daemon/control/server.hpp"

#include <fcntl.h>
#include <sys/socket.h>

#include <atomic>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <system_error>
#include <utility>

#include "daemon/control/connection.hpp"
#include "daemon/host/listening_socket.hpp"

namespace petacq::daemon {

using boost::system::error_code;

class ControlServer::Implementation : public std::enable_shared_from_this<ControlServer::Implementation> {
  public:
    Implementation(boost::asio::io_context& io, ControlHandler& handler, config::Control options,
                   std::chrono::milliseconds stall_timeout)
        : context_(std::make_shared<ControlContext>(io, handler, std::move(options), stall_timeout)),
          listener_(io),
          retry_timer_(io) {
        const ControlAccess& access = context_->access;
        if (!access.gid) {
            log_warning(
                "control: there is no group {}: only root and the daemon's own user may start and "
                "stop runs",
                access.group);
        }
        const auto mode = static_cast<mode_t>(std::stoul(context_->options.socket_mode, nullptr, 8));
        socket_.emplace("control socket", context_->options.socket, mode, access.gid);
        // The acceptor closes what it is given; the path's owner keeps the original.
        const int descriptor = ::fcntl(socket_->descriptor(), F_DUPFD_CLOEXEC, 0);
        if (descriptor < 0) {
            throw std::system_error(errno, std::generic_category(), "control socket: cannot duplicate it");
        }
        listener_.assign(boost::asio::local::stream_protocol(), descriptor);
    }

    void accept() {
        listener_.async_accept(
            [self = shared_from_this()](error_code error, ControlConnection::Socket client) {
                if (!self->listener_.is_open()) return;
                if (!error) {
                    self->admit(std::move(client));
                    return self->accept();
                }
                // Most likely out of descriptors. The connection stays in the queue: wait.
                self->context_->log_limit.log(LogLevel::warning, "accept", "control: cannot accept: {}",
                                              error.message());
                self->retry_timer_.expires_after(std::chrono::milliseconds(100));
                self->retry_timer_.async_wait([self](error_code stopped) {
                    if (!stopped && self->listener_.is_open()) self->accept();
                });
            });
    }

    void close() {
        context_->gate->shut();
        error_code ignored;
        listener_.close(ignored);
        retry_timer_.cancel();
        socket_.reset();
        const auto open = std::exchange(context_->connections, {});
        for (const auto& connection : open)
            connection->close();
    }

    void tell_subscribers() {
        // A copy, because a connection that is dropped leaves the set.
        const auto open = context_->connections;
        for (const auto& connection : open)
            connection->tell();
    }

    [[nodiscard]] const ControlContext& context() const { return *context_; }

  private:
    void admit(ControlConnection::Socket client) {
        try {
            if (context_->clients.load(std::memory_order_relaxed) >= context_->options.max_clients &&
                !make_room()) {
                return refuse(client);
            }
            std::make_shared<ControlConnection>(std::move(client), context_)->start();
        } catch (const std::exception& error) {
            context_->log_limit.log(LogLevel::warning, "admit", "control: cannot serve a client: {}",
                                    error.what());
        }
    }

    /// Disconnects the client that has been idle for longest. Returns false if none is idle.
    bool make_room() {
        std::shared_ptr<ControlConnection> longest;
        for (const auto& connection : context_->connections) {
            if (connection->idle() && (!longest || connection->last_used() < longest->last_used()))
                longest = connection;
        }
        if (!longest) return false;
        longest->give_way();
        return true;
    }

    void refuse(ControlConnection::Socket& client) {
        context_->refused.add();
        send_last_words(client, "too many clients, at most " + std::to_string(context_->options.max_clients));
        context_->log_limit.log(LogLevel::warning, "refuse",
                                "control: a client was refused: {} are connected",
                                context_->options.max_clients);
    }

    std::shared_ptr<ControlContext> context_;
    std::optional<ListeningSocket> socket_;
    boost::asio::local::stream_protocol::acceptor listener_;
    boost::asio::steady_timer retry_timer_;
};

ControlServer::ControlServer(boost::asio::io_context& io, ControlHandler& handler, config::Control options,
                             std::chrono::milliseconds stall_timeout)
    : implementation_(std::make_shared<Implementation>(io, handler, std::move(options), stall_timeout)) {
    implementation_->accept();
}

ControlServer::~ControlServer() {
    implementation_->close();
}

void ControlServer::tell_subscribers() {
    implementation_->tell_subscribers();
}

void ControlServer::close() {
    implementation_->close();
}

ControlStatistics ControlServer::statistics() const {
    const ControlContext& context = implementation_->context();
    ControlStatistics statistics;
    statistics.clients = context.clients.load(std::memory_order_relaxed);
    statistics.accepted = context.accepted.value();
    statistics.refused = context.refused.value();
    statistics.requests = context.requests.value();
    statistics.errors = context.errors.value();
    statistics.dropped = context.dropped.value();
    statistics.skipped = context.skipped.value();
    return statistics;
}

}  // namespace petacq::daemon
