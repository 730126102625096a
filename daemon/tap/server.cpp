#include "daemon/tap/server.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/system/background_thread.hpp"
#include "daemon/system/sockets/accept_loop.hpp"
#include "daemon/system/sockets/listening_socket.hpp"
#include "daemon/tap/client.hpp"

namespace petacq::daemon {

using boost::system::error_code;

namespace {

/// Between two looks at the subscriptions. At most as much as fits into the buffers of one goes through it.
constexpr std::chrono::milliseconds look_interval{10};
/// After which a client to which nothing was sent gives its place to another one.
constexpr std::chrono::seconds idle_time{10};

}  // namespace

class TapServer::Implementation {
  public:
    Implementation(Tap& tap, TapSource source, const TapServerOptions& options)
        : max_clients_(options.max_clients),
          loop_(std::make_shared<AcceptLoop<Protocol>>(io_, "tap")),
          look_timer_(io_),
          context_(std::make_shared<TapContext>(tap, std::move(source))) {
        socket_.emplace("tap socket", options.socket, options.mode, options.group);
        loop_->acceptor().assign(Protocol(), socket_->duplicate());
    }

    void start() {
        loop_->start([this](Socket client) { admit(std::move(client)); });
        thread_ = serving_thread("tap", io_);
    }

    void close() {
        if (!thread_.joinable()) return;
        boost::asio::post(io_, [this] {
            loop_->close();
            socket_.reset();
            look_timer_.cancel();
            const auto open = context_->clients;
            for (const auto& client : open)
                client->close();
        });
        thread_.join();
    }

  private:
    using Protocol = boost::asio::local::stream_protocol;
    using Socket = Protocol::socket;

    void admit(Socket socket) {
        const bool room = context_->clients.size() < max_clients_ || make_room();
        const auto client = std::make_shared<TapClient>(std::move(socket), context_);
        if (!room) return client->refuse("too many clients, at most " + std::to_string(max_clients_));
        client->start();
        if (context_->clients.size() == 1) look();
    }

    /// Disconnects the client that has had nothing to take for longest. Returns false if none has been idle
    /// for a while.
    bool make_room() {
        std::shared_ptr<TapClient> longest;
        auto since = std::chrono::steady_clock::now() - idle_time;
        for (const auto& client : context_->clients) {
            const auto idle = client->idle_since();
            if (!idle || *idle > since) continue;
            since = *idle;
            longest = client;
        }
        if (!longest) return false;
        context_->log_limit.log(LogLevel::warning, "room",
                                "tap: an idle client was disconnected: others need its place");
        longest->close();
        return true;
    }

    /// Every few milliseconds while there are clients.
    void look() {
        if (context_->clients.empty() || !loop_->is_open()) return;
        look_timer_.expires_after(look_interval);
        look_timer_.async_wait([this](error_code stopped) {
            if (stopped) return;
            // A copy, because a client that is gone leaves the set.
            const std::vector clients(context_->clients.begin(), context_->clients.end());
            for (const auto& client : clients)
                client->go_on();
            look();
        });
    }

    const std::size_t max_clients_;
    std::optional<ListeningSocket> socket_;
    boost::asio::io_context io_{1};
    std::shared_ptr<AcceptLoop<Protocol>> loop_;
    boost::asio::steady_timer look_timer_;
    std::shared_ptr<TapContext> context_;
    std::jthread thread_;
};

TapServer::TapServer(Tap& tap, TapSource source, const TapServerOptions& options)
    : implementation_(std::make_unique<Implementation>(tap, std::move(source), options)) {
    implementation_->start();
}

TapServer::~TapServer() {
    implementation_->close();
}

void TapServer::close() {
    implementation_->close();
}

}  // namespace petacq::daemon
