// The UDP sockets of the daemon, seen from the boards. Those of the kernel are bound, and hear nothing: what
// the boards send waits here until it is read.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <vector>

#include "tests/simulation/preload/record.hpp"
#include "tests/simulation/preload/scheduler.hpp"

namespace petacq::simulation {

class Network {
  public:
    Network(Scheduler& scheduler, Record& record) : scheduler_(scheduler), record_(record) {}

    /// To one of the daemon's sockets; lost while there is none.
    void send(std::size_t from, std::span<const std::byte> datagram);

    // The calls of the daemon.
    void made(int descriptor);
    /// The buffer of the socket has its size by now.
    void bound(int descriptor);
    void closed(int descriptor);
    [[nodiscard]] bool has(int descriptor) const { return sockets_.count(descriptor) != 0; }
    /// Reads one datagram into the message, with its time stamp on a clock that shows `wall_ns` more than
    /// that of the scheduler. Returns its size; -1: there is none.
    ssize_t receive(int descriptor, msghdr& message, int flags, std::int64_t wall_ns);
    /// As SO_MEMINFO tells: bytes that wait, with what the kernel adds to each datagram, and dropped
    /// datagrams.
    struct Memory {
        std::uint32_t queued = 0;
        std::uint32_t dropped = 0;
    };
    [[nodiscard]] Memory memory(int descriptor) const { return sockets_.at(descriptor).memory; }

  private:
    struct Waiting {
        std::int64_t arrived_ns;
        std::vector<std::byte> bytes;
    };
    struct Socket {
        std::uint32_t room = 0;
        Memory memory{};
        std::deque<Waiting> waiting{};
    };
    Scheduler& scheduler_;
    Record& record_;
    std::map<int, Socket> sockets_;
    std::vector<int> order_;  ///< in which they were bound
};

}  // namespace petacq::simulation
