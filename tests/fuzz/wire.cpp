// Datagrams: what the receivers check and read of them, and the decoding of their frames.
// Input: a byte (framing, lists of known senders, version of the frames), then datagrams, each after its
// length (two bytes).
#include "net/receive/admission.hpp"

#include <array>
#include <memory>

#include "net/pcap/replayer.hpp"
#include "net/receive/receiver.hpp"
#include "tests/fuzz/base/fuzz.hpp"

using namespace petacq;
using fuzz::require;

namespace {

net::ReceiverOptions receiver_of(unsigned choice) {
    net::ReceiverOptions options;
    options.framing = (choice & 1) != 0 ? net::Framing::bare : net::Framing::sequenced;
    if ((choice & 2) != 0) {
        options.allowed_sources = {{0, {0x7F000001, 7}}, {1, {0, 8}}, {2, {0x0A000005, 7}}, {65535, {}}};
    }
    if ((choice & 4) != 0) options.allowed_addresses = {0x7F000001, 0x0A000005};
    if ((choice & 8) != 0) options.frames.version = net::FrameVersion::two;
    if ((choice & 8) != 0) options.frames.bdm_count = 60'000;
    return options;
}

void take(const net::Admission& admission, net::Framing framing, std::span<const std::byte> bytes) {
    net::DatagramHeader header;
    const std::size_t segment = bytes.empty() ? 0 : net::joined_length(bytes, admission.frames().version);
    require(segment <= bytes.size(), "datagrams in a payload are within it");
    const net::Endpoint sender{0x7F000001, 7};
    if (admission.judge(sender, bytes.data(), bytes.size(), header) != net::Admitted::yes) return;
    fuzz::accept();
    const std::size_t before = admission.header_size();
    require(bytes.size() >= before && (bytes.size() - before) % net::frame_bytes == 0, "whole frames");
    const net::FrameVersion version = admission.frames().version;
    net::Datagram datagram;
    admission.describe(header, sender, bytes.data() + before, bytes.size(), datagram);
    require(datagram.first_bdm < admission.frames().bdm_count, "the module of a valid hit");
    require(datagram.last_bdm < admission.frames().bdm_count, "the module of a valid hit");
    require(datagram.frames == (bytes.size() - before) / net::frame_bytes, "the number of frames");
    require(framing == net::Framing::sequenced || datagram.frames > 0, "bare framing has no heartbeats");
    for (std::uint32_t i = 0; i < datagram.frames; ++i) {
        const std::byte* const at = bytes.data() + before + i * net::frame_bytes;
        const net::Frame frame = net::decode_frame(at, version);
        require(frame.time == net::frame_time(at), "both readings of the time");
        std::byte again[net::frame_bytes];  // NOLINT(cppcoreguidelines-avoid-c-arrays)
        net::encode_frame(frame, again, version);
        require(std::memcmp(again, at, sizeof again) == 0, "a frame encodes to its bytes");
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input(data, size);
    // The tables of an admission are large: one for each choice, made once.
    static std::array<std::unique_ptr<const net::Admission>, 16> admissions;
    const unsigned choice = input.take<std::uint8_t>() % admissions.size();
    const net::ReceiverOptions options = receiver_of(choice);
    if (!admissions[choice]) admissions[choice] = std::make_unique<const net::Admission>(options);
    while (!input.empty())
        take(*admissions[choice], options.framing, input.take_bytes(input.take<std::uint16_t>()));
    return 0;
}
