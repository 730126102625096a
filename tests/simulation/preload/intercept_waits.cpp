// Waits for files and sockets, timers, and the sockets' input and output.
#include <errno.h>
#include <linux/sock_diag.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <span>

#include "tests/simulation/preload/intercept.hpp"

using namespace petacq::simulation;

namespace {

/// Calls `ask`, which does not wait, until it finds something or the time is over.
template <class Ask>
int wait_for(int timeout_ms, const Ask& ask) {
    Scheduler& scheduler = world->scheduler;
    scheduler.point();
    int found = ask();
    if (found != 0 || timeout_ms == 0) return found;
    const auto ready = [&] {
        found = ask();
        return found != 0;
    };
    scheduler.wait(
        {.until_ns = timeout_ms < 0 ? INT64_MAX : scheduler.now_ns() + timeout_ms * std::int64_t{1'000'000},
         .ready = ready});
    return found;
}

/// Eventfds, and timers: their descriptors are eventfds that are set when the time is over.
struct Counter {
    std::uint64_t count = 0;
    std::uint64_t setting = 0;  ///< number of that of a timer
};
std::map<int, Counter>& counters() {
    static std::map<int, Counter> all;
    return all;
}

/// The counter of a descriptor; nullptr: it is something else.
Counter* counter_of(int fd) {
    if (world == nullptr) return nullptr;
    const auto found = counters().find(fd);
    return found == counters().end() ? nullptr : &found->second;
}

ssize_t moved(ssize_t bytes) {
    if (world == nullptr) return bytes;
    const int error = errno;
    world->scheduler.changed();
    world->scheduler.note(static_cast<std::uint64_t>(bytes));
    world->scheduler.point();
    errno = error;
    return bytes;
}

}  // namespace

namespace petacq::simulation {

void forget_counter(int fd) {
    counters().erase(fd);
}

}  // namespace petacq::simulation

extern "C" {

PETACQ_INTERCEPT int epoll_wait(int fd, epoll_event* events, int most, int timeout_ms) {
    PETACQ_REAL(epoll_wait);
    if (world == nullptr) return real_epoll_wait(fd, events, most, timeout_ms);
    return wait_for(timeout_ms, [=] { return world->scheduler.readiness.report(fd, events, most); });
}

PETACQ_INTERCEPT int poll(pollfd* files, nfds_t count, int timeout_ms) {
    PETACQ_REAL(poll);
    if (world == nullptr) return real_poll(files, count, timeout_ms);
    return wait_for(timeout_ms, [=] {
        int found = real_poll(files, count, 0);
        for (pollfd& file : std::span(files, count)) {
            if (!world->scheduler.readiness.has(file.fd) || (file.events & POLLIN) == 0) continue;
            if (!world->scheduler.readiness.readable(file.fd)) continue;
            found += file.revents == 0 ? 1 : 0;
            file.revents |= POLLIN;
        }
        return found;
    });
}

PETACQ_INTERCEPT int eventfd(unsigned count, int flags) noexcept {
    PETACQ_REAL(eventfd);
    const int fd = real_eventfd(world == nullptr ? count : 0, flags);
    if (world == nullptr || fd < 0) return fd;
    counters()[fd] = {count};
    world->scheduler.readiness.made(fd);
    world->scheduler.readiness.set(fd, count != 0);
    return fd;
}

PETACQ_INTERCEPT int timerfd_create(clockid_t clock, int flags) noexcept {
    PETACQ_REAL(timerfd_create);
    if (world == nullptr) return real_timerfd_create(clock, flags);
    return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
}

PETACQ_INTERCEPT int timerfd_settime(int fd, int flags, const itimerspec* value, itimerspec* old) noexcept {
    PETACQ_REAL(timerfd_settime);
    Counter* const timer = counter_of(fd);
    if (timer == nullptr) return real_timerfd_settime(fd, flags, value, old);
    timer->count = 0;
    world->scheduler.readiness.set(fd, false);
    const std::uint64_t setting = ++timer->setting;
    if (old != nullptr) *old = {};
    if (ns_of(value->it_value) == 0) return 0;
    const std::int64_t at =
        ns_of(value->it_value) + ((flags & TFD_TIMER_ABSTIME) != 0 ? 0 : world->scheduler.now_ns());
    world->scheduler.at(at, [fd, setting] {
        Counter* const over = counter_of(fd);
        if (over == nullptr || over->setting != setting) return;
        over->count = 1;
        world->scheduler.became_readable(fd);
    });
    return 0;
}

PETACQ_INTERCEPT ssize_t write(int fd, const void* data, size_t size) {
    PETACQ_REAL(write);
    Counter* const counter = counter_of(fd);
    if (counter == nullptr) return moved(real_write(fd, data, size));
    std::uint64_t more = 0;
    std::memcpy(&more, data, sizeof more);
    counter->count += more;
    world->scheduler.became_readable(fd);
    world->scheduler.point();
    return sizeof more;
}

PETACQ_INTERCEPT ssize_t read(int fd, void* data, size_t size) {
    PETACQ_REAL(read);
    Counter* const counter = counter_of(fd);
    if (counter == nullptr) return real_read(fd, data, size);
    if (counter->count == 0) {
        errno = EAGAIN;
        return -1;
    }
    std::memcpy(data, &counter->count, sizeof counter->count);
    counter->count = 0;
    world->scheduler.readiness.set(fd, false);
    return sizeof counter->count;
}

PETACQ_INTERCEPT ssize_t sendmsg(int fd, const msghdr* message, int flags) {
    PETACQ_REAL(sendmsg);
    return moved(real_sendmsg(fd, message, flags));
}

PETACQ_INTERCEPT ssize_t send(int fd, const void* data, size_t size, int flags) {
    PETACQ_REAL(send);
    return moved(real_send(fd, data, size, flags));
}

PETACQ_INTERCEPT ssize_t recvmsg(int fd, msghdr* message, int flags) {
    PETACQ_REAL(recvmsg);
    if (world == nullptr || !world->network.has(fd)) return real_recvmsg(fd, message, flags);
    const ssize_t size = world->network.receive(fd, *message, flags, world->wall_minus_monotonic_ns());
    world->scheduler.note(static_cast<std::uint64_t>(size));
    if (size < 0) errno = EAGAIN;
    return size;
}

PETACQ_INTERCEPT int recvmmsg(int fd, mmsghdr* messages, unsigned count, int flags, timespec* timeout) {
    PETACQ_REAL(recvmmsg);
    if (world == nullptr || !world->network.has(fd))
        return real_recvmmsg(fd, messages, count, flags, timeout);
    world->scheduler.point();
    unsigned n = 0;
    for (; n < count; ++n) {
        const ssize_t size = recvmsg(fd, &messages[n].msg_hdr, flags);
        if (size < 0) break;
        messages[n].msg_len = static_cast<unsigned>(size);
    }
    return n == 0 ? -1 : static_cast<int>(n);
}

PETACQ_INTERCEPT int getsockopt(int fd, int level, int name, void* __restrict value,
                                socklen_t* __restrict size) noexcept {
    PETACQ_REAL(getsockopt);
    const int error = real_getsockopt(fd, level, name, value, size);
    if (world == nullptr || level != SOL_SOCKET || name != SO_MEMINFO || !world->network.has(fd))
        return error;
    const Network::Memory memory = world->network.memory(fd);
    auto* const numbers = static_cast<std::uint32_t*>(value);
    numbers[SK_MEMINFO_RMEM_ALLOC] = memory.queued;
    numbers[SK_MEMINFO_DROPS] = memory.dropped;
    return error;
}

PETACQ_INTERCEPT int epoll_ctl(int fd, int operation, int of, epoll_event* event) noexcept {
    PETACQ_REAL(epoll_ctl);
    if (world == nullptr) return real_epoll_ctl(fd, operation, of, event);
    Readiness& readiness = world->scheduler.readiness;
    if (!readiness.has(of)) {
        readiness.watched_by_kernel(fd);
        return real_epoll_ctl(fd, operation, of, event);
    }
    if (operation == EPOLL_CTL_DEL) {
        readiness.unwatch(of);
    } else {
        readiness.watch(fd, of, *event);
    }
    return 0;
}

PETACQ_INTERCEPT int socket(int family, int type, int protocol) noexcept {
    PETACQ_REAL(socket);
    const int fd = real_socket(family, type, protocol);
    const bool udp = family == AF_INET && (type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK)) == SOCK_DGRAM;
    if (world != nullptr && fd >= 0 && udp) world->network.made(fd);
    return fd;
}

PETACQ_INTERCEPT int bind(int fd, const sockaddr* address, socklen_t size) noexcept {
    PETACQ_REAL(bind);
    const int error = real_bind(fd, address, size);
    if (world != nullptr && error == 0 && world->network.has(fd)) world->network.bound(fd);
    return error;
}

PETACQ_INTERCEPT int sigaction(int signal, const struct sigaction* action, struct sigaction* old) noexcept {
    PETACQ_REAL(sigaction);
    if (world != nullptr && signal == SIGTERM && action != nullptr) world->on_sigterm = action->sa_handler;
    return real_sigaction(signal, action, old);
}

}  // extern "C"
