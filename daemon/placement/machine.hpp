// Where threads and memory belong on a machine of several NUMA nodes: near the devices whose data they touch.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "net/base/cores.hpp"

// NOLINTNEXTLINE(readability-identifier-naming): of hwloc
struct hwloc_topology;

namespace petacq::daemon {

/// The threads that placement has to find cores for, and the devices whose data they touch.
struct PlacementWish {
    struct Receiver {
        net::Cores cores = {};                     ///< chosen by the operator; empty: near its interfaces
        std::vector<std::string> interfaces = {};  ///< by which its datagrams may come; empty: not known
    };
    std::vector<Receiver> receivers;
    std::string gpu;                 ///< PCI address; empty: none
    std::size_t result_threads = 0;  ///< that are busy with what comes from the GPU
};

/// Cores for each; empty: any.
struct Placement {
    std::vector<net::Cores> receivers;
    /// It reads the records that the receivers write.
    net::Cores acquisition;
    /// The pool lies near these: with the receivers, which write it one line after the other and wait for
    /// each, while the GPU has many reads under way. If the receivers are not together, it lies near the GPU.
    net::Cores pool;
    /// The threads of the GPU and those that write list-mode.
    net::Cores results;
};

/// Where everything runs on any cores but for what the operator has chosen.
Placement unplaced(const PlacementWish& wish);

/// The machine as this program may use it: placed is only what taskset, the service manager and the container
/// allow. No thread-safety.
class Machine {
  public:
    /// Looks at the host, or at what the environment variables of hwloc say instead. Throws
    /// std::system_error.
    Machine();
    ~Machine();
    Machine(const Machine&) = delete;
    Machine& operator=(const Machine&) = delete;

    /// Each gets the smallest part of the machine around its device that has a core for each thread placed
    /// there. What would get all cores gets none: so does everything on a machine of one node.
    [[nodiscard]] Placement place(const PlacementWish& wish) const;
    /// Whether it has several NUMA nodes with cores.
    [[nodiscard]] bool divided() const;

  private:
    struct Free {
        void operator()(hwloc_topology* topology) const;
    };
    std::unique_ptr<hwloc_topology, Free> topology_;
};

}  // namespace petacq::daemon
