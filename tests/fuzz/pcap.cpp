// Captures.
#include "net/pcap/pcap_reader.hpp"

#include <vector>

#include "tests/fuzz/base/fuzz.hpp"

using namespace petacq;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const fuzz::MemoryFile file(data, size);
    try {
        net::PcapReader reader(file.path(), {});
        net::CapturedDatagram datagram;
        std::uint64_t datagrams = 0;
        while (reader.next(datagram)) {
            ++datagrams;
            fuzz::require(datagram.payload.size() <= 65535, "a payload is no larger than IP carries");
            const std::vector<std::byte> copy(datagram.payload.begin(), datagram.payload.end());
            fuzz::require(copy.size() == datagram.payload.size(), "every byte of a payload can be read");
        }
        const net::PcapCounts& counts = reader.counts();
        if (datagrams != 0) fuzz::accept();
        fuzz::require(counts.datagrams == datagrams, "every datagram is counted");
        fuzz::require(counts.packets >= counts.datagrams, "packets are at least datagrams");
        fuzz::require(reader.position() <= reader.size(), "the reader stays in the file");
    } catch (const net::PcapError&) {
    }
    return 0;
}
