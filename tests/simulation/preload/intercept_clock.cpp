// Clocks and sleep.
#include <sched.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "tests/simulation/preload/intercept.hpp"

using namespace petacq::simulation;

extern "C" {

PETACQ_INTERCEPT int clock_gettime(clockid_t clock, timespec* t) noexcept {
    PETACQ_REAL(clock_gettime);
    if (world == nullptr) return real_clock_gettime(clock, t);
    if (clock == CLOCK_THREAD_CPUTIME_ID || clock == CLOCK_PROCESS_CPUTIME_ID) {
        *t = timespec_of(world->scheduler.now_ns() / 100);
        return 0;
    }
    world->scheduler.pass_time(30);
    const bool wall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
    *t = timespec_of(wall ? world->wall_ns() : world->scheduler.now_ns());
    return 0;
}

PETACQ_INTERCEPT int gettimeofday(timeval* __restrict t, void* __restrict /*zone*/) noexcept {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    *t = {now.tv_sec, now.tv_nsec / 1000};
    return 0;
}

PETACQ_INTERCEPT time_t time(time_t* t) noexcept {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    if (t != nullptr) *t = now.tv_sec;
    return now.tv_sec;
}

PETACQ_INTERCEPT int clock_nanosleep(clockid_t clock, int flags, const timespec* request, timespec* left) {
    PETACQ_REAL(clock_nanosleep);
    if (world == nullptr) return real_clock_nanosleep(clock, flags, request, left);
    const bool absolute = (flags & TIMER_ABSTIME) != 0;
    world->scheduler.wait(
        {.until_ns = absolute ? monotonic_ns(clock, *request) : world->scheduler.now_ns() + ns_of(*request)});
    return 0;
}

PETACQ_INTERCEPT int nanosleep(const timespec* request, timespec* left) {
    return clock_nanosleep(CLOCK_MONOTONIC, 0, request, left);
}

PETACQ_INTERCEPT int usleep(useconds_t us) {
    const timespec t = timespec_of(std::int64_t{us} * 1000);
    return nanosleep(&t, nullptr);
}

PETACQ_INTERCEPT int sched_yield() noexcept {
    PETACQ_REAL(sched_yield);
    if (world == nullptr) return real_sched_yield();
    world->scheduler.pass_time(1000);
    world->scheduler.point(true);
    return 0;
}

}  // extern "C"
