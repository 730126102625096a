#include "daemon/system/background_thread.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <exception>
#include <utility>

#include "daemon/system/logging.hpp"
#include "net/base/thread.hpp"

namespace petacq::daemon {

std::jthread background_thread(const char* name, int niceness,
                               std::function<void(const std::stop_token&)> work) {
    return net::start_thread(name, [niceness, work = std::move(work)](const std::stop_token& stopping) {
        setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), niceness);
        work(stopping);
    });
}

std::jthread serving_thread(const char* name, boost::asio::io_context& io) {
    constexpr int niceness = 10;
    return background_thread(name, niceness, [name, &io](const std::stop_token&) {
        for (bool ended = false; !ended;) {
            try {
                io.run();
                ended = true;
            } catch (const std::exception& error) {
                log_error("{}: {}", name, error.what());
            }
        }
    });
}

}  // namespace petacq::daemon
