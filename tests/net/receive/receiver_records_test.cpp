// The record of a datagram does not depend on what came before it.
#include <array>
#include <map>
#include <random>
#include <tuple>

#include "net/receive/admission.hpp"
#include "tests/net/loopback.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

net::Frame random_frame(const net::FrameCheck& check, std::mt19937_64& random) {
    net::Frame frame{};
    frame.head_marker = net::default_head_marker;
    frame.tail_marker = net::default_tail_marker;
    frame.bdm = static_cast<std::uint16_t>(random() % 16);
    if (check.version == net::FrameVersion::two && random() % 2 == 0) frame.bdm += 600;
    frame.time = random();
    frame.energy = static_cast<std::uint16_t>(random());
    switch (random() % 60) {
        case 0:
            frame.head_marker = 0xB;
            break;
        case 1:
            frame.tail_marker = 0;
            break;
        case 2:
            frame.bdm = static_cast<std::uint16_t>(check.bdm_count + 100);
            break;
        case 3:
            frame.x = 255;
            break;
        default:
            break;
    }
    return frame;
}

/// Mostly a good datagram of source 1.
Bytes random_datagram(const net::ReceiverOptions& options, std::size_t frames, std::uint64_t sequence,
                      std::mt19937_64& random) {
    const net::Framing framing = options.framing;
    const net::FrameVersion version = options.frames.version;
    const std::size_t before = framing == net::Framing::sequenced ? net::header_bytes : 0;
    Bytes bytes(before + frames * net::frame_bytes);
    for (std::size_t at = before; at < bytes.size(); at += net::frame_bytes)
        net::encode_frame(random_frame(options.frames, random), bytes.data() + at, version);
    if (before == 0) return bytes;
    const std::uint64_t choice = random() % 40;
    const auto source = static_cast<std::uint16_t>(choice < 6 ? choice : 1);
    net::encode_header({static_cast<std::uint8_t>(choice == 6 ? 1 : 0), source, sequence}, bytes.data(),
                       version);
    if (choice == 7) bytes[0] = std::byte{0};
    if (choice == 8) bytes[4] = static_cast<std::byte>(version == net::FrameVersion::one ? 2 : 1);
    return bytes;
}

net::ReceiverOptions random_options(std::mt19937_64& random) {
    net::ReceiverOptions options;
    options.framing = random() % 4 == 0 ? net::Framing::bare : net::Framing::sequenced;
    options.gro = random() % 4 != 0;
    options.keep_rejected = random() % 2 == 0;
    options.frames.bdm_count = 64;
    if (random() % 2 == 0) {
        options.frames.version = net::FrameVersion::two;
        options.frames.bdm_count = 1000;
    }
    options.frames.position_size = 128;
    if (options.framing == net::Framing::sequenced && random() % 4 != 0) {
        const std::uint32_t here = 0x7F000001;
        // 0 and 5 are unknown, and 4 may not send from here.
        options.allowed_sources = {{1, {here, 0}, net::Modules::below(12)},
                                   {2, {}, net::Modules::below(8)},
                                   {3, {}, {}},
                                   {4, {here + 1, 0}, {}}};
    }
    return options;
}

auto key_of(const net::Datagram& d) {
    return std::tuple(d.admitted, d.sequence, d.first_time, d.last_time, d.frames, d.timed_frames, d.bytes,
                      d.source, d.flags, d.first_bdm, d.last_bdm, d.temperature_16ths);
}

}  // namespace

TEST_CASE("the record of a datagram does not depend on those before it") {
    const unsigned seed = GENERATE(range(0U, 16U));
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const net::ReceiverOptions options = random_options(random);
    const net::Admission admission(options);
    Loopback loop(options, 64, std::size_t{64} << (10 + random() % 3));
    loop.receiver.start();
    std::array<net::Sender, 2> senders{loop.sender(), loop.sender()};
    PlainSender elsewhere("127.0.0.2", loop.receiver.port());

    std::vector<net::Datagram> expected;
    std::map<net::Admitted, std::uint64_t> counts;
    std::uint64_t frames_delivered = 0;
    std::uint64_t sent = 0;
    for (int round = 0; round < 40; ++round) {
        const std::size_t choice = random() % 3;
        net::Endpoint endpoint{0x7F000002, elsewhere.port()};
        if (choice < 2) endpoint = {0x7F000001, senders.at(choice).local_port()};
        const std::size_t frames = std::array{1, 2, 91, 559}[random() % 4];
        std::vector<Bytes> payloads;
        for (std::size_t i = 0, count = 1 + random() % 50; i < count; ++i) {
            payloads.push_back(random_datagram(options, frames, sent++, random));
            const Bytes& payload = payloads.back();
            net::Datagram d;
            net::DatagramHeader header;
            d.admitted = admission.judge(endpoint, payload.data(), payload.size(), header);
            d.bytes = static_cast<std::uint32_t>(payload.size());
            ++counts[d.admitted];
            if (d.admitted == net::Admitted::yes) {
                const std::byte* const first = payload.data() + admission.header_size();
                admission.describe(header, endpoint, first, payload.size(), d);
                frames_delivered += d.frames;
            }
            if (d.admitted == net::Admitted::yes ||
                (d.admitted == net::Admitted::malformed && options.keep_rejected))
                expected.push_back(d);
        }
        if (choice < 2) {
            senders.at(choice).send(Burst(payloads).views());
        } else {
            for (const Bytes& payload : payloads)
                elsewhere.send(payload);
        }
        REQUIRE(loop.wait_received(sent));
    }
    loop.receiver.stop();
    collect(loop.queue, loop.pool, loop.received);

    REQUIRE(loop.received.size() == expected.size());
    std::size_t different = 0;
    for (std::size_t i = 0; i < expected.size(); ++i)
        different += key_of(loop.received[i].record) == key_of(expected[i]) ? 0 : 1;
    CHECK(different == 0);
    const net::ReceiverCounters& c = loop.counters();
    CHECK(c.datagrams_delivered.value() == counts[net::Admitted::yes]);
    CHECK(c.datagrams_malformed.value() == counts[net::Admitted::malformed]);
    CHECK(c.datagrams_unknown_source.value() == counts[net::Admitted::unknown_source]);
    CHECK(c.frames_delivered.value() == frames_delivered);
    CHECK(loop.identity_closes());
}
