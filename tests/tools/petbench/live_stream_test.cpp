// The stream of petbench live: what is sent pass after pass is one stream without a gap or a step.
#include "tools/petbench/live/stream.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <stdexcept>

#include "net/wire.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using bench::LiveStream;
using bench::SequenceNumbers;
using bench::SourceFrames;
using bench::StreamPart;

namespace {

constexpr std::size_t payload = net::header_bytes + 10 * net::frame_bytes;

/// `count` frames at times from 1,000,000 on.
SourceFrames frames_of(std::uint16_t source, std::size_t count) {
    std::mt19937_64 random(source + 1);
    SourceFrames made{source, std::vector<std::byte>(count * net::frame_bytes)};
    for (std::size_t i = 0; i < count; ++i) {
        net::Frame frame{};
        frame.head_marker = net::default_head_marker;
        frame.tail_marker = net::default_tail_marker;
        frame.bdm = static_cast<std::uint8_t>(source);
        frame.energy = static_cast<std::uint16_t>(i);
        frame.time = 1'000'000 + random() % 100'000;
        net::encode_frame(frame, made.frames.data() + i * net::frame_bytes, net::FrameVersion::one);
    }
    return made;
}

struct Received {
    std::vector<std::uint64_t> sequence;
    std::vector<net::Frame> frames;
    std::uint64_t ends = 0;  // datagrams that end the stream

    void take(const net::DatagramHeader& header, std::span<const std::byte> datagram) {
        sequence.push_back(header.sequence);
        if ((header.flags & net::flag_end_of_stream) != 0) ++ends;
        for (std::size_t at = net::header_bytes; at < datagram.size(); at += net::frame_bytes)
            frames.push_back(net::decode_frame(datagram.data() + at, net::FrameVersion::one));
    }
};
using BySource = std::map<std::uint16_t, Received>;

void take(std::span<const std::byte> datagram, BySource& received) {
    net::DatagramHeader header;
    REQUIRE(net::parse_datagram(net::Framing::sequenced, net::FrameVersion::one, datagram.data(),
                                datagram.size(), header) == net::Malformed::none);
    received[header.source].take(header, datagram);
}

/// Stamps datagrams up to the one before `end`, three at a time, and receives them.
void send(StreamPart& part, std::uint64_t ticks, SequenceNumbers& next, std::size_t end, BySource& received) {
    for (std::size_t i = 0; i < end; i += 3) {
        const std::size_t count = std::min<std::size_t>(3, end - i);
        part.stamp(i, count, ticks, next);
        for (std::size_t k = i; k < i + count; ++k)
            take(part.payloads()[k], received);
    }
}

void check_continuous(const BySource& received, std::uint64_t period) {
    for (const auto& [source, r] : received) {
        INFO("source " << source);
        for (std::size_t i = 0; i < r.sequence.size(); ++i)
            REQUIRE(r.sequence[i] == i);
        for (std::size_t i = 1; i < r.frames.size(); ++i)
            REQUIRE(r.frames[i].time >= r.frames[i - 1].time);
        REQUIRE(r.frames.back().time - r.frames.front().time < 6 * period);
    }
}

}  // namespace

TEST_CASE("passes of a live stream have sequence numbers without a gap and times without a step",
          "[petbench]") {
    // The source with 333 frames has 33 full datagrams.
    const std::vector<std::size_t> counts{1000, 330, 7};
    const std::uint64_t burst = GENERATE(1, 700, 1'000'000);
    LiveStream stream(net::FrameVersion::one, {frames_of(0, 1000), frames_of(1, 333), frames_of(5, 7)},
                      payload, 2, burst);
    CHECK(stream.frames() == 1337);
    CHECK(stream.sources() == 3);
    CHECK(stream.period() > 95'000);
    CHECK(stream.period() < 100'100);

    BySource received;
    for (StreamPart& part : stream.parts()) {
        SequenceNumbers next(part.sources().size());
        for (std::uint64_t pass = 0; pass < 5; ++pass)
            send(part, pass * stream.period(), next, part.size(), received);
    }
    check_continuous(received, stream.period());
    std::size_t n = 0;
    for (const auto& [source, r] : received) {
        INFO("source " << source);
        const std::size_t count = counts[n++];
        REQUIRE(r.frames.size() == 5 * count);
        for (std::size_t i = count; i < r.frames.size(); ++i) {
            REQUIRE(r.frames[i].time == r.frames[i - count].time + stream.period());
            REQUIRE(r.frames[i].energy == r.frames[i - count].energy);
        }
    }
}

TEST_CASE("a live stream starts again after an incomplete pass, and ends where it stands", "[petbench]") {
    LiveStream stream(net::FrameVersion::one, {frames_of(0, 500), frames_of(1, 500)}, payload, 1);
    StreamPart& part = stream.parts().front();
    for (int round = 0; round < 2; ++round) {
        BySource received;
        SequenceNumbers next(part.sources().size());
        send(part, 0, next, part.size(), received);
        send(part, stream.period(), next, 61, received);
        for (const std::vector<std::byte>& end : part.ends(next))
            take(end, received);
        check_continuous(received, stream.period());
        for (const auto& [source, r] : received)
            CHECK(r.ends == 1);
    }
}

TEST_CASE("the datagrams of a live stream lie back to back in the order in which they are due",
          "[petbench]") {
    LiveStream stream(net::FrameVersion::one, {frames_of(0, 500), frames_of(1, 80), frames_of(2, 500)},
                      payload, 2);
    for (const StreamPart& part : stream.parts()) {
        for (std::size_t i = 1; i < part.size(); ++i) {
            CHECK(part.due(i) >= part.due(i - 1));
            CHECK(part.payloads()[i].data() == part.payloads()[i - 1].data() + part.payloads()[i - 1].size());
        }
        CHECK(part.due(part.size() - 1) < stream.period());
    }
}

TEST_CASE("a live stream needs a source for each sender", "[petbench]") {
    CHECK_THROWS_AS(LiveStream(net::FrameVersion::one, {frames_of(0, 5), SourceFrames{1, {}}}, payload, 2),
                    std::invalid_argument);
}
