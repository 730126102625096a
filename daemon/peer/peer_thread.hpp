// Asks the other host of a pair, again and again, what it records.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <stop_token>
#include <thread>

#include "config/http_url.hpp"
#include "daemon/peer/answer.hpp"

namespace petacq::daemon {

/// A thread of its own asks, and waits for the answers: nobody else does.
class PeerThread {
  public:
    /// From one answer to the next question.
    static constexpr std::chrono::milliseconds interval{1000};
    /// For an answer.
    static constexpr std::chrono::milliseconds time_limit{2000};

    /// `listener` is called in the thread, with each answer.
    PeerThread(config::HttpUrl url, std::function<void(PeerAnswer)> listener);
    PeerThread(const PeerThread&) = delete;
    PeerThread& operator=(const PeerThread&) = delete;
    /// Waits for no answer; at most for the system's search for a host name.
    ~PeerThread() = default;

  private:
    void run(const std::stop_token& stopping);

    const config::HttpUrl url_;
    const std::function<void(PeerAnswer)> listener_;
    boost::asio::io_context io_{1};  ///< of the thread
    std::jthread thread_;
};

}  // namespace petacq::daemon
