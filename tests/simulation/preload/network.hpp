// The UDP sockets of the daemon, seen from the boards.
#pragma once

#include <netinet/in.h>
#include <time.h>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "tests/simulation/preload/record.hpp"
#include "tests/simulation/preload/scheduler.hpp"

namespace petacq::simulation {

class Network {
  public:
    Network(Scheduler& scheduler, Record& record) : scheduler_(scheduler), record_(record) {}

    /// The daemon receives there, by this descriptor.
    void bound(int descriptor, const sockaddr_in& address) { daemon_.push_back({descriptor, address}); }
    /// To one of the daemon's sockets; lost while there is none.
    void send(std::size_t from, std::span<const std::byte> datagram);
    /// The virtual time at which a datagram with this time stamp of the kernel arrived.
    [[nodiscard]] std::int64_t arrival_ns(const timespec& stamp) const;

  private:
    struct Receiver {
        int descriptor;
        sockaddr_in address;
    };
    Scheduler& scheduler_;
    Record& record_;
    int socket_ = -1;
    std::vector<Receiver> daemon_;
    std::vector<std::pair<std::int64_t, std::int64_t>> sent_;  ///< real time, virtual time
};

}  // namespace petacq::simulation
