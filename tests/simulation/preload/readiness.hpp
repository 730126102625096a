// What epoll reports. Descriptors that only the daemon and the simulation use (eventfds, timers, UDP sockets)
// are ready when the simulation says so; of them the kernel knows nothing but the numbers. Of others it is
// asked, and only if something may have changed: that costs more than all the rest of a wait.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <map>
#include <vector>

namespace petacq::simulation {

class Readiness {
  public:
    /// A descriptor that the simulation makes ready to be read.
    void made(int descriptor) { ours_[descriptor] = {}; }
    [[nodiscard]] bool has(int descriptor) const { return ours_.count(descriptor) != 0; }
    void closed(int descriptor);

    /// Something can be read from it, or can no longer. What is set while it is set counts as new, too.
    void set(int descriptor, bool readable);
    [[nodiscard]] bool readable(int descriptor) const { return ours_.at(descriptor).readable; }
    /// Any of the kernel's may have changed.
    void changed();

    // epoll_ctl() of one of ours, and of another, which the kernel has been told of.
    void watch(int epoll, int descriptor, const epoll_event& event);
    void unwatch(int descriptor);
    void watched_by_kernel(int epoll) { sets_[epoll].ask_kernel = true; }
    /// As epoll_wait(), without waiting.
    int report(int epoll, epoll_event* events, int most);

  private:
    struct Ours {
        int epoll = -1;  ///< by which it is watched
        epoll_event event{};
        bool readable = false;
        bool is_new = false;
    };
    struct Set {
        std::vector<int> ours;
        bool ask_kernel = true;
    };
    std::map<int, Ours> ours_;
    std::map<int, Set> sets_;  ///< by epoll descriptor
};

}  // namespace petacq::simulation
