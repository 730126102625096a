// Datagrams over loopback or veth pairs as fast as it goes: a sender, a bare receive loop that discards what
// it reads, and the measurement of pairs of a sender and a receiver.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "net/sender.hpp"
#include "tools/petbench/base/measure.hpp"
#include "tools/petbench/base/suites.hpp"
#include "tools/petbench/receive/veth.hpp"

namespace petacq::bench {

/// What a receiver has received.
struct Totals {
    std::uint64_t datagrams = 0;
    std::uint64_t bytes = 0;
    double cpu_seconds = 0;  ///< of the receiving thread
};

/// The lower bound for the cost of receiving: one recvmmsg after the other into the same buffers.
class BareLoop {
  public:
    /// Throws std::system_error.
    BareLoop(const ReceiveSuite& options, const std::string& address);
    ~BareLoop();
    BareLoop(const BareLoop&) = delete;
    BareLoop& operator=(const BareLoop&) = delete;

    [[nodiscard]] std::uint16_t port() const { return port_; }
    Totals finish();

  private:
    void run();

    int fd_;
    std::uint16_t port_ = 0;
    std::atomic<bool> stop_{false};
    Totals totals_;
    std::thread thread_;
};

/// Sends the same block of datagrams over and over, with GSO in messages of the largest size, without a
/// shorter one at the end. All frames are valid.
class Load {
  public:
    Load(const std::string& address, std::uint16_t port, std::size_t payload, bool gso);
    ~Load() { finish(); }
    Load(const Load&) = delete;
    Load& operator=(const Load&) = delete;

    /// The number of datagrams sent.
    std::uint64_t finish();

  private:
    static constexpr std::size_t max_bytes = std::size_t{384} << 10;
    std::vector<std::byte> block_;
    std::vector<std::span<const std::byte>> payloads_;
    net::Sender sender_;
    std::atomic<bool> stop_{false};
    std::thread thread_;
};

/// One value for each measurement.
struct ReceiveFigures {
    std::vector<double> rate;  // datagrams/s
    std::vector<double> cpu;   // seconds per million datagrams
    std::vector<double> loss;  // fraction
};

/// Measures pairs of a Load and a Receiving once, and adds the figures. The datagrams go over `veth`; over
/// loopback if there is none.
template <class Receiving>
void measure(const ReceiveSuite& options, std::size_t payload, const VethPairs* veth,
             ReceiveFigures& figures) {
    const auto address = [veth](unsigned i) { return veth != nullptr ? veth->address(i) : "127.0.0.1"; };
    std::vector<std::unique_ptr<Receiving>> receivers;
    std::vector<std::unique_ptr<Load>> loads;
    {
        std::optional<Visit> guest;
        if (veth != nullptr) guest.emplace(veth->receivers());
        for (unsigned i = 0; i < options.pairs; ++i)
            receivers.push_back(std::make_unique<Receiving>(options, address(i)));
    }
    std::uint64_t sent = 0;
    const double seconds = seconds_of([&] {
        {
            std::optional<Visit> guest;
            if (veth != nullptr) guest.emplace(veth->senders());
            for (unsigned i = 0; i < options.pairs; ++i) {
                loads.push_back(
                    std::make_unique<Load>(address(i), receivers[i]->port(), payload, options.gso));
            }
        }
        std::this_thread::sleep_for(std::chrono::duration<double>(options.seconds));
        for (const auto& l : loads)
            sent += l->finish();
    });
    Totals sum;
    for (const auto& r : receivers) {
        const Totals t = r->finish();
        sum.datagrams += t.datagrams;
        sum.bytes += t.bytes;
        sum.cpu_seconds += t.cpu_seconds;
    }
    const auto datagrams = static_cast<double>(sum.datagrams);
    figures.rate.push_back(datagrams / seconds);
    figures.cpu.push_back(1e6 * sum.cpu_seconds / datagrams);
    figures.loss.push_back(1 - datagrams / static_cast<double>(sent));
}

}  // namespace petacq::bench
