// Batches of received datagrams and the fixed pool they come from.
//
// A receiver takes a free batch and receives into it until it is full. Meanwhile the next stage already reads
// the datagrams that the batch holds (batch_queue.hpp), so a batch is never given up half empty. The last
// stage that uses it puts it back. While the pool is empty, datagrams wait in the socket buffers.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "net/base/mutex.hpp"
#include "net/base/record_vector.hpp"
#include "net/endpoint.hpp"

namespace petacq::net {

enum class Admitted : std::uint8_t { yes, malformed, unknown_source };

/// A hash of the content of a datagram: two datagrams with the same number and another content differ in it.
inline std::uint32_t content_of(std::uint64_t first_time, std::uint64_t last_time, std::uint32_t frames) {
    // Spreads a key over all bits of a word (the constant is 2^64 over the golden ratio).
    const auto mix = [](std::uint64_t v) {
        v *= 0x9E3779B97F4A7C15ULL;
        return v ^ (v >> 32);
    };
    return static_cast<std::uint32_t>(mix(mix(mix(first_time) + last_time) + frames));
}

/// One datagram inside a batch, or the first one of a train.
///
/// A group is a row of datagrams that arrived together. Those of one source are a train: they differ in
/// nothing but their numbers, times, hits and places: same sender, size and flags; each number one above that
/// of the datagram before; more than one frame, a valid hit at both ends, and
/// neither time before that of the datagram before. One record stands for all of a train, so that the next
/// stage need not look at each. A group has a train for each of its sources; its members are in the order of
/// arrival. A datagram that fits no train is a group of its own.
struct Datagram {
    /// Sequenced framing: its number. Bare framing, which has none: fingerprint_of() its frames.
    std::uint64_t sequence = 0;
    std::uint64_t first_time = 0;  ///< raw ticks of the first valid frame; 0 if there is none
    std::uint64_t last_time = 0;   ///< raw ticks of the last valid frame; 0 if there is none
    /// Host time at which the kernel received it: steady clock, or the time of the packet in a replay.
    std::int64_t arrival_ns = 0;
    std::uint32_t offset = 0;  ///< of the first frame in Batch::data, bytes; a multiple of 16
    std::uint32_t frames = 0;  ///< 0: a heartbeat
    /// From the first valid frame to the last; 0: no frame is valid, and the datagram says nothing about
    /// time.
    std::uint16_t timed_frames = 0;
    std::uint16_t lost = 0;     ///< blocks that the board says it lost here (Translator::translate)
    std::uint32_t bytes = 0;    ///< size of the whole UDP payload
    std::uint32_t address = 0;  ///< sender's IPv4 address, host byte order
    std::uint16_t port = 0;     ///< sender's port
    std::uint16_t source = 0;   ///< sequenced: the id in the header; bare: 0, since the sender is the source
    std::uint8_t flags = 0;
    bool hits = true;             ///< some valid frames are hits, so that the modules say something
    std::uint16_t first_bdm = 0;  ///< module in the first valid hit
    std::uint16_t last_bdm = 0;   ///< module in the last valid hit
    /// Others than `yes` are kept for a capture only (ReceiverOptions::keep_rejected), or to be counted in a
    /// replay. `offset` is then the offset of its first byte, and need not be a multiple of 16.
    Admitted admitted = Admitted::yes;
    std::int16_t temperature_16ths = 0;  ///< in the last valid hit: sixteenths of a degree C
    std::uint16_t datagrams = 1;         ///< of the train
    std::uint16_t trains = 1;          ///< in the group that begins with this record; 0: another has begun it
    std::uint32_t first_member = 0;    ///< index in Batch::members, of a record that begins a group
    std::uint32_t members = 0;         ///< of the group; 0: one datagram, which has no entry there
    std::uint64_t end_first_time = 0;  ///< first_time of the last datagram of the train, if there are several
    std::uint64_t end_last_time = 0;   ///< last_time of it
};

/// A datagram of a group.
struct Member {
    std::uint32_t content = 0;  ///< content_of()
    std::uint32_t offset = 0;   ///< as in Datagram
    std::uint16_t train = 0;    ///< in its group
    std::int16_t temperature_16ths = 0;
    std::uint16_t first_bdm = 0;
    std::uint16_t last_bdm = 0;
};

/// Datagrams in these records.
inline std::uint64_t count_of(std::span<const Datagram> records) {
    std::uint64_t count = 0;
    for (const Datagram& d : records)
        count += d.datagrams;
    return count;
}

/// A piece of pool memory with the datagrams received into it. One thread fills it; others read only the
/// datagrams that it has published (BatchLane).
///
/// What the filling thread writes lies in other cache lines than what readers need with each datagram.
struct Batch {
    // The same for as long as the batch is filled and read.
    alignas(64) std::byte* data = nullptr;
    std::size_t capacity = 0;                  ///< bytes
    const Datagram* first_datagram = nullptr;  ///< datagrams.data()
    const Member* first_member = nullptr;      ///< members.data()
    std::size_t max_datagrams = 0;             ///< capacity of either
    std::uint32_t index = 0;                   ///< position in the pool
    Endpoint to;                               ///< the socket that received it
    bool set_aside = false;                    ///< for one thread (BatchPool::set_aside)

    alignas(64) std::size_t used = 0;  ///< bytes from the start that hold received data
    RecordVector<Datagram> datagrams;  ///< capacity reserved once; never grows while running
    RecordVector<Member> members;      ///< of all groups

    alignas(64) std::atomic<std::uint32_t> published{0};  ///< of a BatchLane
    std::atomic<std::uint32_t> holders{0};                ///< of the pool
    std::atomic<bool> at_home{false};                     ///< of a batch that is set aside: it is free

    void clear() {
        used = 0;
        datagrams.clear();
        members.clear();
        published.store(0, std::memory_order_relaxed);
    }
    /// So many datagrams can be recorded in any case.
    [[nodiscard]] std::size_t room() const {
        return max_datagrams - std::max(datagrams.size(), members.size());
    }
    /// Makes the datagram recorded last a member of the group before it, if it fits. REQUIRES: the group has
    /// not been published.
    void join_last();
};

/// A group in a batch.
class Group {
  public:
    static constexpr std::size_t max_trains = 64;

    /// `first`: the record that begins it.
    Group(const Batch& batch, const Datagram& first)
        : batch_(batch),
          trains_(&first, first.trains),
          members_(batch.first_member + first.first_member, first.members) {}

    [[nodiscard]] std::span<const Datagram> trains() const { return trains_; }
    /// Empty for a datagram that is alone.
    [[nodiscard]] std::span<const Member> members() const { return members_; }
    [[nodiscard]] const std::byte* data() const { return batch_.data; }
    /// Calls `take` with a record for each datagram, in the order of arrival.
    template <class Take>
    void each(Take take) const {
        if (members_.empty()) return take(trains_.front());
        std::array<std::uint16_t, max_trains> taken{};
        for (const Member& member : members_)
            take(record_of(member, taken[member.train]++));
    }

  private:
    /// `place`: of the member in its train.
    [[nodiscard]] Datagram record_of(const Member& member, std::uint32_t place) const;

    const Batch& batch_;
    std::span<const Datagram> trains_;
    std::span<const Member> members_;
};

/// Calls `take` with each group of these records, which begin and end with a group.
template <class Take>
void each_group(const Batch& batch, std::span<const Datagram> records, Take take) {
    for (std::size_t i = 0; i < records.size(); i += records[i].trains)
        take(Group(batch, records[i]));
}

/// Provides the memory of a pool. Back-ends with special memory (pinned for a GPU) have their own.
class MemorySource {
  public:
    virtual ~MemorySource() = default;
    /// Returns page-aligned memory that has been touched and lives as long as the source. Throws
    /// std::runtime_error with the reason.
    virtual std::byte* allocate(std::size_t bytes) = 0;
    /// The memory that was allocated, for the log: "64 MiB, huge pages, locked".
    [[nodiscard]] virtual const char* description() const = 0;
};

struct HostMemoryOptions {
    bool huge_pages = false;  ///< ask for 2 MiB pages; falls back to ordinary ones
    bool lock = true;         ///< mlock when the limit allows it
};

/// mmap'ed host memory.
std::unique_ptr<MemorySource> make_host_memory(const HostMemoryOptions& options);

/// A fixed number of batches in one piece of memory. take() and put() may be called from any thread; they
/// neither block nor allocate, but put() wakes the threads that wait.
class BatchPool {
  public:
    /// `batch_bytes` is rounded up to a page. Throws std::invalid_argument, or what the source throws.
    BatchPool(std::size_t batch_count, std::size_t batch_bytes, std::unique_ptr<MemorySource> memory);

    /// Sets a batch aside for one thread, for as long as the pool lives: nobody else can take it, and it is
    /// taken last. A thread that waits for a batch thus waits for its own at most, and not for batches that
    /// other threads of its kind hold while they wait for this one. Before other threads use the pool. Throws
    /// std::invalid_argument if no batch is left.
    Batch* set_aside();

    /// A cleared batch, or nullptr if all are in use. `own`: the batch that is set aside for the caller.
    Batch* take(Batch* own = nullptr);
    /// Waits until take(own) may find a batch, at most for `timeout`. Returns false after the timeout.
    bool wait(const Batch* own, std::chrono::microseconds timeout);
    /// Whether a thread waits now.
    [[nodiscard]] bool is_awaited() const { return waiting_.load(std::memory_order_relaxed) != 0; }
    /// Calls of wait(): how often a thread found no batch.
    [[nodiscard]] std::uint64_t waits() const { return waits_.load(std::memory_order_relaxed); }
    /// One more stage uses the batch; it will put it back, too.
    static void hold(Batch* batch) { batch->holders.fetch_add(1, std::memory_order_relaxed); }
    /// Returns a batch that came from take() or was held. It is free when all have returned it.
    void put(Batch* batch);

    [[nodiscard]] std::size_t count() const { return batches_.size(); }
    /// Approximate while other threads take and put.
    [[nodiscard]] std::size_t free_count() const { return free_count_.load(std::memory_order_relaxed); }
    [[nodiscard]] std::size_t batch_bytes() const { return batch_bytes_; }
    [[nodiscard]] const char* memory_description() const { return memory_->description(); }

  private:
    Batch* start_use(Batch& batch);
    void release(Batch* batch);
    void push(Batch* batch);
    void wake();
    [[nodiscard]] bool has_free(const Batch* own) const;

    std::unique_ptr<MemorySource> memory_;
    std::size_t batch_bytes_;
    std::vector<Batch> batches_;
    // The free batches form a stack of indices, so that the batch returned last, which is still in the cache,
    // is taken first. A queue goes through the whole pool instead: batches of 1 MiB were then filled at less
    // than half the rate while up to four were in use, and at four fifths with sixteen. The upper half of
    // top_ counts changes, so that a stale top never equals the current one (ABA).
    std::unique_ptr<std::atomic<std::uint32_t>[]> below_;
    std::atomic<std::uint64_t> top_;
    std::atomic<std::size_t> free_count_;

    // wait() adds to waiting_ before it looks for a batch, put() reads it after it has returned one: both are
    // read-modify-write operations, so one of them sees the other.
    std::atomic<std::uint32_t> waiting_{0};
    std::atomic<std::uint64_t> waits_{0};
    Mutex mutex_;
    std::condition_variable returned_;
};

}  // namespace petacq::net
