// The UDP receiver: one socket, one thread, one io_context.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "net/base/cores.hpp"
#include "net/base/counter.hpp"
#include "net/batch_queue.hpp"
#include "net/endpoint.hpp"
#include "net/receive/counters.hpp"
#include "net/receive/multicast.hpp"
#include "net/receive/overload_gate.hpp"
#include "net/receive/samples.hpp"
#include "net/receive/unknown_senders.hpp"
#include "net/wire.hpp"

namespace petacq::net {

struct ForeignFormat;

/// A source that may send.
struct AllowedSource {
    std::uint16_t id = 0;  ///< sequenced framing
    /// Bare framing: its address and port. Sequenced framing: its address alone; 0: any.
    Endpoint sender;
    Modules modules{};  ///< whose frames it carries; none: not known
};

/// Several receivers of this process may share a port; the kernel distributes the senders over them.
/// Multicast is not distributed: each receiver that joins a group gets every datagram. No other process gets
/// a share.
enum class PortUse : std::uint8_t {
    alone,
    first,   ///< others will follow; refused like `alone` if anybody holds the port
    follows  ///< after the first
};

struct ReceiverOptions {
    std::string address = "0.0.0.0";  ///< to bind; ::, too, receives from IPv4 senders
    std::uint16_t port = 0;           ///< 0: any free port (see Receiver::port)
    /// Joined. The address is then 0.0.0.0, :: or a group: a socket of a unicast address gets none of them.
    std::vector<std::string> multicast_groups;
    /// Name or address of the interface to join on; empty: the system chooses.
    std::string multicast_interface;
    /// Joined are the datagrams of these senders to the groups; empty: all.
    std::vector<std::string> multicast_sources;
    std::size_t receive_buffer_bytes = 64U << 20;
    PortUse port_use = PortUse::alone;
    /// The address, and the interface of a group, need not exist yet.
    bool free_bind = false;
    bool gro = true;  ///< let the kernel coalesce datagrams; the receiver splits them again
    /// Also put malformed datagrams into the batches, marked as such.
    bool keep_rejected = false;
    Cores cores;  ///< on which the thread runs
    Framing framing = Framing::sequenced;
    FrameCheck frames;  ///< which frames speak for a time
    /// The format of the boards, if it is not petacqd's own; its framing is `framing`.
    std::shared_ptr<ForeignFormat> foreign;
    /// A receiver that hears nothing looks this often, and publishes that it has read everything.
    int flush_interval_ms = 5;
    /// Addresses that may send; empty: all.
    std::vector<std::uint32_t> allowed_addresses;
    /// Sources that may send; empty: all. Datagrams of others are counted and take no room in a batch.
    std::vector<AllowedSource> allowed_sources;
    /// A bound UDP socket that another program (systemd) opened and may keep open after this one exits; -1:
    /// the receiver opens its own. It must be bound to `address` and `port`. The receiver closes this
    /// descriptor.
    int descriptor = -1;
};

/// Counts of one receiver since its construction. received = delivered + malformed + unknown_source +
/// dropped_no_buffer, except while the receiver is updating them; it adds to `received` last.
struct ReceiverCounters {
#define PETACQ_RECEIVER_COUNTER(section, name, ...) Counter datagrams_##name;
    PETACQ_RECEIVER_COUNTERS(PETACQ_RECEIVER_COUNTER)
#undef PETACQ_RECEIVER_COUNTER
    Counter datagrams_delivered;  ///< published in batches
    Counter frames_delivered;
    Counter frames_dropped_no_buffer;
    Counter bytes_received;  ///< UDP payload
    Counter batches;
    Counter cpu_ns;       ///< CPU time of the receive thread, read together with the kernel's drops
    Counter cpu_read_ns;  ///< steady clock at that reading
    Counter polls;        ///< number of these readings: a few a second while the thread is alive
};

/// Receives from start() to stop(), and then closes its lane. Call each once, from the same thread. Datagrams
/// that arrive before start() wait in the socket; in an inherited socket they are discarded, because they
/// arrived while no daemon was running. While no batch is free, datagrams wait in the socket, and its lane
/// stands. One batch of the pool is set aside for each receiver, so that none waits for the others. The pool
/// and the lane must outlive the receiver.
class Receiver {
  public:
    /// Opens, configures and binds the socket. Datagrams go to `output`. Throws every error of the set-up:
    /// std::runtime_error with the address, the port and the reason; std::invalid_argument if the batches are
    /// smaller than 64 KiB, the largest datagram, or if an inherited socket does not match the options.
    /// `gate`: what all receivers drop in an overload, and outlives them; nullptr: nothing but what the
    /// kernel drops.
    Receiver(ReceiverOptions options, BatchPool& pool, BatchLane& output, OverloadGate* gate = nullptr);
    ~Receiver();
    Receiver(const Receiver&) = delete;
    Receiver& operator=(const Receiver&) = delete;

    void start();
    /// Reads the datagrams in the socket, publishes the last batch, joins the thread. Waits while batches
    /// come back; the datagrams that remain after that are counted and dropped. Idempotent.
    void stop();

    [[nodiscard]] std::uint16_t port() const;
    /// On which the thread runs; empty: any, or not started.
    [[nodiscard]] const Cores& cores() const;
    /// The bytes that the kernel granted: half of SO_RCVBUF, which the kernel doubles.
    [[nodiscard]] std::size_t receive_buffer_bytes() const;
    /// Warnings of the set-up that an operator can act on: buffer too small, pinning refused, no GRO.
    [[nodiscard]] const std::vector<std::string>& warnings() const;
    [[nodiscard]] const ReceiverCounters& counters() const;
    /// Its multicast groups, as of a moment ago. Any thread.
    [[nodiscard]] std::vector<Membership> memberships() const;
    /// The unknown senders heard last, as of a moment ago. Any thread.
    [[nodiscard]] std::vector<UnknownSender> unknown_senders() const;
    /// Datagrams of the latest seconds, of unknown senders and of others, as of a moment ago. Any thread.
    [[nodiscard]] std::vector<DatagramSample> samples() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace petacq::net
