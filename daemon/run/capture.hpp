// The raw capture of a run: raw.pcap, next to the list-mode, holds every datagram as it was received.
//
// The acquisition offers the datagrams in the order in which it has read them, which is the order of their
// arrival; a thread writes them, one packet for each. The capture holds their batches until then. When the
// disk does not keep up, the capture refuses datagrams: it counts them as dropped, and nothing else suffers.
// When the disk fills up, the capture stops while there is still room for the list-mode.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "daemon/system/disk_thread.hpp"
#include "daemon/system/file.hpp"
#include "net/base/counter.hpp"
#include "net/batch.hpp"
#include "net/pcap/pcap_packets.hpp"
#include "net/wire.hpp"

namespace petacq::daemon {

/// Datagrams: offered = written + dropped + waiting.
struct CaptureCounts {
    std::uint64_t offered = 0;
    std::uint64_t written = 0;
    std::uint64_t dropped = 0;        ///< because the disk was too slow or failed
    std::uint64_t bytes = 0;          ///< size of the file
    std::uint64_t queue_batches = 0;  ///< batches of the pool that wait for the disk
    std::uint64_t queue_high_water = 0;
    double busy_s = 0;  ///< time spent on writing and syncing
};

class Capture {
  public:
    /// Creates the file; throws std::system_error. Holds at most `max_batches` of the pool, which must
    /// outlive the capture. Stops when fewer than `min_free_bytes` are free in the file system; 0: when
    /// writing fails. Syncs the file at this interval, and at the end.
    Capture(const std::filesystem::path& file, net::Framing framing, net::FrameVersion version,
            net::BatchPool& pool, std::size_t max_batches, std::uint64_t min_free_bytes,
            std::chrono::milliseconds sync_interval);
    ~Capture() { finish(); }
    Capture(const Capture&) = delete;
    Capture& operator=(const Capture&) = delete;

    /// One thread. Some datagrams of a batch, which stays the caller's.
    void offer(net::Batch& batch, std::span<const net::Datagram> datagrams);
    /// Any thread, after the last offer: writes what waits, and gives up after 5 s on a disk that is too
    /// slow. Further calls do nothing.
    void finish();

    /// Any thread.
    [[nodiscard]] CaptureCounts counts() const;
    /// Why the capture stopped early; empty while all is well.
    [[nodiscard]] std::string failure() const { return thread_->failure(); }
    /// After finish().
    [[nodiscard]] const FileIdentity& identity() const { return file_.identity(); }

  private:
    /// Datagrams of a batch that is held.
    struct Offered {
        net::Batch* batch = nullptr;
        std::span<const net::Datagram> datagrams;
    };

    void write(const Offered& offered);
    void drop(const Offered& offered);
    void give_back(const Offered& offered);
    void write_one(const net::Batch& batch, const net::Datagram& d);
    void flush();
    void check_room();
    void check_time() const;

    const net::Framing framing_;
    const net::FrameVersion version_;
    net::BatchPool& pool_;
    const std::size_t max_batches_;
    const std::uint64_t min_free_bytes_;
    const std::int64_t wall_minus_steady_ns_;
    // The writing thread alone uses these.
    File file_;
    net::PcapPackets packets_;
    std::uint64_t written_before_ = 0;  ///< datagrams, before those that are being written
    /// When, and at which size of the file, the free space was checked last.
    std::optional<std::chrono::steady_clock::time_point> room_checked_;
    std::uint64_t room_checked_bytes_ = 0;
    /// When finish() was called, ns of the steady clock; 0: not yet.
    std::atomic<std::int64_t> finishing_since_ns_{0};
    std::unique_ptr<std::atomic<std::uint32_t>[]> items_of_;  ///< in the queue, for each batch of the pool
    std::atomic<std::size_t> waiting_{0};                     ///< batches with items in the queue
    std::atomic<std::size_t> waiting_high_water_{0};          ///< only the thread that offers writes it
    net::Counter offered_;
    net::Counter refused_;
    net::Counter written_;
    net::Counter unwritten_;
    net::Counter bytes_;
    std::optional<DiskThread<Offered>> thread_;
};

}  // namespace petacq::daemon
