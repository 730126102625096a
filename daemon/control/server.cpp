#include "daemon/control/server.hpp"

#include <atomic>
#include <boost/asio/local/stream_protocol.hpp>
#include <utility>

#include "daemon/control/connection.hpp"
#include "daemon/system/sockets/accept_loop.hpp"
#include "daemon/system/sockets/listening_socket.hpp"

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
        const auto connection = std::make_shared<ControlConnection>(std::move(client), context_);
        if (context_->clients.load(std::memory_order_relaxed) >= context_->options.max_clients &&
            !make_room(connection->may_control())) {
            return refuse(*connection);
        }
        connection->start();
    }

    /// The order in which clients give way, the first one first; 0: never. Nobody who may only look takes
    /// the place of a client that may control, and every one of them gives way to such a client.
    static int readiness(const ControlConnection& connection, bool for_control) {
        const bool may_control = connection.may_control();
        if (may_control && !for_control) return 0;
        if (!connection.waits_for_nothing()) return !may_control && for_control ? 3 : 0;
        return (may_control ? 0 : 3) + (connection.subscribed() ? 1 : 2);
    }

    /// Disconnects a client in favour of another one: of those that are equally ready, the one that has been
    /// idle for longest. Returns false if none gives way.
    bool make_room(bool for_control) {
        std::shared_ptr<ControlConnection> first;
        int most = 0;
        for (const auto& connection : context_->connections) {
            const int ready = readiness(*connection, for_control);
            if (ready == 0 || ready < most) continue;
            if (ready > most || connection->last_used() < first->last_used()) first = connection;
            most = ready;
        }
        if (!first) return false;
        first->give_way();
        return true;
    }

    void refuse(ControlConnection& client) {
        context_->refused.add();
        client.refuse("too many clients, at most " + std::to_string(context_->options.max_clients));
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
