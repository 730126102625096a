// Threads, and what they wait for: mutexes, conditions, semaphores, futexes.
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <new>

#include "tests/simulation/preload/intercept.hpp"

using namespace petacq::simulation;

namespace {

struct Start {
    Scheduler::Thread* thread;
    void* (*function)(void*);
    void* argument;
};

std::map<pthread_t, Scheduler::Thread*>& threads() {
    static std::map<pthread_t, Scheduler::Thread*> all;
    return all;
}

pthread_key_t at_end();

void end_thread(void* thread) {
    // The destructors of other keys may still need the turn: the last of the rounds ends the thread.
    static thread_local int rounds = 0;
    if (++rounds < PTHREAD_DESTRUCTOR_ITERATIONS) {
        pthread_setspecific(at_end(), thread);
    } else {
        world->scheduler.end();
    }
}

/// Its destructor runs after those of thread_local objects.
pthread_key_t at_end() {
    static const pthread_key_t key = [] {
        pthread_key_t k = 0;
        pthread_key_create(&k, end_thread);
        return k;
    }();
    return key;
}

void* begin(void* given) {
    const Start start = *static_cast<Start*>(given);
    delete static_cast<Start*>(given);
    Scheduler::begin(*start.thread);
    pthread_setspecific(at_end(), start.thread);
    return start.function(start.argument);
}

std::map<const void*, clockid_t>& clocks_of_conditions() {
    static std::map<const void*, clockid_t> all;
    return all;
}

int wait_for_condition(pthread_cond_t* c, pthread_mutex_t* m, std::int64_t until) {
    pthread_mutex_unlock(m);
    const bool woken = world->scheduler.wait({.on = c, .until_ns = until});
    pthread_mutex_lock(m);
    return woken ? 0 : ETIMEDOUT;
}

int wait_for_semaphore(sem_t* s, std::int64_t until) {
    world->scheduler.point();
    while (sem_trywait(s) != 0) {
        if (errno != EAGAIN) return -1;
        if (!world->scheduler.wait({.on = s, .until_ns = until})) {
            if (sem_trywait(s) == 0) return 0;
            errno = ETIMEDOUT;
            return -1;
        }
    }
    return 0;
}

}  // namespace

extern "C" {

PETACQ_INTERCEPT int pthread_create(pthread_t* __restrict id, const pthread_attr_t* __restrict attributes,
                                    void* (*function)(void*), void* __restrict argument) noexcept {
    PETACQ_REAL(pthread_create);
    if (world == nullptr) return real_pthread_create(id, attributes, function, argument);
    at_end();
    Scheduler::Thread* const thread = world->scheduler.add();
    auto* const start = new (std::nothrow) Start{thread, function, argument};
    if (start == nullptr || real_pthread_create(id, attributes, begin, start) != 0) abort();
    Scheduler::await(*thread);
    threads()[*id] = thread;
    world->scheduler.point();
    return 0;
}

PETACQ_INTERCEPT int pthread_join(pthread_t id, void** result) {
    PETACQ_REAL(pthread_join);
    if (world != nullptr) {
        if (const auto found = threads().find(id); found != threads().end()) {
            world->scheduler.join(*found->second);
            threads().erase(found);
        }
    }
    return real_pthread_join(id, result);
}

PETACQ_INTERCEPT int pthread_mutex_lock(pthread_mutex_t* m) noexcept {
    PETACQ_REAL(pthread_mutex_trylock);
    PETACQ_REAL(pthread_mutex_lock);
    if (world == nullptr) return real_pthread_mutex_lock(m);
    world->scheduler.point();
    int error = real_pthread_mutex_trylock(m);
    while (error == EBUSY) {
        world->scheduler.wait({.on = m});
        error = real_pthread_mutex_trylock(m);
    }
    return error;
}

PETACQ_INTERCEPT int pthread_mutex_unlock(pthread_mutex_t* m) noexcept {
    PETACQ_REAL(pthread_mutex_unlock);
    const int error = real_pthread_mutex_unlock(m);
    if (world != nullptr) world->scheduler.wake(m);
    return error;
}

PETACQ_INTERCEPT int pthread_cond_init(pthread_cond_t* __restrict c,
                                       const pthread_condattr_t* __restrict attributes) noexcept {
    PETACQ_REAL(pthread_cond_init);
    clockid_t clock = CLOCK_REALTIME;
    if (attributes != nullptr) pthread_condattr_getclock(attributes, &clock);
    clocks_of_conditions()[c] = clock;
    return real_pthread_cond_init(c, attributes);
}

PETACQ_INTERCEPT int pthread_cond_destroy(pthread_cond_t* c) noexcept {
    PETACQ_REAL(pthread_cond_destroy);
    if (world == nullptr) return real_pthread_cond_destroy(c);
    clocks_of_conditions().erase(c);
    return 0;
}

PETACQ_INTERCEPT int pthread_cond_wait(pthread_cond_t* __restrict c, pthread_mutex_t* __restrict m) {
    PETACQ_REAL(pthread_cond_wait);
    if (world == nullptr) return real_pthread_cond_wait(c, m);
    return wait_for_condition(c, m, INT64_MAX);
}

PETACQ_INTERCEPT int pthread_cond_timedwait(pthread_cond_t* __restrict c, pthread_mutex_t* __restrict m,
                                            const timespec* __restrict t) {
    PETACQ_REAL(pthread_cond_timedwait);
    if (world == nullptr) return real_pthread_cond_timedwait(c, m, t);
    const auto clock = clocks_of_conditions().find(c);
    return wait_for_condition(
        c, m, monotonic_ns(clock == clocks_of_conditions().end() ? CLOCK_REALTIME : clock->second, *t));
}

PETACQ_INTERCEPT int pthread_cond_clockwait(pthread_cond_t* __restrict c, pthread_mutex_t* __restrict m,
                                            clockid_t clock, const timespec* __restrict t) {
    PETACQ_REAL(pthread_cond_clockwait);
    if (world == nullptr) return real_pthread_cond_clockwait(c, m, clock, t);
    return wait_for_condition(c, m, monotonic_ns(clock, *t));
}

PETACQ_INTERCEPT int pthread_cond_signal(pthread_cond_t* c) noexcept {
    PETACQ_REAL(pthread_cond_signal);
    if (world == nullptr) return real_pthread_cond_signal(c);
    world->scheduler.wake(c, 1);
    world->scheduler.point();
    return 0;
}

PETACQ_INTERCEPT int pthread_cond_broadcast(pthread_cond_t* c) noexcept {
    PETACQ_REAL(pthread_cond_broadcast);
    if (world == nullptr) return real_pthread_cond_broadcast(c);
    world->scheduler.wake(c);
    world->scheduler.point();
    return 0;
}

PETACQ_INTERCEPT int sem_wait(sem_t* s) {
    PETACQ_REAL(sem_wait);
    if (world == nullptr) return real_sem_wait(s);
    return wait_for_semaphore(s, INT64_MAX);
}

PETACQ_INTERCEPT int sem_timedwait(sem_t* __restrict s, const timespec* __restrict t) {
    PETACQ_REAL(sem_timedwait);
    if (world == nullptr) return real_sem_timedwait(s, t);
    return wait_for_semaphore(s, monotonic_ns(CLOCK_REALTIME, *t));
}

PETACQ_INTERCEPT int sem_clockwait(sem_t* __restrict s, clockid_t clock, const timespec* __restrict t) {
    PETACQ_REAL(sem_clockwait);
    if (world == nullptr) return real_sem_clockwait(s, clock, t);
    return wait_for_semaphore(s, monotonic_ns(clock, *t));
}

PETACQ_INTERCEPT int sem_post(sem_t* s) noexcept {
    PETACQ_REAL(sem_post);
    const int error = real_sem_post(s);
    if (world == nullptr) return error;
    world->scheduler.wake(s, 1);
    world->scheduler.point();
    return error;
}

// All threads are one of the kernel: names would be those of others, and one of low priority would slow all.
PETACQ_INTERCEPT int pthread_setname_np(pthread_t id, const char* name) noexcept {
    PETACQ_REAL(pthread_setname_np);
    return world == nullptr ? real_pthread_setname_np(id, name) : 0;
}

PETACQ_INTERCEPT int setpriority(__priority_which_t which, id_t who, int priority) noexcept {
    PETACQ_REAL(setpriority);
    return world == nullptr ? real_setpriority(which, who, priority) : 0;
}

// The futexes of the C++ library: futures, waits for atomics, initialisation of static objects.
PETACQ_INTERCEPT long syscall(long number, ...) noexcept {
    PETACQ_REAL(syscall);
    va_list list;
    va_start(list, number);
    long a[6];
    for (long& x : a)
        x = va_arg(list, long);
    va_end(list);
    if (world == nullptr || number != SYS_futex)
        return real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    auto* const word = reinterpret_cast<int*>(a[0]);
    const int operation = static_cast<int>(a[1]) & ~(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME);
    const auto* const t = reinterpret_cast<const timespec*>(a[3]);
    if (operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET) {
        world->scheduler.point();
        if (__atomic_load_n(word, __ATOMIC_SEQ_CST) != static_cast<int>(a[2])) {
            errno = EAGAIN;
            return -1;
        }
        std::int64_t until = INT64_MAX;
        if (t != nullptr && operation == FUTEX_WAIT) until = world->scheduler.now_ns() + ns_of(*t);
        if (t != nullptr && operation == FUTEX_WAIT_BITSET)
            until = monotonic_ns((a[1] & FUTEX_CLOCK_REALTIME) != 0 ? CLOCK_REALTIME : CLOCK_MONOTONIC, *t);
        if (world->scheduler.wait({.on = word, .until_ns = until})) return 0;
        errno = ETIMEDOUT;
        return -1;
    }
    if (operation == FUTEX_WAKE || operation == FUTEX_WAKE_BITSET) {
        const int woken = world->scheduler.wake(word, static_cast<int>(a[2]));
        world->scheduler.point();
        return woken;
    }
    abort();
}

}  // extern "C"
