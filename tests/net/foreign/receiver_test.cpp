// Foreign datagrams through a receiver: coalesced or not, with a pool that runs empty in the middle of a
// message.
#include <random>

#include "tests/net/foreign/formats.hpp"
#include "tests/net/loopback.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

constexpr std::size_t small_batch = std::size_t{64} << 10;

net::ReceiverOptions foreign_options(bool gro) {
    net::ReceiverOptions options;
    options.gro = gro;
    options.foreign = format_of(counted_format(), counted_tick_ps);
    return options;
}

/// Runs of equal size, which the kernel coalesces, then one of another size.
std::vector<std::vector<Bytes>> bursts(std::mt19937_64& random) {
    std::vector<std::vector<Bytes>> all;
    unsigned sequence = 0;
    for (const std::size_t frames : {180, 3, 0, 1000, 180, 4000}) {
        auto& burst = all.emplace_back();
        const std::size_t count = std::min<std::size_t>(40, 60'000 / (4 + 8 * frames));
        for (std::size_t i = 0; i < count; ++i) {
            std::vector<std::uint64_t> times(frames);
            for (std::uint64_t& time : times)
                time = 1000 + random() % 1000;
            burst.push_back(counted_datagram(5, sequence++, times));
        }
    }
    return all;
}

/// Compares what was received with the frames that a separate translator makes of the same datagrams.
void check_same(const std::vector<std::vector<Bytes>>& sent, const std::vector<Received>& received) {
    net::Translator reference(format_of(counted_format(), counted_tick_ps));
    std::size_t i = 0;
    for (const std::vector<Bytes>& burst : sent) {
        for (const Bytes& datagram : burst) {
            REQUIRE(i < received.size());
            const Received& got = received[i++];
            const Translated meant = translate(reference, datagram);
            REQUIRE(got.record.sequence == meant.header.sequence);
            REQUIRE(got.record.source == 5);
            REQUIRE(got.record.bytes == net::header_bytes + meant.frames.size() * net::frame_bytes);
            REQUIRE(got.record.frames == meant.frames.size());
            REQUIRE(got.record.timed_frames == meant.frames.size());
            for (std::size_t f = 0; f < meant.frames.size(); ++f) {
                const net::Frame frame =
                    net::decode_frame(got.frames.data() + f * net::frame_bytes, net::FrameVersion::one);
                REQUIRE(frame.time == meant.frames[f].time);
                REQUIRE(frame.x == 33);
            }
            if (meant.frames.empty()) continue;
            REQUIRE(got.record.first_time == meant.frames.front().time);
            REQUIRE(got.record.last_time == meant.frames.back().time);
        }
    }
    CHECK(i == received.size());
}

}  // namespace

TEST_CASE("foreign datagrams wait for batches, also in the middle of a message", "[foreign]") {
    const bool gro = GENERATE(true, false);
    INFO("GRO " << gro);
    Loopback loop(foreign_options(gro), 3, small_batch);
    auto sender = loop.sender(gro);
    std::mt19937_64 random(1);
    const auto sent = bursts(random);
    std::size_t count = 0;
    for (const std::vector<Bytes>& burst : sent) {
        sender.send(Burst(burst).views());
        count += burst.size();
    }
    loop.receiver.start();
    REQUIRE(eventually([&] { return loop.pool.waits() > 0; }));
    REQUIRE(loop.collect_datagrams(count));
    check_same(sent, loop.received);
    CHECK(loop.counters().datagrams_received.value() == count);
    CHECK(loop.identity_closes());
}

TEST_CASE("a stop counts the foreign datagrams for which no batch comes back", "[foreign]") {
    Loopback loop(foreign_options(true), 3, small_batch);
    auto sender = loop.sender();
    std::mt19937_64 random(1);
    const auto sent = bursts(random);
    std::size_t datagrams = 0;
    std::size_t frames = 0;
    for (const std::vector<Bytes>& burst : sent) {
        sender.send(Burst(burst).views());
        datagrams += burst.size();
        for (const Bytes& datagram : burst)
            frames += (datagram.size() - 4) / 8;
    }
    loop.receiver.start();
    REQUIRE(eventually([&] { return loop.pool.waits() > 0; }));
    loop.receiver.stop();
    const net::ReceiverCounters& c = loop.counters();
    CHECK(c.datagrams_received.value() == datagrams);
    CHECK(c.datagrams_dropped_no_buffer.value() > 0);
    CHECK(c.frames_delivered.value() + c.frames_dropped_no_buffer.value() == frames);
    CHECK(loop.identity_closes());
}

TEST_CASE("unknown senders and malformed foreign datagrams are counted, and kept for a capture",
          "[foreign]") {
    net::ReceiverOptions options = foreign_options(true);
    options.keep_rejected = true;
    options.allowed_sources = {{5, {}, {}}};
    Loopback loop(options);
    PlainSender sender("127.0.0.1", loop.receiver.port());
    Bytes own(net::header_bytes + net::frame_bytes);  // petacqd's own format is malformed here
    net::encode_header({0, 5, 1}, own.data(), net::FrameVersion::one);
    sender.send(own);
    sender.send({});
    sender.send(counted_datagram(6, 0, {1, 2, 3}));
    sender.send(counted_datagram(5, 0, {1, 2, 3}));
    loop.receiver.start();
    REQUIRE(loop.wait_received(4));
    REQUIRE(loop.collect_datagrams(3));
    CHECK(loop.received[0].record.admitted == net::Admitted::malformed);
    CHECK(loop.received[0].record.bytes == net::frame_bytes - 1);
    CHECK(loop.received[1].record.admitted == net::Admitted::malformed);
    CHECK(loop.received[1].record.bytes == 0);
    CHECK(loop.received[2].record.admitted == net::Admitted::yes);
    CHECK(loop.received[2].record.frames == 3);
    CHECK(loop.counters().datagrams_unknown_source.value() == 1);
    CHECK(loop.identity_closes());
    loop.receiver.stop();
    const auto unknown_senders = loop.receiver.unknown_senders();
    REQUIRE(unknown_senders.size() == 1);
    CHECK(unknown_senders[0].id == 6);
    CHECK(unknown_senders[0].frames == 3);
}
