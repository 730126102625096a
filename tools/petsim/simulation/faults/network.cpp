#include "tools/petsim/simulation/faults/network.hpp"

#include <utility>

namespace petacq::sim {

void Network::arrive(Packet packet) {
    packet.order = order_++;
    arrived_.push_back(std::move(packet));
}

void Network::send(Packet packet) {
    const std::uint64_t key = packet.key;
    arrive(std::move(packet));
    std::erase_if(held_back_, [&](HeldBack& h) {
        if (--h.remaining > 0) return false;
        h.packet.key = key;
        arrive(std::move(h.packet));
        return true;
    });
}

void Network::hold_back(Packet packet, Random& random) {
    held_back_.push_back({std::move(packet), 1 + random.below(faults_.reorder_span)});
}

void Network::release(std::uint64_t key) {
    for (HeldBack& h : held_back_) {
        h.packet.key = key;
        arrive(std::move(h.packet));
    }
    held_back_.clear();
}

}  // namespace petacq::sim
