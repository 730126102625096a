#include "daemon/tap/server.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <csignal>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/host/listening_socket.hpp"
#include "daemon/tap/client.hpp"

namespace petacq::daemon {

using boost::system::error_code;

namespace {

/// The acquisition goes first if there are too few cores for both.
constexpr int niceness = 10;
/// Between two looks at the subscriptions. At most as much as fits into the buffers of one goes through it.
constexpr std::chrono::milliseconds look_interval{10};

}  // namespace

class TapServer::Implementation {
  public:
    Implementation(Tap& tap, TapSource source, const TapServerOptions& options)
        : max_clients_(options.max_clients),
          listener_(io_),
          look_timer_(io_),
          retry_timer_(io_),
          context_(std::make_shared<TapContext>(tap, std::move(source))) {
        socket_.emplace("tap socket", options.socket, options.mode, options.group);
        // The acceptor closes what it is given; the path's owner keeps the original.
        const int descriptor = ::fcntl(socket_->descriptor(), F_DUPFD_CLOEXEC, 0);
        if (descriptor < 0)
            throw std::system_error(errno, std::generic_category(), "tap socket: cannot duplicate it");
        listener_.assign(boost::asio::local::stream_protocol(), descriptor);
    }

    void start() {
        accept();
        // The main thread handles signals.
        sigset_t all{};
        sigset_t before{};
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        thread_ = std::thread([this] {
            setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), niceness);
            // An error here (at worst, no memory) must not stop the acquisition.
            for (bool ended = false; !ended;) {
                try {
                    io_.run();
                    ended = true;
                } catch (const std::exception& error) {
                    log_error("tap: {}", error.what());
                }
            }
        });
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        pthread_setname_np(thread_.native_handle(), "tap");
    }

    void close() {
        if (!thread_.joinable()) return;
        boost::asio::post(io_, [this] {
            error_code ignored;
            listener_.close(ignored);
            socket_.reset();
            retry_timer_.cancel();
            look_timer_.cancel();
            const auto open = context_->clients;
            for (const auto& client : open)
                client->close();
        });
        thread_.join();
    }

  private:
    using Socket = boost::asio::local::stream_protocol::socket;

    void accept() {
        listener_.async_accept([this](error_code error, Socket client) {
            if (!listener_.is_open()) return;
            if (!error) {
                admit(std::move(client));
                return accept();
            }
            // Most likely out of descriptors. The connection stays in the queue: wait.
            context_->log_limit.log(LogLevel::warning, "accept", "tap: cannot accept: {}", error.message());
            retry_timer_.expires_after(std::chrono::milliseconds(100));
            retry_timer_.async_wait([this](error_code stopped) {
                if (!stopped && listener_.is_open()) accept();
            });
        });
    }

    void admit(Socket socket) {
        try {
            const bool room = context_->clients.size() < max_clients_;
            const auto client = std::make_shared<TapClient>(std::move(socket), context_);
            if (!room) return client->refuse("too many clients, at most " + std::to_string(max_clients_));
            client->start();
            if (context_->clients.size() == 1) look();
        } catch (const std::exception& error) {
            context_->log_limit.log(LogLevel::warning, "admit", "tap: cannot serve a client: {}",
                                    error.what());
        }
    }

    /// Every few milliseconds while there are clients.
    void look() {
        if (context_->clients.empty() || !listener_.is_open()) return;
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
    boost::asio::local::stream_protocol::acceptor listener_;
    boost::asio::steady_timer look_timer_;
    boost::asio::steady_timer retry_timer_;
    std::shared_ptr<TapContext> context_;
    std::thread thread_;
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
