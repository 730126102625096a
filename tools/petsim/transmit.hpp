// Sends a simulated stream at its pace.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "net/sender.hpp"
#include "tools/petsim/simulation.hpp"

namespace petacq::sim {

struct TransmitOptions {
    std::vector<net::SenderOptions> destinations;  ///< source s goes to number s % size
    double pace = 1;                               ///< detector seconds per second; 0: as fast as possible
    double tick_ps = 1;
    double burst_us = 500;  ///< host time: what is due in it goes out together
};

/// Datagrams one behind the other in memory, per destination, so that equal neighbours can go out as one.
class StreamStore {
  public:
    struct Entry {
        std::uint64_t due_ticks;
        const std::byte* data;
        std::uint32_t size;
        std::uint32_t destination;
    };
    explicit StreamStore(std::size_t destinations) : blocks_(destinations) {}
    void add(const Datagram& datagram);
    void clear();
    [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

  private:
    struct Block {
        std::unique_ptr<std::byte[]> data;  // NOLINT(modernize-avoid-c-arrays): not to be touched before use
        std::size_t used = 0;
    };
    struct Chain {
        std::vector<Block> blocks;
        std::size_t current = 0;
    };
    std::vector<Chain> blocks_;
    std::vector<Entry> entries_;
    std::uint64_t bytes_ = 0;
};

/// One thread. Sends in the order given; waits only with clock_nanosleep.
class Transmitter {
  public:
    /// Throws std::runtime_error naming a destination that cannot be used. `stop` ends waits early.
    Transmitter(const TransmitOptions& options, const std::atomic<bool>& stop);

    /// Takes a datagram now or waits until it is due; it may go out with later ones.
    void add(const Datagram& datagram);
    /// Everything added is handed to the kernel.
    void flush();
    /// Sends a whole prepared stream; `report` is called with the share sent.
    void play(const StreamStore& stream, const std::function<void(double)>& report);

    [[nodiscard]] std::size_t destinations() const { return senders_.size(); }
    [[nodiscard]] std::uint64_t datagrams_sent() const;
    /// How late a burst left at worst, host seconds; 0 when not paced.
    [[nodiscard]] double worst_delay_s() const { return worst_delay_s_; }
    [[nodiscard]] bool gso() const { return senders_.front()->gso(); }

  private:
    void wait_for(std::uint64_t due_ticks);
    [[nodiscard]] std::uint64_t burst_of(std::uint64_t due_ticks) const;
    void send(std::span<const StreamStore::Entry> entries);

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
