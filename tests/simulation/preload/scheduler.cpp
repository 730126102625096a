#include "tests/simulation/preload/scheduler.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <tuple>
#include <utility>

namespace petacq::simulation {

namespace {

constexpr std::int64_t cost_of_point_ns = 300;
// From a switch at every point to long turns: different faults need different schedules.
constexpr std::array<std::uint64_t, 4> stays{1, 4, 16, 64};

}  // namespace

Scheduler::Scheduler(std::uint64_t seed) : random_(seed), stay_(stays[random_.below(stays.size())]) {
    turn_ = add();
    turn_->owner = ::pthread_self();
}

void Scheduler::check_turn() const {
    if (turn_->owner == ::pthread_self()) return;
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
    for (Thread* const t : living_) {
        if (!t->waits || t->wait.until_ns > now_ns_) continue;
        end_wait(*t);
        t->timed_out = true;
    }
    next_due_ns_ = next_ns();
}

std::int64_t Scheduler::next_ns() const {
    std::int64_t next = events_.empty() ? INT64_MAX : events_.begin()->first;
    for (const Thread* const t : living_) {
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
    for (Thread* const t : living_) {
        if (t->waits && t->wait.ready && t->wait.ready()) end_wait(*t);
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
Scheduler::Thread& Scheduler::choose(bool may_stay) {
    for (;;) {
        do_what_is_due();
        if (changed_) ask_if_ready();
        if (may_stay && !random_.one_in(stay_)) return *turn_;
        able_.clear();
        std::copy_if(living_.begin(), living_.end(), std::back_inserter(able_),
                     [](const Thread* t) { return !t->waits; });
        if (!able_.empty()) break;
        advance();
    }
    turn_ = able_[able_.size() == 1 ? 0 : random_.below(able_.size())];
    note(turn_->id);
    return *turn_;
}

void Scheduler::point(bool yields) {
    if (outside_) return;
    check_turn();
    ++points_;
    now_ns_ += cost_of_point_ns;
    Thread& me = *turn_;
    Thread& next = choose(!yields);
    if (&next != &me) me.context.pass_to(next.context);
}

bool Scheduler::wait(Wait wait) {
    check_turn();
    ++points_;
    now_ns_ += cost_of_point_ns;
    Thread& me = *turn_;
    me.wait = std::move(wait);
    me.waits = true;
    ++waits_[place_of(me.wait.on)];
    me.timed_out = false;
    me.since = points_;
    next_due_ns_ = std::min(next_due_ns_, me.wait.until_ns);
    changed_ = changed_ || me.wait.ready != nullptr;
    Thread& next = choose(false);
    if (&next != &me) me.context.pass_to(next.context);
    return !me.timed_out;
}

void Scheduler::end_wait(Thread& thread) {
    thread.waits = false;
    --waits_[place_of(thread.wait.on)];
}

std::size_t Scheduler::place_of(const void* on) {
    return reinterpret_cast<std::uintptr_t>(on) / 8 % std::tuple_size_v<decltype(waits_)>;
}

int Scheduler::wake(const void* on, int count) {
    if (waits_[place_of(on)] == 0) return 0;
    int woken = 0;
    while (woken < count) {
        Thread* first = nullptr;
        for (Thread* const t : living_) {
            if (t->waits && t->wait.on == on && (first == nullptr || t->since < first->since)) first = t;
        }
        if (first == nullptr) break;
        end_wait(*first);
        ++woken;
    }
    return woken;
}

Scheduler::Thread* Scheduler::add() {
    threads_.push_back(std::make_unique<Thread>());
    living_.push_back(threads_.back().get());
    living_.back()->id = threads_.size() - 1;
    return living_.back();
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
    Thread& me = *turn_;
    me.ended = true;
    living_.erase(std::find(living_.begin(), living_.end(), turn_));
    wake(&me);
    me.context.leave(choose(false).context);
}

}  // namespace petacq::simulation
