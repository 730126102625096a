// Captures made by tests.
#pragma once

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <string>

#include "net/pcap/pcap.hpp"
#include "net/pcap/pcap_packets.hpp"

namespace petacq::test {

/// A pcap file, complete when the object is destroyed.
class CaptureOut {
  public:
    /// `ours`: as petacqd writes it, else as tcpdump does.
    explicit CaptureOut(const std::string& file, bool ours = false) : out_(file, std::ios::binary) {
        auto header = net::pcap_file_header();
        if (!ours) std::fill_n(header.begin() + offsetof(net::pcap::FileHeader, accuracy), 4, std::byte{0});
        out_.write(reinterpret_cast<const char*>(header.data()), header.size());
    }
    ~CaptureOut() { flush(); }
    CaptureOut(const CaptureOut&) = delete;
    CaptureOut& operator=(const CaptureOut&) = delete;

    void add(std::int64_t time_ns, net::Endpoint from, net::Endpoint to, std::span<const std::byte> head,
             std::span<const std::byte> body) {
        if (packets_.full()) flush();
        packets_.add(time_ns, from, to, head, body);
    }

  private:
    void flush() {
        for (const iovec& piece : packets_.pieces())
            out_.write(static_cast<const char*>(piece.iov_base), static_cast<std::streamsize>(piece.iov_len));
        packets_.clear();
    }

    std::ofstream out_;
    net::PcapPackets packets_;
};

}  // namespace petacq::test
