#include "tests/simulation/preload/scheduler.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace petacq::simulation {

namespace {

constexpr std::int64_t cost_of_point_ns = 300;
// From a switch at every point to long turns: different faults need different schedules.
constexpr std::array<std::uint64_t, 4> stays{1, 4, 16, 64};

}  // namespace

Scheduler::Scheduler(std::uint64_t seed) : random_(seed), stay_(stays[random_.below(stays.size())]) {
    threads_.push_back(std::make_unique<Thread>());
    threads_.back()->owner = ::pthread_self();
}

void Scheduler::check_turn() const {
    if (thread(turn_).owner == ::pthread_self()) return;
    ::dprintf(STDERR_FILENO, "simulation: a thread acts out of turn\n");
    std::abort();
}

void Scheduler::at(std::int64_t time_ns, std::function<void()> work) {
    events_.emplace(time_ns, std::move(work));
    next_due_ns_ = std::min(next_due_ns_, time_ns);
}

void Scheduler::do_what_is_due() {
    if (now_ns_ < next_due_ns_) return;
    while (!events_.empty() && events_.begin()->first <= now_ns_) {
        const auto work = std::move(events_.begin()->second);
        events_.erase(events_.begin());
        outside_ = true;
        work();
        outside_ = false;
    }
    for (const auto& t : threads_) {
        if (!t->waits || t->wait.until_ns > now_ns_) continue;
        t->waits = false;
        t->timed_out = true;
    }
    next_due_ns_ = next_ns();
}

std::int64_t Scheduler::next_ns() const {
    std::int64_t next = events_.empty() ? INT64_MAX : events_.begin()->first;
    for (const auto& t : threads_) {
        if (t->waits) next = std::min(next, t->wait.until_ns);
    }
    return next;
}

void Scheduler::skip_to(std::int64_t time_ns) {
    while (!events_.empty() && events_.begin()->first <= time_ns) {
        now_ns_ = std::max(now_ns_, events_.begin()->first);
        do_what_is_due();
    }
    now_ns_ = std::max(now_ns_, time_ns);
}

void Scheduler::ask_if_ready() {
    changed_ = false;
    outside_ = true;
    for (const auto& t : threads_) {
        if (t->waits && t->wait.ready && t->wait.ready()) t->waits = false;
    }
    outside_ = false;
}

/// To the next time at which something happens.
void Scheduler::advance() {
    const std::int64_t next = next_ns();
    if (next == INT64_MAX) on_standstill();
    now_ns_ = std::max(now_ns_, next);
}

/// The thread that now has the turn. It can go on.
int Scheduler::choose(bool may_stay) {
    for (;;) {
        do_what_is_due();
        if (changed_) ask_if_ready();
        if (may_stay && !random_.one_in(stay_)) return turn_;
        able_.clear();
        for (int id = 0; id < static_cast<int>(threads_.size()); ++id) {
            const Thread& t = *threads_[static_cast<std::size_t>(id)];
            if (!t.waits && !t.ended) able_.push_back(id);
        }
        if (!able_.empty()) break;
        advance();
    }
    const int next = able_[able_.size() == 1 ? 0 : random_.below(able_.size())];
    note(static_cast<std::uint64_t>(next));
    return turn_ = next;
}

void Scheduler::point(bool yields) {
    if (outside_) return;
    check_turn();
    ++points_;
    now_ns_ += cost_of_point_ns;
    Thread& me = thread(turn_);
    Thread& next = thread(choose(!yields));
    if (&next != &me) me.context.pass_to(next.context);
}

bool Scheduler::wait(Wait wait) {
    check_turn();
    ++points_;
    now_ns_ += cost_of_point_ns;
    Thread& me = thread(turn_);
    me.wait = std::move(wait);
    me.waits = true;
    me.timed_out = false;
    me.since = points_;
    next_due_ns_ = std::min(next_due_ns_, me.wait.until_ns);
    changed_ = changed_ || me.wait.ready != nullptr;
    Thread& next = thread(choose(false));
    if (&next != &me) me.context.pass_to(next.context);
    return !me.timed_out;
}

int Scheduler::wake(const void* on, int count) {
    int woken = 0;
    while (woken < count) {
        Thread* first = nullptr;
        for (const auto& t : threads_) {
            if (t->waits && t->wait.on == on && (first == nullptr || t->since < first->since))
                first = t.get();
        }
        if (first == nullptr) break;
        first->waits = false;
        ++woken;
    }
    return woken;
}

Scheduler::Thread* Scheduler::add() {
    threads_.push_back(std::make_unique<Thread>());
    return threads_.back().get();
}

void Scheduler::await(Thread& thread) {
    thread.context.await();
}

void Scheduler::begin(Thread& thread) {
    thread.owner = ::pthread_self();
    thread.context.give();
}

void Scheduler::join(const Thread& thread) {
    while (!thread.ended)
        wait({.on = &thread});
}

void Scheduler::end() {
    Thread& me = thread(turn_);
    me.ended = true;
    wake(&me);
    me.context.leave(thread(choose(false)).context);
}

}  // namespace petacq::simulation
