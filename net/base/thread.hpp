// The way in which all programs start a thread.
#pragma once

#include <pthread.h>

#include <csignal>
#include <thread>
#include <utility>

namespace petacq::net {

/// While it lives, threads start without signals, but for those that their own faults raise.
class SignalsBlocked {
  public:
    SignalsBlocked() {
        sigset_t all{};
        sigfillset(&all);
        for (const int fault : {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP})
            sigdelset(&all, fault);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    SignalsBlocked(const SignalsBlocked&) = delete;
    SignalsBlocked& operator=(const SignalsBlocked&) = delete;
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  private:
    sigset_t before_{};
};

/// Starts a thread with a name of at most 15 characters. Signals go to the main thread. `work` is callable as
/// that of std::jthread. Throws std::system_error.
template <class Work>
std::jthread start_thread(const char* name, Work work) {
    const SignalsBlocked blocked;
    std::jthread thread(std::move(work));
    pthread_setname_np(thread.native_handle(), name);
    return thread;
}

}  // namespace petacq::net
