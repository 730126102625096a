// Accepts the clients of a server.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <utility>

#include "daemon/system/logging.hpp"

namespace petacq::daemon {

/// For the thread that runs `io`. Outlives its owner as long as an accept is under way.
template <class Protocol>
class AcceptLoop : public std::enable_shared_from_this<AcceptLoop<Protocol>> {
  public:
    using Socket = typename Protocol::socket;

    /// `name`: in front of what it logs.
    AcceptLoop(boost::asio::io_context& io, const char* name)
        : name_(name), acceptor_(io), retry_timer_(io) {}

    typename Protocol::acceptor& acceptor() { return acceptor_; }
    [[nodiscard]] bool is_open() const { return acceptor_.is_open(); }

    /// The acceptor listens. `admit` gets each client until close(); what it throws is logged.
    void start(std::function<void(Socket)> admit) {
        admit_ = std::move(admit);
        accept();
    }
    void close() {
        boost::system::error_code ignored;
        acceptor_.close(ignored);
        retry_timer_.cancel();
    }

  private:
    void accept() {
        acceptor_.async_accept(
            [self = this->shared_from_this()](boost::system::error_code error, Socket client) {
                if (!self->is_open()) return;
                if (!error) {
                    self->admit(std::move(client));
                    return self->accept();
                }
                // Most likely there are no descriptors left. The connection stays in the queue, so wait
                // before the next attempt.
                self->log_limit_.log(LogLevel::warning, "accept", "{}: cannot accept: {}", self->name_,
                                     error.message());
                self->retry_timer_.expires_after(std::chrono::milliseconds(100));
                self->retry_timer_.async_wait([self](boost::system::error_code stopped) {
                    if (!stopped && self->is_open()) self->accept();
                });
            });
    }

    void admit(Socket client) {
        try {
            admit_(std::move(client));
        } catch (const std::exception& error) {
            log_limit_.log(LogLevel::warning, "admit", "{}: cannot serve a client: {}", name_, error.what());
        }
    }

    const char* const name_;
    typename Protocol::acceptor acceptor_;
    boost::asio::steady_timer retry_timer_;
    std::function<void(Socket)> admit_;
    RateLimit log_limit_{std::chrono::seconds(10)};
};

}  // namespace petacq::daemon
