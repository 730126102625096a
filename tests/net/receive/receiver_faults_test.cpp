// Datagrams that are not delivered are counted under the right name.
#include <random>
#include <set>

#include "tests/net/loopback.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using namespace petacq::test;

TEST_CASE("garbage is counted and does not affect its neighbours") {
    net::ReceiverOptions options;
    options.gro = GENERATE(true, false);
    Loopback loop(options);
    loop.receiver.start();
    auto sender = loop.sender(false);
    std::mt19937_64 random(10);
    std::vector<Bytes> all;
    std::vector<Bytes> good;
    for (std::size_t i = 0; i < 200; ++i) {
        Bytes payload = sequenced_datagram(1, i, i % 20, random);
        switch (i % 4) {
            case 0:
                payload[i % 3] ^= std::byte{1};
                break;
            case 1:
                payload[4] = std::byte{2};
                break;
            case 2:
                payload.resize(payload.size() + 1 + i % 15);
                break;
            default:
                good.push_back(payload);
                break;
        }
        all.push_back(payload);
    }
    sender.send(Burst(all).views());
    REQUIRE(loop.wait_received(200));
    REQUIRE(loop.collect_datagrams(50));
    CHECK(same(good, loop.received));
    CHECK(loop.counters().datagrams_malformed.value() == 150);
    CHECK(loop.identity_closes());
}

TEST_CASE("a flood of garbage uses up no batch") {
    Loopback loop({}, 1, std::size_t{64} << 10);
    loop.receiver.start();
    auto sender = loop.sender(false);
    const std::vector<Bytes> garbage(50, Bytes(8000, std::byte{0x77}));
    const Burst burst(garbage);
    for (std::uint64_t n = 1; n <= 10; ++n) {
        sender.send(burst.views());
        REQUIRE(loop.wait_received(50 * n));
    }
    std::mt19937_64 random(11);
    const std::vector<Bytes> good{sequenced_datagram(1, 0, 4000, random)};
    sender.send(Burst(good).views());
    REQUIRE(loop.collect_datagrams(1));
    CHECK(same(good, loop.received));
    CHECK(loop.counters().datagrams_malformed.value() == 500);
    CHECK(loop.counters().batches.value() == 1);
}

TEST_CASE("a good datagram behind ragged ones of a coalesced burst is moved to the grid") {
    Loopback loop;
    loop.receiver.start();
    auto sender = loop.sender();
    std::mt19937_64 random(12);
    std::vector<Bytes> good;
    std::uint64_t sent = 0;
    for (const std::size_t segment : {33, 40, 47, 1001}) {
        // The last of a GSO send may be shorter: here it is the only one of whole frames.
        std::vector<Bytes> payloads(3, random_bytes(segment, random));
        for (Bytes& p : payloads)
            net::encode_header({0, 1, 0}, p.data(), net::FrameVersion::one);
        good.push_back(sequenced_datagram(1, sent, 1, random));
        payloads.push_back(good.back());
        sender.send(Burst(payloads).views());
        sent += payloads.size();
    }
    REQUIRE(loop.wait_received(sent));
    REQUIRE(loop.collect_datagrams(good.size()));
    CHECK(same(good, loop.received));
    CHECK(loop.counters().datagrams_malformed.value() == sent - good.size());
}

TEST_CASE("senders and ids that are not on the list are counted as unknown") {
    net::ReceiverOptions options;
    options.allowed_addresses = {0x7F000003, 0x7F000001};
    options.allowed_sources = {{7, {}}, {65535, {}}, {0, {}}};
    Loopback loop(options);
    loop.receiver.start();
    std::mt19937_64 random(15);
    std::uint64_t sent = 0;
    std::set<std::pair<std::uint32_t, std::uint16_t>> expected;
    for (const std::uint32_t last : {1U, 2U, 3U}) {
        PlainSender sender("127.0.0." + std::to_string(last), loop.receiver.port());
        for (const std::uint16_t id : std::vector<std::uint16_t>{0, 1, 7, 8, 65534, 65535}) {
            sender.send(sequenced_datagram(id, 0, 5, random));
            ++sent;
            if (last != 2 && (id == 0 || id == 7 || id == 65535)) expected.insert({0x7F000000 + last, id});
        }
        sender.send(Bytes(3));  // malformed, unless its sender is unknown
        ++sent;
    }
    REQUIRE(loop.wait_received(sent));
    REQUIRE(loop.collect_datagrams(expected.size()));
    std::set<std::pair<std::uint32_t, std::uint16_t>> got;
    for (const Received& r : loop.received)
        got.insert({r.record.address, r.record.source});
    CHECK(got == expected);
    CHECK(loop.counters().datagrams_unknown_source.value() == 13);
    CHECK(loop.counters().datagrams_malformed.value() == 2);
    CHECK(loop.identity_closes());
}

TEST_CASE("datagrams that the kernel drops are counted") {
    net::ReceiverOptions options;
    options.receive_buffer_bytes = 4096;
    options.gro = false;
    Loopback loop(options);
    std::mt19937_64 random(16);
    const std::vector<Bytes> payloads(1000, sequenced_datagram(1, 0, 50, random));
    loop.sender(false).send(Burst(payloads).views());
    loop.receiver.start();
    REQUIRE(loop.collect_until([&] {
        return loop.counters().datagrams_received.value() +
                   loop.counters().datagrams_dropped_kernel.value() ==
               1000;
    }));
    loop.receiver.stop();
    CHECK(loop.counters().datagrams_dropped_kernel.value() > 0);
    CHECK(loop.counters().datagrams_received.value() > 0);
    CHECK(loop.identity_closes());
}
