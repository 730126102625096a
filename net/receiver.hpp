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
    std::string multicast_interface;  ///< IPv4 address of the interface to join on; empty: the system's choice
    bool reuse_port = false;          ///< several receivers on one port: the kernel spreads senders over them
    std::size_t receive_buffer_bytes = 64U << 20;
    bool gro = true;  ///< let the kernel coalesce datagrams; split again here
    int cpu = -1;     ///< core the thread is pinned to; -1: not pinned
    Framing framing = Framing::sequenced;
    int flush_interval_ms = 5;  ///< a batch that is not full is passed on after this long
    /// Senders that may send (host byte order) and ids that may be used; empty: all.
    std::vector<std::uint32_t> allowed_addresses;
    std::vector<std::uint16_t> allowed_sources;
};

/// What one receiver counted since it was made. received = delivered + malformed + unknown_source +
/// dropped_no_buffer, whenever the receiver is not in the middle of a datagram.
struct ReceiverCounters {
    Counter datagrams_received;
    Counter datagrams_delivered;          ///< passed on in batches
    Counter datagrams_malformed;
    Counter datagrams_unknown_source;     ///< not on an allow-list
    Counter datagrams_dropped_no_buffer;  ///< no free batch
    Counter datagrams_dropped_kernel;     ///< socket queue full (SO_MEMINFO); beside `received`, not in it
    Counter frames_delivered;
    Counter frames_dropped_no_buffer;
    Counter bytes_received;  ///< UDP payload
    Counter batches;
};

/// Receives from construction of its thread (start) until stop. Not copyable; start and stop from one thread.
class Receiver {
  public:
    /// Opens, configures and binds the socket, so that every error of set-up is thrown here:
    /// std::runtime_error naming the address, the port and the reason. Full batches go to `output`.
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
