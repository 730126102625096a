// Datagrams on their way from the receivers to the next stage, in the order of their arrival.
//
// Each receiver has a lane of its own, with the batches that it fills one after the other. After each read it
// publishes what its batch holds so far, and the time up to which everything that arrived at its socket is in
// the lane: its clock. The reader takes the datagrams of all lanes oldest first. A datagram is taken once no
// lane can bring an older one: each other lane holds a newer one, or is empty and its clock has passed the
// datagram. A receiver that hears nothing therefore publishes its clock, too, and a receiver that is held up
// holds up the others.
//
// The order does not depend on when the reader looks, so a backlog of any length is taken as if there had
// been none.
#pragma once

#include <semaphore.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "net/batch.hpp"

namespace petacq::net {

/// Lets one thread sleep until another one has something for it.
class WakeUp {
  public:
    WakeUp() { sem_init(&semaphore_, 0, 0); }
    ~WakeUp() { sem_destroy(&semaphore_); }
    WakeUp(const WakeUp&) = delete;
    WakeUp& operator=(const WakeUp&) = delete;

    /// Any thread. A system call only if the other thread sleeps or is about to.
    void signal() {
        if (waiting_.exchange(false, std::memory_order_acq_rel)) sem_post(&semaphore_);
    }
    /// The thread that sleeps: announces it. What it finds after this, it need not sleep for.
    void prepare() { waiting_.exchange(true, std::memory_order_acq_rel); }
    /// Sleeps until signal() or, at the latest, for `timeout`.
    void sleep(std::chrono::microseconds timeout);

  private:
    sem_t semaphore_{};
    std::atomic<bool> waiting_{false};
};

/// The producer's side of a lane: one thread, until close(). Neither blocks nor allocates.
class BatchLane {
  public:
    /// The datagrams that `batch` holds can be read from now on; more may follow. Their arrival times never
    /// decrease within a lane. A batch is finished before the next one is published.
    void publish(Batch& batch) { publish(batch, 0); }
    /// Publishes a batch that holds datagrams and to which nothing will be added. The reader returns it.
    void finish(Batch& batch);
    /// Everything that arrived up to `ns` has been published. An earlier time changes nothing.
    void advance(std::int64_t ns) {
        if (ns > clock_.load(std::memory_order_relaxed)) clock_.store(ns, std::memory_order_release);
    }
    /// Nothing will follow.
    void close();

  private:
    friend class BatchQueue;
    static constexpr std::uint32_t finished = 1U << 31;
    static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

    void publish(Batch& batch, std::uint32_t flag);

    // Shared. No batch is in the ring twice, so a ring as long as the pool never overflows.
    std::vector<Batch*> ring_;
    std::atomic<std::size_t> pushed_{0};
    std::atomic<std::int64_t> clock_{std::numeric_limits<std::int64_t>::min()};
    WakeUp* wake_ = nullptr;

    // The reader's view, renewed when it has read everything that it knows of.
    alignas(64) Batch* batch_ = nullptr;
    std::size_t popped_ = 0;
    std::uint32_t read_ = 0;
    std::uint32_t known_ = 0;
    bool complete_ = false;
    std::int64_t seen_clock_ = std::numeric_limits<std::int64_t>::min();
};

/// Datagrams of one batch that follow one another in the order of arrival.
struct DatagramSpan {
    Batch* batch = nullptr;
    std::span<const Datagram> datagrams;
    bool last = false;  ///< the whole batch has been taken, and belongs to the reader
};

/// The reader's side: one thread.
class BatchQueue {
  public:
    /// `batches`: size of the pool from which the lanes are filled.
    BatchQueue(std::size_t lanes, std::size_t batches);

    [[nodiscard]] BatchLane& lane(std::size_t i) { return lanes_[i]; }
    [[nodiscard]] std::size_t lanes() const { return lane_count_; }

    /// The oldest datagrams; nothing if there are none, or while a lane could bring older ones.
    std::optional<DatagramSpan> take();
    /// Like take(), but waits until a batch is finished, at most for `timeout`.
    std::optional<DatagramSpan> take(std::chrono::microseconds timeout);
    /// Host time up to which everything has been taken, as of the latest take() that found nothing.
    [[nodiscard]] std::int64_t taken_until_ns() const { return taken_until_ns_; }
    /// All lanes are closed and everything has been taken, as of the latest take() that found nothing.
    [[nodiscard]] bool ended() const { return taken_until_ns_ == BatchLane::never; }

  private:
    static DatagramSpan piece_of(BatchLane& lane, std::uint32_t end);

    const std::size_t lane_count_;
    const std::unique_ptr<BatchLane[]> lanes_;
    WakeUp wake_;
    std::int64_t taken_until_ns_ = std::numeric_limits<std::int64_t>::min();
};

}  // namespace petacq::net
