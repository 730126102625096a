// The UDP receiver: one socket, one thread, one io_context.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "net/batch.hpp"
#include "net/counter.hpp"
#include "net/wire.hpp"

namespace petacq::net {

struct ReceiverOptions {
    std::string address = "0.0.0.0";  ///< IPv4 address to bind
    std::uint16_t port = 0;           ///< 0: any free port (see Receiver::port)
    std::string multicast_group;      ///< joined when not empty
    std::string
        multicast_interface;  ///< IPv4 address of the interface to join on; empty: the system's choice
    /// Several receivers on one port: the kernel spreads senders over them. Multicast is not spread: each
    /// receiver that joins gets every datagram.
    bool reuse_port = false;
    std::size_t receive_buffer_bytes = 64U << 20;
    bool gro = true;  ///< let the kernel coalesce datagrams; split again here
    int cpu = -1;     ///< core the thread is pinned to; -1: not pinned
    Framing framing = Framing::sequenced;
    int flush_interval_ms = 5;  ///< a batch that is not full is passed on this long after its first datagram
    /// Senders that may send (host byte order); empty: all.
    std::vector<std::uint32_t> allowed_addresses;
    /// Ids that may be used; empty: all. Bare framing has no ids and ignores it.
    std::vector<std::uint16_t> allowed_sources;
    /// Put malformed datagrams and those of unknown sources into the batches, too, marked as rejected.
    bool keep_rejected = false;
    /// A bound UDP socket that was opened by somebody else, who may keep it open when we are gone; -1: none,
    /// and the receiver opens its own. It must be the one that `address` and `port` name. Closed by the
    /// receiver.
    int descriptor = -1;
};

/// What one receiver counted since it was made. received = delivered + malformed + unknown_source +
/// dropped_no_buffer, whenever the receiver is not in the middle of a read; `received` is added last.
struct ReceiverCounters {
    Counter datagrams_received;
    Counter datagrams_delivered;  ///< passed on in batches
    Counter datagrams_malformed;
    Counter datagrams_unknown_source;     ///< not on an allow-list
    Counter datagrams_dropped_no_buffer;  ///< no free batch
    /// Socket queue full (SO_MEMINFO, read a few times a second and at stop); beside `received`, not in it.
    /// With GRO the kernel counts coalesced datagrams as one: gaps in the sequence numbers are the truth.
    Counter datagrams_dropped_kernel;
    /// Waited in a socket of somebody else's before start; beside `received`, not in it.
    Counter datagrams_discarded_backlog;
    Counter frames_delivered;
    Counter frames_dropped_no_buffer;
    Counter bytes_received;  ///< UDP payload
    Counter batches;
    Counter cpu_ns;       ///< CPU time of the receive thread, read when the kernel's drops are
    Counter cpu_read_ns;  ///< steady clock when it was
    Counter polls;        ///< times it was: the thread's sign of life, a few a second while it runs
};

/// Receives from start until stop, which happen once each and from one thread. What arrives before start
/// waits in the socket, and is discarded when that is one of somebody else's: it came while nobody took part.
/// Pool and queue outlive the receiver.
class Receiver {
  public:
    /// Opens, configures and binds the socket, so that every error of set-up is thrown here:
    /// std::runtime_error naming the address, the port and the reason; std::invalid_argument when a batch of
    /// the pool is smaller than 64 KiB, and so than the largest datagram, and when the socket of somebody
    /// else's is not what the options say. Full batches go to `output`.
    Receiver(ReceiverOptions options, BatchPool& pool, BatchQueue& output);
    ~Receiver();
    Receiver(const Receiver&) = delete;
    Receiver& operator=(const Receiver&) = delete;

    void start();
    /// Drains what the socket already holds, passes on the last batch, joins the thread. Idempotent.
    void stop();

    [[nodiscard]] std::uint16_t port() const;
    /// What the kernel granted, as SO_RCVBUF reports it (bytes, the kernel's doubling taken off).
    [[nodiscard]] std::size_t receive_buffer_bytes() const;
    /// Warnings of set-up an operator can act on (buffer clipped, pinning refused, no GRO), empty when none.
    [[nodiscard]] const std::vector<std::string>& warnings() const;
    [[nodiscard]] const ReceiverCounters& counters() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace petacq::net
