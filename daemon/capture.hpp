// The raw capture of a run: every datagram as it was received, as raw.pcap beside the list-mode.
//
// It lies behind the acquisition, which hands over batches that it is done with instead of giving them back;
// a thread writes them and gives them back. When the disk does not keep up, batches are not taken any more:
// that costs datagrams of the capture, which are counted, and nothing else. When the disk becomes full the
// capture ends while there is still room for the list-mode.
#pragma once

#include <concurrentqueue/blockingconcurrentqueue.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "net/batch.hpp"
#include "net/counter.hpp"
#include "net/pcap_writer.hpp"
#include "net/wire.hpp"

namespace petacq::daemon {

/// Datagrams offered = written + dropped + still waiting.
struct CaptureCounts {
    std::uint64_t offered = 0;
    std::uint64_t written = 0;
    std::uint64_t dropped = 0;        ///< the disk was too slow, or failed
    std::uint64_t bytes = 0;          ///< of the file
    std::uint64_t queue_batches = 0;  ///< batches of the pool that wait for the disk now
    std::uint64_t queue_high_water = 0;
    double busy_s = 0;  ///< time spent on writing
};

class Capture {
  public:
    /// Makes the file; throws std::system_error naming it. At most `max_batches` of the pool are kept waiting
    /// for the disk. The pool outlives this object. The capture ends when fewer than `min_free_bytes` are
    /// free in the file system; 0: when nothing can be written any more.
    Capture(const std::filesystem::path& file, net::Framing framing, net::BatchPool& pool,
            std::size_t max_batches, std::uint64_t min_free_bytes);
    ~Capture();
    Capture(const Capture&) = delete;
    Capture& operator=(const Capture&) = delete;

    /// One thread. Takes the batch over, or returns false: then it stays with the caller, and its datagrams
    /// are counted as dropped.
    bool offer(net::Batch* batch);
    /// The same thread. The first `count` datagrams of a batch that stays with the caller; copies them.
    void offer_part(const net::Batch& batch, std::size_t count);
    /// After the last offer, any thread: writes what waits and closes the file. Idempotent.
    void finish();

    /// Any thread.
    [[nodiscard]] CaptureCounts counts() const;
    /// Why it ended early; empty while all is well.
    [[nodiscard]] std::string failure() const;

  private:
    /// A batch of the pool, or a copy of a part of one; neither: the end.
    struct Item {
        net::Batch* batch = nullptr;
        std::unique_ptr<net::Batch> copy;
        std::unique_ptr<std::byte[]> bytes;
    };

    void run();
    void write(const net::Batch& batch);
    void flush();
    void check_room();
    void fail(const std::string& why);

    const std::filesystem::path file_;
    const net::Framing framing_;
    net::BatchPool& pool_;
    const std::size_t max_batches_;
    const std::uint64_t min_free_bytes_;
    const std::int64_t wall_minus_steady_ns_;
    net::PcapWriter writer_;     // of the thread
    std::size_t unflushed_ = 0;  // of the thread
    bool failed_ = false;        // of the thread
    // Of the thread: when and at which size of the file the room was looked at last.
    std::optional<std::chrono::steady_clock::time_point> room_checked_;
    std::uint64_t room_checked_bytes_ = 0;
    moodycamel::BlockingConcurrentQueue<Item> queue_;
    std::atomic<std::size_t> waiting_{0};
    std::atomic<std::size_t> waiting_high_water_{0};  ///< written by the thread that offers
    net::Counter offered_;
    net::Counter refused_;
    net::Counter written_;
    net::Counter unwritten_;
    net::Counter bytes_;
    net::Counter busy_ns_;
    mutable std::mutex mutex_;  // guards failure_
    std::string failure_;
    std::thread thread_;
};

}  // namespace petacq::daemon
