#include "tests/simulation/preload/readiness.hpp"

#include <algorithm>

#include "tests/simulation/preload/real.hpp"

namespace petacq::simulation {

void Readiness::closed(int descriptor) {
    if (has(descriptor)) {
        unwatch(descriptor);
        ours_.erase(descriptor);
    }
    sets_.erase(descriptor);
    changed();
}

void Readiness::set(int descriptor, bool readable) {
    Ours& one = ours_.at(descriptor);
    one.readable = one.is_new = readable;
}

void Readiness::changed() {
    for (auto& [epoll, set] : sets_)
        set.ask_kernel = true;
}

void Readiness::watch(int epoll, int descriptor, const epoll_event& event) {
    Ours& one = ours_.at(descriptor);
    if (one.epoll != epoll) sets_[epoll].ours.push_back(descriptor);
    one.epoll = epoll;
    one.event = event;
    one.is_new = one.readable;
}

void Readiness::unwatch(int descriptor) {
    Ours& one = ours_.at(descriptor);
    if (one.epoll < 0) return;
    std::vector<int>& all = sets_[one.epoll].ours;
    all.erase(std::remove(all.begin(), all.end(), descriptor), all.end());
    one.epoll = -1;
}

int Readiness::report(int epoll, epoll_event* events, int most) {
    Set& set = sets_[epoll];
    int found = 0;
    for (const int descriptor : set.ours) {
        Ours& one = ours_.at(descriptor);
        const bool edge = (one.event.events & EPOLLET) != 0;
        if (found == most || !one.readable || (edge && !one.is_new) || (one.event.events & EPOLLIN) == 0)
            continue;
        one.is_new = false;
        events[found++] = {EPOLLIN, one.event.data};
    }
    if (!set.ask_kernel || found == most) return found;
    PETACQ_REAL(epoll_wait);
    const int others = real_epoll_wait(epoll, events + found, most - found, 0);
    if (others <= 0) set.ask_kernel = false;
    return found + std::max(others, 0);
}

}  // namespace petacq::simulation
