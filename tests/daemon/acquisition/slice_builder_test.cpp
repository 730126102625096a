// When a slice is full, and when it keeps too many batches.
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
    builder.add(batch, datagram, {true, 5, 500});
    CHECK_FALSE(builder.empty());
    CHECK_FALSE(builder.full());
    datagram.offset = 1024;
    builder.add(batch, datagram, {true, 6, 600});
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

TEST_CASE("a slice keeps too many batches when it keeps a quarter of them") {
    SliceBuilder builder(100, 8);
    CHECK_FALSE(builder.keeps_too_many());
    net::Batch batch;
    builder.keep(&batch);
    CHECK_FALSE(builder.keeps_too_many());
    builder.keep(&batch);
    CHECK(builder.keeps_too_many());
    builder.contents().batches.clear();
    CHECK_FALSE(builder.keeps_too_many());
}
