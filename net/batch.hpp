// Batches of received datagrams and the fixed pool they come from.
//
// A receiver takes a free batch and receives into it until it is full. Meanwhile the next stage already reads
// the datagrams that the batch holds (batch_queue.hpp), so a batch is never given up half empty. The last
// stage that uses it puts it back. While the pool is empty, datagrams wait in the socket buffers.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "net/endpoint.hpp"
#include "net/mutex.hpp"
#include "net/records.hpp"

namespace petacq::net {

enum class Admitted : std::uint8_t { yes, malformed, unknown_source };

/// One datagram inside a batch: a line of the cache, since it passes from core to core.
struct alignas(64) Datagram {
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
    std::uint8_t first_bdm = 0;  ///< module in the first valid hit
    std::uint8_t last_bdm = 0;   ///< module in the last valid hit
    bool hits = true;            ///< some valid frames are hits, so that the modules say something
    /// Others than `yes` are kept for a capture only (ReceiverOptions::keep_rejected), or to be counted in a
    /// replay. `offset` is then the offset of its first byte, and need not be a multiple of 16.
    Admitted admitted = Admitted::yes;
    std::int16_t temperature_16ths = 0;  ///< in the last valid hit: sixteenths of a degree C
};
static_assert(sizeof(Datagram) == 64);

/// A piece of pool memory with the datagrams received into it. One thread fills it; others read only the
/// datagrams that it has published (BatchLane).
struct Batch {
    std::byte* data = nullptr;
    std::size_t capacity = 0;          ///< bytes
    std::size_t used = 0;              ///< bytes from the start that hold received data
    RecordVector<Datagram> datagrams;  ///< capacity reserved once; never grows while running
    std::size_t max_datagrams = 0;
    std::uint32_t index = 0;                  ///< position in the pool
    Endpoint to;                              ///< the socket that received it
    std::atomic<std::uint32_t> published{0};  ///< of a BatchLane
    std::atomic<std::uint32_t> holders{0};    ///< of the pool
    bool set_aside = false;                   ///< for one thread (BatchPool::set_aside)
    std::atomic<bool> at_home{false};         ///< of a batch that is set aside: it is free

    void clear() {
        used = 0;
        datagrams.clear();
        published.store(0, std::memory_order_relaxed);
    }
};

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
    // is taken first. The upper half of top_ counts changes, so that a stale top never equals the current one
    // (ABA).
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
