// From captures into batches, as a receiver would have filled them: the input of --replay.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "net/base/counter.hpp"
#include "net/batch_queue.hpp"
#include "net/foreign/translator.hpp"
#include "net/pcap/pcap_reader.hpp"
#include "net/receive/admission.hpp"
#include "net/receive/receiver.hpp"

namespace petacq::net {

/// Reads captures, merged by the time of their packets, in a thread of its own. It drops nothing: while the
/// pool is empty it waits. Host time is the time of the packets, and never goes back. Datagrams that a
/// receiver would only count are published, too, without their bytes: the reader counts them when it takes
/// them.
class Replayer {
  public:
    /// Uses the framing and the allow-lists of `options`, as a receiver does. A foreign format applies to
    /// captures of other programs: those of petacqd hold its own frames. `ports`: destination ports to read;
    /// empty: all. Throws what PcapReader throws. The pool and the lane must outlive the replayer.
    Replayer(const std::vector<std::string>& files, const ReceiverOptions& options,
             const std::vector<std::uint16_t>& ports, BatchPool& pool, BatchLane& output);
    ~Replayer();
    Replayer(const Replayer&) = delete;
    Replayer& operator=(const Replayer&) = delete;

    /// Time of the first datagram; absent if there is none.
    [[nodiscard]] std::optional<std::int64_t> first_time_ns() const { return first_time_ns_; }

    void start();
    /// Stops before the end of the files if necessary, and joins the thread. Idempotent. The lane is closed
    /// then.
    void stop();
    /// True when everything has been published or reading has failed.
    [[nodiscard]] bool done() const { return done_.load(std::memory_order_acquire); }
    /// Why reading stopped before the end of the files; empty if it did not. Valid when done().
    [[nodiscard]] const std::string& failure() const { return failure_; }

    /// Sums over all files. Valid when done().
    [[nodiscard]] PcapCounts packets() const;
    /// Packets that the capturing programs did not get, by what the files say; absent: none says anything.
    [[nodiscard]] std::optional<std::uint64_t> dropped() const;
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
    void take(const Input& input);
    void take_one(const CapturedDatagram& datagram, std::span<const std::byte> payload);
    void translate(const CapturedDatagram& datagram);
    Datagram& add_record(const CapturedDatagram& datagram, Admitted admitted);
    [[nodiscard]] bool make_room(std::size_t bytes);
    void finish();

    const Framing framing_;
    const Admission admission_;
    std::optional<Translator> translator_;
    std::vector<std::byte> foreign_;  // the datagram being translated
    BatchPool& pool_;
    BatchLane& output_;
    std::vector<std::unique_ptr<Input>> inputs_;
    Batch* batch_ = nullptr;
    std::int64_t now_ns_ = 0;
    std::optional<std::int64_t> first_time_ns_;
    Counter read_;
    std::atomic<bool> stopping_{false};
    std::atomic<bool> done_{false};
    std::string failure_;
    std::jthread thread_;
};

/// The kernel coalesces datagrams (GSO, GRO), and a capture of another program may hold several as one
/// payload. Returns the length of each of them but the last, found from the positions of the headers; for a
/// single datagram its own length.
std::size_t joined_length(std::span<const std::byte> payload, FrameVersion version);

}  // namespace petacq::net
