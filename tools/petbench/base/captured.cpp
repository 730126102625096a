#include "tools/petbench/base/captured.hpp"

#include <algorithm>

#include "net/pcap/pcap_reader.hpp"
#include "net/pcap/replayer.hpp"

namespace petacq::bench {

void for_each_captured(
    const std::string& capture, net::FrameVersion version,
    const std::function<void(const net::DatagramHeader&, std::span<const std::byte> frames)>& take) {
    net::PcapReader reader(capture, {});
    net::CapturedDatagram packet;
    while (reader.next(packet)) {
        const std::size_t length = net::joined_length(packet.payload, version);
        for (std::size_t at = 0; at < packet.payload.size(); at += length) {
            const auto datagram = packet.payload.subspan(at, std::min(length, packet.payload.size() - at));
            net::DatagramHeader header;
            if (net::parse_datagram(net::Framing::sequenced, version, datagram.data(), datagram.size(),
                                    header) != net::Malformed::none ||
                datagram.size() == net::header_bytes) {
                continue;
            }
            take(header, datagram.subspan(net::header_bytes));
        }
    }
}

}  // namespace petacq::bench
