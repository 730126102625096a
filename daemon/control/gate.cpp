#include "daemon/control/gate.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <utility>

namespace petacq::daemon {

void ControlGate::post(std::function<void()> work) {
    const net::MutexLock lock(mutex_);
    if (io_ != nullptr) boost::asio::post(*io_, std::move(work));
}

void ControlGate::shut() {
    const net::MutexLock lock(mutex_);
    io_ = nullptr;
}

}  // namespace petacq::daemon
