// From captures into batches, as a receiver would have filled them: the input of --replay.
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

/// Reads pcap files, merged by the time of their packets, in a thread of its own. It drops nothing: while the
/// pool is empty it waits. The time of the host is the time of the capture, see clock().
class Replayer {
  public:
    /// Uses the framing, the allow-lists and the flush interval of `options`, as a receiver does. `ports`:
    /// destination ports to read; empty: all. Throws what PcapReader throws. The pool and the queue must
    /// outlive the replayer.
    Replayer(const std::vector<std::string>& files, const ReceiverOptions& options,
             const std::vector<std::uint16_t>& ports, BatchPool& pool, BatchQueue& output);
    ~Replayer();
    Replayer(const Replayer&) = delete;
    Replayer& operator=(const Replayer&) = delete;

    void start();
    /// Stops before the end of the files if necessary, and joins the thread. Idempotent.
    void stop();
    /// True when everything has been passed on or reading has failed.
    [[nodiscard]] bool done() const { return done_.load(std::memory_order_acquire); }
    /// Why reading stopped before the end of the files; empty if it did not. Valid when done().
    [[nodiscard]] const std::string& failure() const { return failure_; }

    /// Host time of the replay in nanoseconds: the arrival of the first datagram of the batch passed on last.
    /// A consumer that has taken all batches has seen every datagram that arrived before it. When done(), the
    /// consumer may set it ahead, so that no stage waits for more.
    [[nodiscard]] std::atomic<std::int64_t>& clock() { return clock_; }
    [[nodiscard]] const ReceiverCounters& counters() const { return counters_; }
    /// Sums over all files. Valid when done().
    [[nodiscard]] PcapCounts packets() const;
    [[nodiscard]] std::uint64_t bytes() const;  ///< size of all files together
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
    [[nodiscard]] bool append(const CapturedDatagram& datagram, std::span<const std::byte> payload,
                              const DatagramHeader& header);
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

/// The kernel coalesces datagrams (GSO, GRO), and a capture may hold several as one payload. Returns the
/// length of each of them but the last, found from the positions of the headers; for a single datagram its
/// own length.
std::size_t joined_length(std::span<const std::byte> payload);

}  // namespace petacq::net
