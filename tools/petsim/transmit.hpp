// Sends a simulated stream in real time, or scaled to it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "net/sender.hpp"
#include "tools/petsim/simulation/simulation.hpp"

namespace petacq::sim {

struct TransmitOptions {
    std::vector<net::SenderOptions> destinations;  ///< source s sends to destination s % size
    double pace = 1;                               ///< detector seconds per second; 0: as fast as possible
    double tick_ps = 1;
    double burst_us = 500;  ///< host time; datagrams due within it are sent together
};

/// Stores datagrams back to back per destination, so that datagrams of equal size can be sent with GSO.
class StreamStore {
  public:
    struct StreamEntry {
        std::uint64_t due_ticks;
        const std::byte* data;
        std::uint32_t size;
        std::uint32_t destination;
    };
    explicit StreamStore(std::size_t destinations) : blocks_(destinations) {}
    void add(const Datagram& datagram);
    void clear();
    [[nodiscard]] const std::vector<StreamEntry>& entries() const { return entries_; }
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

  private:
    struct StreamBlock {
        std::unique_ptr<std::byte[]> data;  // NOLINT(modernize-avoid-c-arrays): not to be touched before use
        std::size_t used = 0;
    };
    struct Chain {
        std::vector<StreamBlock> blocks;
        std::size_t current = 0;
    };
    std::vector<Chain> blocks_;
    std::vector<StreamEntry> entries_;
    std::uint64_t bytes_ = 0;
};

/// Sends datagrams in the order of the calls, and waits with clock_nanosleep. For one thread.
class Transmitter {
  public:
    /// Throws std::runtime_error naming a destination that cannot be used. Setting `stop` ends a wait early.
    Transmitter(const TransmitOptions& options, const std::atomic<bool>& stop);

    /// Takes a datagram, waiting until it is due if necessary. It may be sent together with later ones.
    void add(const Datagram& datagram);
    /// Hands everything added so far to the kernel.
    void flush();
    /// Sends a prepared stream. Calls `report` with the fraction sent.
    void play(const StreamStore& stream, const std::function<void(double)>& report);

    [[nodiscard]] std::size_t destinations() const { return senders_.size(); }
    [[nodiscard]] std::uint64_t datagrams_sent() const;
    /// The longest delay of a burst, host seconds; 0 if the pace is unlimited.
    [[nodiscard]] double worst_delay_s() const { return worst_delay_s_; }
    [[nodiscard]] bool gso() const { return senders_.front()->gso(); }

  private:
    void wait_for(std::uint64_t due_ticks);
    [[nodiscard]] std::uint64_t burst_of(std::uint64_t due_ticks) const;
    void send(std::span<const StreamStore::StreamEntry> entries);

    const std::atomic<bool>& stop_;
    double ns_per_tick_;  // host time
    double burst_ns_;
    std::vector<std::unique_ptr<net::Sender>> senders_;
    std::vector<std::vector<std::span<const std::byte>>> lists_;
    StreamStore store_;
    std::uint64_t burst_ = 0;
    std::int64_t start_ns_ = -1;
    double worst_delay_s_ = 0;
};

}  // namespace petacq::sim
