// Faults of the network: it loses datagrams, sends them twice, or holds them back behind later ones.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/petsim/random/random.hpp"
#include "tools/petsim/simulation/base/options.hpp"
#include "tools/petsim/simulation/base/packet.hpp"

namespace petacq::sim {

/// The network behind one source.
class Network {
  public:
    /// Both must outlive it. `arrived`: gets the packets, with their order.
    Network(const Faults& faults, std::vector<Packet>& arrived) : faults_(faults), arrived_(arrived) {}

    // What happens to a datagram: to be drawn in this order.
    [[nodiscard]] bool loses(Random& random) const { return happens(faults_.loss, random); }
    [[nodiscard]] bool duplicates(Random& random) const { return happens(faults_.duplicate, random); }
    [[nodiscard]] bool holds_back(Random& random) const { return happens(faults_.reorder, random); }

    /// Sends a packet, and then those that it was the last to overtake.
    void send(Packet packet);
    /// Sends a packet after some later ones.
    void hold_back(Packet packet, Random& random);
    /// Sends all that are still held back, at time `key`.
    void release(std::uint64_t key);

  private:
    struct HeldBack {
        Packet packet;
        std::uint32_t remaining;  // later ones to be sent before it
    };
    static bool happens(double probability, Random& random) {
        return probability > 0 && random.chance(probability);
    }
    void arrive(Packet packet);

    const Faults& faults_;
    std::vector<Packet>& arrived_;
    std::vector<HeldBack> held_back_;
    std::uint64_t order_ = 0;
};

}  // namespace petacq::sim
