#include "daemon/peer/peer_thread.hpp"

#include <exception>
#include <utility>

#include "daemon/peer/status_request.hpp"
#include "daemon/system/background_thread.hpp"

namespace petacq::daemon {

PeerThread::PeerThread(config::HttpUrl url, std::function<void(PeerAnswer)> listener)
    : url_(std::move(url)),
      listener_(std::move(listener)),
      thread_(background_thread("peer", 10, [this](const std::stop_token& stopping) { run(stopping); })) {}

void PeerThread::run(const std::stop_token& stopping) {
    const std::stop_callback stop(stopping, [this] { io_.stop(); });
    while (!stopping.stop_requested()) {
        PeerAnswer answer;
        try {
            answer = ask_status(io_, url_, time_limit, stopping);
        } catch (const std::exception& error) {  // no memory, no descriptor
            answer = peer_failure(error.what());
        }
        if (stopping.stop_requested()) return;
        listener_(std::move(answer));
        // Without work run_for() returns at once.
        io_.restart();
        const auto work = boost::asio::make_work_guard(io_);
        if (!stopping.stop_requested()) io_.run_for(interval);
    }
}

}  // namespace petacq::daemon
