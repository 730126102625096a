// An empty pool: datagrams wait in the socket until a batch comes back.
#include <random>
#include <thread>

#include "tests/net/loopback.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

constexpr std::size_t small_batch = std::size_t{64} << 10;

/// More than a few small batches hold, of all sizes: a call often ends in the middle of a batch.
std::vector<Bytes> mixed_datagrams(std::mt19937_64& random) {
    std::vector<Bytes> sent;
    for (std::uint64_t i = 0; i < 60; ++i)
        sent.push_back(sequenced_datagram(1, i, i % 6 == 0 ? 2000 : 1 + i, random));
    return sent;
}

bool pool_is_empty(const net::BatchPool& pool) {
    return eventually([&] { return pool.free_count() == 0; });
}

}  // namespace

TEST_CASE("without a free batch datagrams wait in the socket") {
    net::ReceiverOptions options;
    options.gro = GENERATE(true, false);
    Loopback loop(options, 3, small_batch);
    auto sender = loop.sender();
    std::mt19937_64 random(14);
    const std::vector<Bytes> sent = mixed_datagrams(random);
    for (const Bytes& datagram : sent)
        sender.send(Burst({datagram}).views());
    loop.receiver.start();
    // Nothing is collected until every batch is in use.
    REQUIRE(pool_is_empty(loop.pool));
    CHECK(eventually([&] { return loop.pool.waits() > 0; }));
    REQUIRE(loop.collect_datagrams(sent.size()));
    CHECK(same(sent, loop.received));
    CHECK(loop.counters().datagrams_dropped_no_buffer.value() == 0);
    CHECK(loop.identity_closes());
}

TEST_CASE("a stop waits for batches that come back") {
    Loopback loop({}, 3, small_batch);
    auto sender = loop.sender();
    std::mt19937_64 random(15);
    const std::vector<Bytes> sent = mixed_datagrams(random);
    for (const Bytes& datagram : sent)
        sender.send(Burst({datagram}).views());
    loop.receiver.start();
    REQUIRE(pool_is_empty(loop.pool));
    std::thread stop([&] { loop.receiver.stop(); });
    CHECK(loop.collect_datagrams(sent.size()));
    stop.join();
    CHECK(same(sent, loop.received));
    CHECK(loop.counters().datagrams_dropped_no_buffer.value() == 0);
}

TEST_CASE("a stop counts what remains when no batch comes back, and garbles none") {
    net::ReceiverOptions options;
    options.gro = GENERATE(true, false);
    Loopback loop(options, 3, small_batch);
    auto sender = loop.sender();
    std::mt19937_64 random(16);
    const std::vector<Bytes> sent = mixed_datagrams(random);
    std::uint64_t frames = 0;
    for (const Bytes& datagram : sent) {
        frames += datagram.size() / net::frame_bytes - 1;
        sender.send(Burst({datagram}).views());
    }
    loop.receiver.start();
    loop.receiver.stop();
    collect(loop.queue, loop.pool, loop.received);
    const net::ReceiverCounters& c = loop.counters();
    CHECK(c.datagrams_received.value() == sent.size());
    CHECK(c.datagrams_dropped_no_buffer.value() > 0);
    CHECK(c.datagrams_delivered.value() == loop.received.size());
    CHECK(c.frames_delivered.value() + c.frames_dropped_no_buffer.value() == frames);
    CHECK(loop.identity_closes());
    const auto delivered = static_cast<std::ptrdiff_t>(loop.received.size());
    CHECK(same({sent.begin(), sent.begin() + delivered}, loop.received));
}

TEST_CASE("receivers that share a small pool do not block each other") {
    net::BatchPool pool(4, small_batch, net::make_host_memory({false, false}));
    net::BatchQueue queue(2, 4);
    net::ReceiverOptions options;
    options.address = "127.0.0.1";
    net::Receiver quiet(options, pool, queue.lane(0));
    net::Receiver busy(options, pool, queue.lane(1));
    net::Sender to_quiet({"127.0.0.1", quiet.port(), true});
    net::Sender to_busy({"127.0.0.1", busy.port(), true});
    std::mt19937_64 random(17);
    std::size_t sent = 0;
    for (std::uint64_t i = 0; i < 20; ++i) {
        to_quiet.send(Burst({sequenced_datagram(1, i, 2500, random)}).views());
        for (std::uint64_t k = 0; k < 5; ++k)
            to_busy.send(Burst({sequenced_datagram(2, 5 * i + k, 500, random)}).views());
        sent += 6;
    }
    // The busy one takes every batch that it can get before the other one starts.
    busy.start();
    REQUIRE(eventually([&] { return pool.waits() > 0; }));
    quiet.start();
    std::vector<Received> received;
    CHECK(eventually([&] {
        collect(queue, pool, received);
        return received.size() >= sent;
    }));
    CHECK(received.size() == sent);
    for (const net::Receiver* receiver : {&quiet, &busy}) {
        CHECK(receiver->counters().datagrams_dropped_kernel.value() == 0);
        CHECK(receiver->counters().datagrams_dropped_no_buffer.value() == 0);
    }
}
