#include "daemon/control/server.hpp"

#include <sys/socket.h>

#include <atomic>
#include <boost/asio/local/stream_protocol.hpp>
#include <utility>

#include "daemon/control/connection.hpp"
#include "daemon/host/sockets/accept_loop.hpp"
#include "daemon/host/sockets/listening_socket.hpp"

namespace petacq::daemon {

class ControlServer::Implementation {
  public:
    Implementation(boost::asio::io_context& io, ControlHandler& handler, config::Control options,
                   std::chrono::milliseconds stall_timeout)
        : context_(std::make_shared<ControlContext>(io, handler, std::move(options), stall_timeout)),
          loop_(std::make_shared<AcceptLoop<Protocol>>(io, "control")) {
        const ControlAccess& access = context_->access;
        if (!access.gid) {
            log_warning(
                "control: there is no group {}: only root and the daemon's own user may start and "
                "stop runs",
                access.group);
        }
        const auto mode = static_cast<mode_t>(std::stoul(context_->options.socket_mode, nullptr, 8));
        socket_.emplace("control socket", context_->options.socket, mode, access.gid);
        loop_->acceptor().assign(Protocol(), socket_->duplicate());
    }

    void accept() {
        loop_->start([this](ControlConnection::Socket client) { admit(std::move(client)); });
    }

    void close() {
        context_->gate->shut();
        loop_->close();
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
    using Protocol = boost::asio::local::stream_protocol;

    void admit(ControlConnection::Socket client) {
        if (context_->clients.load(std::memory_order_relaxed) >= context_->options.max_clients &&
            !make_room()) {
            return refuse(client);
        }
        std::make_shared<ControlConnection>(std::move(client), context_)->start();
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
    std::shared_ptr<AcceptLoop<Protocol>> loop_;
};

ControlServer::ControlServer(boost::asio::io_context& io, ControlHandler& handler, config::Control options,
                             std::chrono::milliseconds stall_timeout)
    : implementation_(std::make_unique<Implementation>(io, handler, std::move(options), stall_timeout)) {
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
