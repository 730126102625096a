// Writes a simulated stream to a pcap file instead of the network, and sends such a file.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "config/scanner/scanner.hpp"
#include "daemon/system/file.hpp"
#include "net/pcap/pcap_packets.hpp"
#include "tools/petsim/transmit.hpp"

namespace petacq::sim {

/// Where the sources of a capture send from: the address and port of each in the scanner description, else
/// loopback and port 40000 + s for source s.
std::vector<net::Endpoint> capture_senders(const std::vector<config::Source>& sources);

/// Each packet is stamped with the time at which it is due, counted from 1970, so that the same options give
/// the same file. For one thread.
class CaptureFile {
  public:
    /// Sources are distributed over `to` as Transmitter does. Throws std::system_error if the file exists or
    /// cannot be created.
    CaptureFile(const std::string& file, std::vector<net::Endpoint> from, std::vector<net::Endpoint> to,
                double tick_ps);

    void add(const Datagram& datagram);
    /// Writes everything added so far.
    void flush();

    [[nodiscard]] std::uint64_t datagrams_written() const { return written_; }

  private:
    daemon::File file_;
    net::PcapPackets packets_;
    std::uint64_t written_ = 0;
    std::vector<net::Endpoint> from_;
    std::vector<net::Endpoint> to_;
    double ns_per_tick_;
    StreamStore store_{1};  // datagrams that are not in the file yet
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

/// Sends every UDP datagram of a pcap file, with a socket for each sender in it. Throws net::PcapError and
/// std::runtime_error.
SentCapture send_capture(const SendCaptureOptions& options, const std::atomic<bool>& stop,
                         const std::function<void(double)>& report);

}  // namespace petacq::sim
