// What all receivers drop in an overload.
#include "net/receive/overload_gate.hpp"

#include <algorithm>
#include <vector>

#include "tests/net/loopback.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using namespace petacq::net;
using namespace petacq::test;

namespace {

constexpr std::int64_t cell = 1'000'000;  // ns

}  // namespace

TEST_CASE("the gate drops from a full socket on an empty pool until a quarter of it is free", "[net]") {
    BatchPool pool(16, 4096, make_host_memory({false, false}));
    OverloadGate gate(pool);
    std::vector<Batch*> taken;
    const auto leave_free = [&](std::size_t count) {
        while (pool.free_count() > count)
            taken.push_back(pool.take());
        for (; pool.free_count() < count; taken.pop_back())
            pool.put(taken.back());
    };
    std::int64_t now = 77 * cell;
    const auto next = [&] { return gate.keeps(now += cell); };

    leave_free(0);
    CHECK(gate.pool_is_low());
    CHECK(next());  // no socket is in need
    gate.press();
    CHECK_FALSE(next());
    CHECK(gate.dropping());
    leave_free(3);
    CHECK_FALSE(next());
    leave_free(4);
    CHECK(next());
    CHECK_FALSE(gate.dropping());
    // A socket that was in need while there was room changes nothing.
    leave_free(16);
    CHECK_FALSE(gate.pool_is_low());
    gate.press();
    CHECK(next());
    leave_free(0);
    CHECK(next());
    leave_free(16);
    while (!taken.empty()) {
        pool.put(taken.back());
        taken.pop_back();
    }
}

TEST_CASE("every receiver gets the same answer for the same time, however late it asks", "[net]") {
    BatchPool pool(1, 4096, make_host_memory({false, false}));
    OverloadGate gate(pool);
    std::vector<bool> first;
    Batch* batch = nullptr;
    for (std::int64_t i = 0; i < 100; ++i) {
        if (i % 20 == 5) {
            batch = pool.take();
            gate.press();
        }
        if (i % 20 == 15) pool.put(batch);
        first.push_back(gate.keeps(i * cell + cell / 2));
    }
    CHECK(std::count(first.begin(), first.end(), false) == 50);
    for (std::int64_t i = 0; i < 100; ++i)
        CHECK(gate.keeps(i * cell + i % 3) == first[static_cast<std::size_t>(i)]);
}

TEST_CASE("what a receiver drops in an overload is counted, and the rest is as sent", "[net]") {
    const std::size_t frames = GENERATE(90U, 559U);
    BatchPool pool(8, std::size_t{64} << 10, make_host_memory({false, false}));
    BatchQueue queue(1, pool.count());
    OverloadGate gate(pool);
    ReceiverOptions options;
    options.address = "127.0.0.1";
    options.receive_buffer_bytes = std::size_t{1} << 20;
    Receiver receiver(options, pool, queue.lane(0), &gate);
    receiver.start();
    Sender out({"127.0.0.1", receiver.port(), true});
    const ReceiverCounters& c = receiver.counters();
    // The next stage takes what comes, and gives back a batch now and then.
    std::vector<Batch*> held;
    std::vector<std::uint64_t> numbers;
    const auto take = [&] {
        while (const auto piece = queue.take()) {
            each_group(*piece->batch, piece->datagrams, [&](const Group& group) {
                group.each([&](const Datagram& d) { numbers.push_back(d.sequence); });
            });
            if (piece->last) held.push_back(piece->batch);
        }
    };
    const auto give_back = [&] {
        if (held.empty()) return;
        pool.put(held.back());
        held.pop_back();
    };
    std::uint64_t number = 0;
    REQUIRE(eventually([&] {
        for (int i = 0; i < 400; ++i) {
            Bytes payload(header_bytes + frames * frame_bytes);
            encode_header({0, 1, number++}, payload.data(), FrameVersion::one);
            out.send(Burst({payload}).views());
        }
        take();
        give_back();
        return c.datagrams_dropped_no_buffer.value() > 0;
    }));
    // There is room for the rest.
    REQUIRE(eventually([&] {
        take();
        give_back();
        return held.empty();
    }));
    receiver.stop();
    take();
    while (!held.empty())
        give_back();
    CHECK(numbers.size() == c.datagrams_delivered.value());
    CHECK(c.datagrams_received.value() ==
          c.datagrams_delivered.value() + c.datagrams_dropped_no_buffer.value());
    CHECK(c.frames_dropped_no_buffer.value() == frames * c.datagrams_dropped_no_buffer.value());
    CHECK(std::is_sorted(numbers.begin(), numbers.end()));
}
