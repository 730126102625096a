// Captured datagrams into batches, as a receiver would have done: the way in for --replay.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "net/admission.hpp"
#include "net/batch.hpp"
#include "net/pcap_reader.hpp"
#include "net/receiver.hpp"

namespace petacq::net {

/// Reads pcap files, merged by the time of their packets, in a thread of its own. It waits when the pool is
/// empty: nothing is dropped. Host time is that of the capture, see clock().
class Replayer {
  public:
    /// `options`: framing, allow-lists and flush interval are used as a receiver uses them. `ports`:
    /// destinations to read; empty: all. Throws what PcapReader does. Pool and queue outlive the replayer.
    Replayer(const std::vector<std::string>& files, const ReceiverOptions& options,
             const std::vector<std::uint16_t>& ports, BatchPool& pool, BatchQueue& output);
    ~Replayer();
    Replayer(const Replayer&) = delete;
    Replayer& operator=(const Replayer&) = delete;

    void start();
    /// Ends it before the files do. Idempotent; joins.
    void stop();
    /// Everything has been passed on, or reading failed.
    [[nodiscard]] bool done() const { return done_.load(std::memory_order_acquire); }
    /// Empty, or why reading ended before the files did. When done().
    [[nodiscard]] const std::string& failure() const { return failure_; }

    /// What the host's clock stood at, in nanoseconds, when the datagrams passed on last arrived: whoever has
    /// seen them all has seen all that came before it. Set it ahead when done, so that nobody waits for more.
    [[nodiscard]] std::atomic<std::int64_t>& clock() { return clock_; }
    [[nodiscard]] const ReceiverCounters& counters() const { return counters_; }
    /// Of all files together. When done().
    [[nodiscard]] PcapCounts packets() const;
    [[nodiscard]] std::uint64_t bytes() const;  ///< of the files together
    [[nodiscard]] std::uint64_t bytes_read() const { return read_.value(); }

  private:
    struct Input {
        PcapReader reader;
        CapturedDatagram datagram;
        bool has_datagram;
    };

    void run();
    Input* earliest();
    void take(const CapturedDatagram& datagram);
    void take_one(const CapturedDatagram& datagram, std::span<const std::byte> payload);
    [[nodiscard]] bool make_room(std::size_t bytes);
    void pass_on();

    const Framing framing_;
    const Admission admission_;
    const std::int64_t flush_interval_ns_;
    BatchPool& pool_;
    BatchQueue& output_;
    moodycamel::ProducerToken token_;
    std::vector<std::unique_ptr<Input>> inputs_;
    Batch* batch_ = nullptr;
    ReceiverCounters counters_;
    Counter read_;
    std::atomic<std::int64_t> clock_{0};
    std::atomic<bool> stopping_{false};
    std::atomic<bool> done_{false};
    std::string failure_;
    std::thread thread_;
};

/// Datagrams that were captured as one, as the kernel joins and splits them on their way (GSO, GRO): the
/// length of each but the last, told by where headers stand. A payload of one datagram gives its own length.
std::size_t joined_length(std::span<const std::byte> payload);

}  // namespace petacq::net
