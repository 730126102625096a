// Every datagram that arrives is delivered whole, once, and in order.
#include <atomic>
#include <map>
#include <random>
#include <thread>

#include "tests/net/loopback.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using namespace petacq::test;
using net::Framing;

TEST_CASE("datagrams of any size arrive whole or are counted as malformed") {
    net::ReceiverOptions options;
    options.gro = GENERATE(true, false);
    const std::size_t batch_bytes = GENERATE(std::size_t{64} << 10, std::size_t{1} << 20);
    CAPTURE(options.gro, batch_bytes);
    Loopback loop(options, 64, batch_bytes);
    loop.receiver.start();
    auto sender = loop.sender();
    std::mt19937_64 random(2);
    std::vector<Bytes> good;
    std::uint64_t sent = 0;
    std::uint64_t bytes = 0;
    std::uint64_t malformed = 0;
    for (int round = 0; round < 5; ++round) {
        for (const std::size_t size : {65504, 0, 15, 16, 17, 32, 1472, 8960, 32, 8972, 65507, 16, 1472}) {
            Bytes payload = random_bytes(size, random);
            if (size >= net::header_bytes) {
                net::encode_header({static_cast<std::uint8_t>(round & 1), 7, sent}, payload.data(),
                                   net::FrameVersion::one);
            }
            if (size != 0 && size % 16 == 0) {
                good.push_back(payload);
            } else {
                ++malformed;
            }
            sender.send(Burst({payload}).views());
            bytes += size;
            ++sent;
        }
        REQUIRE(loop.wait_received(sent));
    }
    REQUIRE(loop.collect_datagrams(good.size()));
    loop.receiver.stop();
    CHECK(same(good, loop.received));
    CHECK(loop.counters().datagrams_received.value() == sent);
    CHECK(loop.counters().datagrams_malformed.value() == malformed);
    CHECK(loop.counters().datagrams_delivered.value() == good.size());
    CHECK(loop.counters().bytes_received.value() == bytes);
    std::uint64_t frames = 0;
    for (const Bytes& g : good)
        frames += g.size() / 16 - 1;
    CHECK(loop.counters().frames_delivered.value() == frames);
    CHECK(loop.counters().batches.value() > 0);
    CHECK(loop.identity_closes());
    for (const Received& r : loop.received) {
        REQUIRE(r.record.address == 0x7F000001);
        REQUIRE(r.record.port == sender.local_port());
    }
}

TEST_CASE("bursts that the kernel coalesces are split again") {
    net::ReceiverOptions options;
    options.gro = GENERATE(true, false);
    const std::size_t frames = GENERATE(0U, 1U, 91U, 559U);
    CAPTURE(options.gro, frames);
    Loopback loop(options, 64, std::size_t{64} << 10);
    loop.receiver.start();
    auto sender = loop.sender();
    std::mt19937_64 random(3);
    std::vector<Bytes> sent;
    for (int round = 0; round < 8; ++round) {
        std::vector<Bytes> payloads;
        for (int i = 0; i < 75; ++i) {
            payloads.push_back(sequenced_datagram(1, sent.size() + payloads.size(), frames, random));
        }
        sender.send(Burst(payloads).views());
        sent.insert(sent.end(), payloads.begin(), payloads.end());
        REQUIRE(loop.wait_received(sent.size()));
    }
    REQUIRE(loop.collect_datagrams(sent.size()));
    CHECK(same(sent, loop.received));
    CHECK(loop.counters().datagrams_malformed.value() == 0);
    CHECK(loop.identity_closes());
}

TEST_CASE("steady traffic is packed without holes") {
    net::ReceiverOptions options;
    options.gro = GENERATE(true, false);
    const std::size_t size = GENERATE(32U, 1472U, 8960U);
    CAPTURE(options.gro, size);
    constexpr std::size_t batch_bytes = std::size_t{256} << 10;
    Loopback loop(options, 64, batch_bytes);
    auto sender = loop.sender();
    std::mt19937_64 random(4);
    const std::vector<Bytes> payloads(64, sequenced_datagram(1, 0, size / 16 - 1, random));
    const Burst burst(payloads);
    loop.receiver.start();
    std::uint64_t sent = 0;
    std::vector<std::size_t>
        density;  // of full batches: bytes of datagrams per 100 bytes used, and per capacity
    std::vector<std::size_t> full;
    while (density.size() < 4) {
        sender.send(burst.views());
        sent += payloads.size();
        const auto taken = [&] {
            const auto piece = loop.queue.take();
            if (!piece || !piece->last) return piece.has_value();
            net::Batch* const batch = piece->batch;
            density.push_back(100 * batch->datagrams.size() * size / batch->used);
            full.push_back(std::max(100 * batch->used / batch->capacity,
                                    100 * batch->datagrams.size() / batch->max_datagrams));
            loop.pool.put(batch);
            return true;
        };
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
        while (loop.counters().datagrams_received.value() < sent) {
            REQUIRE(std::chrono::steady_clock::now() < deadline);
            std::this_thread::yield();
        }
        while (taken()) {
        }
    }
    // The first batches may have started with another stride.
    CHECK(density.back() >= 99);
    CHECK(full.back() >= 70);
}

TEST_CASE("bare framing: the sender is the source") {
    net::ReceiverOptions options;
    options.framing = Framing::bare;
    Loopback loop(options);
    loop.receiver.start();
    PlainSender one("127.0.0.1", loop.receiver.port());
    PlainSender two("127.0.0.2", loop.receiver.port());
    std::mt19937_64 random(5);
    std::map<std::pair<std::uint32_t, std::uint16_t>, std::vector<Bytes>> sent;
    for (std::size_t i = 1; i < 50; ++i) {
        const Bytes payload = random_bytes(16 * i, random);
        const bool first = i % 3 == 0;
        (first ? one : two).send(payload);
        sent[first ? std::pair{0x7F000001U, one.port()} : std::pair{0x7F000002U, two.port()}].push_back(
            payload);
    }
    one.send(Bytes(15));
    one.send(Bytes(0));
    two.send(Bytes(33));
    REQUIRE(loop.wait_received(52));
    REQUIRE(loop.collect_datagrams(49));
    std::map<std::pair<std::uint32_t, std::uint16_t>, std::vector<Bytes>> got;
    for (const Received& r : loop.received) {
        CHECK(r.record.source == 0);
        CHECK(r.record.frames == r.frames.size() / 16);
        const net::ValidTimes times =
            net::valid_times({}, net::Modules::below(65'536), r.frames.data(), r.frames.size() / 16);
        CHECK(r.record.first_time == times.first);
        CHECK(r.record.last_time == times.last);
        got[{r.record.address, r.record.port}].push_back(r.frames);
    }
    CHECK(got == sent);
    CHECK(loop.counters().datagrams_malformed.value() == 3);
    CHECK(loop.identity_closes());
}

TEST_CASE("stop delivers the datagrams in the socket") {
    net::ReceiverOptions options;
    options.gro = GENERATE(true, false);
    Loopback loop(options);
    loop.receiver.start();
    auto sender = loop.sender(false);
    std::mt19937_64 random(6);
    std::vector<Bytes> sent;
    for (std::size_t i = 0; i < 500; ++i)
        sent.push_back(sequenced_datagram(1, i, i % 90, random));
    sender.send(Burst(sent).views());
    loop.receiver.stop();
    loop.receiver.stop();
    collect(loop.queue, loop.pool, loop.received);
    CHECK(same(sent, loop.received));
    CHECK(loop.pool.free_count() == loop.pool.count());
    CHECK(loop.counters().cpu_ns.value() > 0);
    CHECK(loop.counters().cpu_read_ns.value() > 0);
    CHECK(loop.counters().polls.value() >= 2);  // at its start and its end, and while it runs
}

TEST_CASE("stop returns while a sender never pauses") {
    Loopback loop;
    loop.receiver.start();
    std::atomic<bool> enough{false};
    std::thread flood([&] {
        auto sender = loop.sender();
        std::mt19937_64 random(7);
        const Burst burst(std::vector<Bytes>(64, sequenced_datagram(1, 0, 91, random)));
        while (!enough)
            sender.send(burst.views());
    });
    // No consumer takes the batches, so the pool runs empty.
    CHECK(eventually([&] { return loop.pool.waits() > 0; }));
    loop.receiver.stop();  // returns
    enough = true;
    flood.join();
    CHECK(loop.counters().datagrams_dropped_no_buffer.value() > 0);
    CHECK(loop.identity_closes());
}

TEST_CASE("datagrams that arrive before start wait in the socket") {
    Loopback loop;
    std::mt19937_64 random(8);
    const std::vector<Bytes> sent(20, sequenced_datagram(1, 5, 10, random));
    loop.sender().send(Burst(sent).views());
    CHECK(loop.counters().datagrams_received.value() == 0);
    loop.receiver.start();
    REQUIRE(loop.collect_datagrams(sent.size()));
    CHECK(same(sent, loop.received));
}
