// A simulated stream as a pcap file instead of on the network, and such a file onto the network.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "net/pcap_writer.hpp"
#include "tools/petsim/transmit.hpp"

namespace petacq::sim {

/// Packets are stamped with the time they are due, counted from 1970, so that the same options give the same
/// file. Source s sends from port 40000 + s. One thread.
class CaptureFile {
  public:
    /// Throws std::system_error when the file exists or cannot be made. `to`: as Transmitter spreads sources
    /// over destinations.
    CaptureFile(const std::string& file, std::vector<net::Endpoint> to, double tick_ps);

    void add(const Datagram& datagram);
    /// Everything added is in the file.
    void flush();

    [[nodiscard]] std::uint64_t datagrams_written() const { return writer_.packets_written(); }

  private:
    net::PcapWriter writer_;
    std::vector<net::Endpoint> to_;
    double ns_per_tick_;
    StreamStore store_{1};  // what the writer has not written yet
    std::vector<std::uint16_t> sources_;
};

struct SendCaptureOptions {
    std::string file;
    net::SenderOptions destination;
    double speed = 1;  ///< times the pace of the capture; 0: as fast as possible
    double burst_us = 500;
};

struct SentCapture {
    std::uint64_t datagrams = 0;
    double seconds = 0;
    double worst_delay_s = 0;
};

/// Sends every UDP datagram of a pcap file, those of each sender from a socket of its own. Throws
/// net::PcapError and std::runtime_error.
SentCapture send_capture(const SendCaptureOptions& options, const std::atomic<bool>& stop,
                         const std::function<void(double)>& report);

}  // namespace petacq::sim
