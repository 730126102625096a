// Threads that leave the processors to the acquisition.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <stop_token>
#include <thread>

namespace petacq::daemon {

/// Starts a thread with a name of at most 15 characters, at this nice value. Signals go to the main thread.
std::jthread background_thread(const char* name, int niceness,
                               std::function<void(const std::stop_token&)> work);

/// One that runs `io`, at nice 10. What a handler throws (at worst, no memory) is logged, and ends nothing.
std::jthread serving_thread(const char* name, boost::asio::io_context& io);

}  // namespace petacq::daemon
