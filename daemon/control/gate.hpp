// The way back from other threads to the thread of an io_context.
#pragma once

#include <functional>

#include "net/base/mutex.hpp"

namespace boost::asio {
class io_context;
}  // namespace boost::asio

namespace petacq::daemon {

/// Posts work to the io_context until shut() is called. Thread-safe.
class ControlGate {
  public:
    explicit ControlGate(boost::asio::io_context& io) : io_(&io) {}
    /// Does nothing after shut().
    void post(std::function<void()> work);
    /// Call it before the io_context goes away.
    void shut();

  private:
    net::Mutex mutex_;
    boost::asio::io_context* io_ PETACQ_GUARDED_BY(mutex_);
};

}  // namespace petacq::daemon
