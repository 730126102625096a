#include "daemon/host/background_thread.hpp"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <exception>
#include <utility>

#include "daemon/host/logging.hpp"

namespace petacq::daemon {

namespace {

/// While it lives, threads start without signals.
class SignalsBlocked {
  public:
    SignalsBlocked() {
        sigset_t all{};
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    SignalsBlocked(const SignalsBlocked&) = delete;
    SignalsBlocked& operator=(const SignalsBlocked&) = delete;
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  private:
    sigset_t before_{};
};

}  // namespace

std::jthread background_thread(const char* name, int niceness,
                               std::function<void(const std::stop_token&)> work) {
    const SignalsBlocked blocked;
    std::jthread thread([niceness, work = std::move(work)](const std::stop_token& stopping) {
        setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), niceness);
        work(stopping);
    });
    pthread_setname_np(thread.native_handle(), name);
    return thread;
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
