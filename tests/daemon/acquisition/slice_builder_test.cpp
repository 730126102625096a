// When a slice is full, what waits before it, and when it has read many batches.
#include "daemon/acquisition/slice_builder.hpp"

#include <array>

#include "tests/support/catch.hpp"

using namespace petacq;
using namespace petacq::daemon;

TEST_CASE("accepted datagrams are spans of a slice until it is full") {
    std::array<std::byte, 4096> memory{};
    net::Batch batch;
    batch.data = memory.data();
    net::Datagram datagram;
    datagram.offset = 32;
    datagram.frames = 60;
    SliceBuilder builder(100, 8);
    CHECK(builder.empty());
    builder.add(batch, datagram, {5, 500});
    CHECK_FALSE(builder.empty());
    CHECK_FALSE(builder.full());
    datagram.offset = 1024;
    builder.add(batch, datagram, {6, 600});
    CHECK(builder.full());
    CHECK(builder.frames() == 120);
    builder.keep(&batch);
    const SliceContents& contents = builder.contents();
    REQUIRE(contents.spans.size() == 2);
    CHECK(contents.spans[0].frames == memory.data() + 32);
    CHECK(contents.spans[1].frames == memory.data() + 1024);
    CHECK(contents.spans[1].count == 60);
    CHECK(contents.spans[1].time_low == 6);
    CHECK(contents.spans[1].time_high == 600);
    CHECK(contents.batches == std::vector<net::Batch*>{&batch});
}

TEST_CASE("a full slice that nobody takes waits before the next one") {
    std::array<std::byte, 4096> memory{};
    net::Batch batch;
    batch.data = memory.data();
    net::Datagram datagram;
    datagram.frames = 60;
    SliceBuilder builder(100, 8);
    for (std::uint32_t i = 0; i < 5; ++i) {
        datagram.offset = i * 16;
        builder.add(batch, datagram, {0, 1000, i});
    }
    builder.keep(&batch);
    CHECK(builder.frames() == 300);
    builder.restrict_times([](std::uint32_t source) { return Verdict{source, 100}; });
    for (std::uint32_t i = 0; i < 4; i += 2) {
        REQUIRE(builder.has_waiting());
        const SliceContents waiting = builder.take_waiting();
        CHECK(waiting.frames == 120);
        CHECK(waiting.batches.empty());
        REQUIRE(waiting.spans.size() == 2);
        CHECK(waiting.spans[0].frames == memory.data() + std::size_t{i} * 16);
        CHECK(waiting.spans[1].time_low == i + 1);
        CHECK(waiting.spans[1].time_high == 100);
    }
    CHECK_FALSE(builder.has_waiting());
    CHECK(builder.frames() == 60);
    CHECK(builder.contents().spans.size() == 1);
    CHECK(builder.contents().batches.size() == 1);
}

TEST_CASE("many batches have been read when it is a quarter of them since the start") {
    SliceBuilder builder(100, 8);
    CHECK_FALSE(builder.has_many_batches());
    net::Batch batch;
    builder.keep(&batch);
    CHECK_FALSE(builder.has_many_batches());
    builder.contents().batches.clear();  // back already
    builder.keep(&batch);
    CHECK(builder.has_many_batches());
    builder.start(5);
    CHECK_FALSE(builder.has_many_batches());
    CHECK(builder.age_ns(7) == 2);
}
