// Any sizes, bursts and batches: every datagram arrives once, in the order of its sender.
#include <map>
#include <random>

#include "tests/net/loopback.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

std::size_t random_frames(std::mt19937_64& random) {
    switch (random() % 4) {
        case 0:
            return random() % 4;
        case 1:
            return 91;
        case 2:
            return random() % 560;
        default:
            return random() % 40 == 0 ? random() % 4094 : random() % 100;
    }
}

// Some datagrams for one send: all of one size or all different, good and bad.
std::vector<Bytes> random_burst(std::uint16_t source, std::uint64_t& sequence, std::vector<Bytes>& good,
                                std::mt19937_64& random) {
    std::vector<Bytes> burst;
    const bool even = random() % 2 == 0;
    const std::size_t count = 1 + random() % (even ? 70 : 12);
    const std::size_t frames = random_frames(random);
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < count && bytes < 200'000; ++i) {
        Bytes payload = sequenced_datagram(source, sequence++, even ? frames : random_frames(random), random);
        if (random() % 50 == 0) {
            payload = random_bytes(random() % 300, random);
            if (!payload.empty()) payload[0] = std::byte{0};
        } else {
            good.push_back(payload);
        }
        bytes += payload.size();
        burst.push_back(std::move(payload));
    }
    return burst;
}

}  // namespace

TEST_CASE("every datagram arrives once and in order") {
    const unsigned seed = GENERATE(range(0U, 8U));
    std::mt19937_64 random(seed);
    net::ReceiverOptions options;
    options.gro = seed % 2 == 0;
    const std::size_t batch_bytes = std::size_t{64} << (10 + random() % 4);
    CAPTURE(seed, options.gro, batch_bytes);
    Loopback loop(options, 40, batch_bytes);
    struct Stream {
        net::Sender sender;
        std::uint64_t sequence;
        std::vector<Bytes> good;
    };
    std::vector<std::unique_ptr<Stream>> streams;
    for (std::uint16_t i = 0; i < 3; ++i) {
        streams.push_back(std::unique_ptr<Stream>(new Stream{loop.sender(random() % 4 != 0), random(), {}}));
    }
    loop.receiver.start();
    std::uint64_t sent = 0;
    std::uint64_t since = 0;
    for (int n = 0; n < 60; ++n) {
        const auto id = static_cast<std::uint16_t>(random() % streams.size());
        Stream& stream = *streams[id];
        const std::vector<Bytes> burst = random_burst(id, stream.sequence, stream.good, random);
        stream.sender.send(Burst(burst).views());
        sent += burst.size();
        for (const Bytes& b : burst)
            since += b.size() + 1000;
        // Never more than fits into a small socket buffer.
        if (since > 500'000) {
            REQUIRE(loop.wait_received(sent));
            since = 0;
        }
    }
    REQUIRE(loop.wait_received(sent));
    loop.receiver.stop();
    collect(loop.queue, loop.pool, loop.received);

    CHECK(loop.counters().datagrams_received.value() == sent);
    CHECK(loop.counters().datagrams_dropped_no_buffer.value() == 0);
    CHECK(loop.identity_closes());
    std::map<std::uint16_t, std::vector<Received>> by_source;
    for (Received& r : loop.received)
        by_source[r.record.source].push_back(std::move(r));
    for (std::size_t id = 0; id < streams.size(); ++id) {
        CAPTURE(id);
        CHECK(same(streams[id]->good, by_source[static_cast<std::uint16_t>(id)]));
    }
    CHECK(loop.pool.free_count() == loop.pool.count());
}
