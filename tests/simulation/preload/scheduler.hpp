// All threads of a process one at a time, in an order drawn from a seed, on a virtual clock.
#pragma once

#include <pthread.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "tests/simulation/preload/context.hpp"
#include "tests/simulation/preload/random.hpp"
#include "tests/simulation/preload/readiness.hpp"

namespace petacq::simulation {

/// A thread waits until the first of these happens.
struct Wait {
    const void* on = nullptr;               ///< wake() of this address
    std::int64_t until_ns = INT64_MAX;      ///< a virtual time
    std::function<bool()> ready = nullptr;  ///< asked after changed()
};

/// One thread has the turn. It passes the turn on inside the functions of this class alone, so none of them
/// needs a lock. One thread of the kernel runs the one that has the turn, whichever it is. All but begin()
/// are called by the thread that has the turn.
class Scheduler {
  public:
    struct Thread;
    explicit Scheduler(std::uint64_t seed);

    /// A point at which another thread may take the turn; `yields`: one that can go on is to take it.
    void point(bool yields = false);
    /// Passes the turn on until the wait is over. False: by its time.
    bool wait(Wait wait);
    /// Ends the waits on this address, the longest first, at most `count` of them. Returns how many.
    int wake(const void* on, int count = INT32_MAX);
    /// Call these when something may have become ready for which a thread waits: anything, or a descriptor of
    /// the simulation's own.
    void changed() {
        changed_ = true;
        readiness.changed();
    }
    void became_readable(int descriptor) {
        changed_ = true;
        readiness.set(descriptor, true);
    }
    /// Calls `work` at a virtual time, in the thread that then has the turn. It must not wait; points in it
    /// are none.
    void at(std::int64_t time_ns, std::function<void()> work);

    /// Monotonic, ns.
    [[nodiscard]] std::int64_t now_ns() const { return now_ns_; }
    void pass_time(std::int64_t ns) { now_ns_ += ns; }
    /// Before there are threads: does what is due until then.
    void skip_to(std::int64_t time_ns);

    /// The parent calls add(), and await() once it has made the child; the child begin(), and end() as the
    /// last thing it does.
    Thread* add();
    static void await(Thread& thread);
    static void begin(Thread& thread);
    void end();
    /// Returns when the thread has ended.
    void join(const Thread& thread);

    std::uint64_t random(std::uint64_t below) { return random_.below(below); }
    /// Adds to the fingerprint of all that happened.
    void note(std::uint64_t value) { trace_ = (trace_ ^ value) * 0x100000001B3U; }
    [[nodiscard]] std::uint64_t trace() const { return trace_; }
    [[nodiscard]] std::uint64_t points() const { return points_; }

    Readiness readiness;
    /// Called when all threads wait for something that nothing brings. Does not return.
    std::function<void()> on_standstill;

  private:
    void check_turn() const;
    Thread& choose(bool may_stay);
    void end_wait(Thread& thread);
    [[nodiscard]] static std::size_t place_of(const void* on);
    void do_what_is_due();
    void ask_if_ready();
    [[nodiscard]] std::int64_t next_ns() const;
    void advance();

    std::vector<std::unique_ptr<Thread>> threads_;
    std::vector<Thread*> living_;  ///< in the order of their ids
    /// How many wait on addresses with this place: mostly nobody waits for what is woken.
    std::array<std::uint16_t, 64> waits_{};
    std::multimap<std::int64_t, std::function<void()>> events_;
    Random random_;
    std::uint64_t stay_;  ///< a thread passes the turn on at one in so many points
    std::uint64_t trace_ = 0xCBF29CE484222325U;
    std::uint64_t points_ = 0;
    std::int64_t now_ns_ = 0;
    std::int64_t next_due_ns_ = 0;  ///< nothing is due before
    std::vector<Thread*> able_;     ///< of choose()
    Thread* turn_ = nullptr;
    bool changed_ = false;
    bool outside_ = false;  ///< in work of at(), or asking whether a thread is ready
};

struct Scheduler::Thread {
    std::uint64_t id = 0;
    bool waits = false;
    bool timed_out = false;
    bool ended = false;
    Wait wait;
    std::uint64_t since = 0;  ///< number of the point
    pthread_t owner = 0;
    Context context;
};

}  // namespace petacq::simulation
