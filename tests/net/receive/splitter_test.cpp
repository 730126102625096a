// Messages into datagrams: a coalesced message gives the records that its datagrams give one by one.
#include "net/receive/splitter.hpp"

#include <array>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <vector>

#include "net/wire.hpp"
#include "tests/support/catch.hpp"

using namespace petacq::net;

namespace {

constexpr std::size_t frames_each = 3;
constexpr std::size_t datagram_bytes = header_bytes + frames_each * frame_bytes;

void put_datagram(std::uint16_t source, std::uint64_t sequence, std::byte* out) {
    encode_header({0, source, sequence}, out, FrameVersion::one);
    for (std::size_t i = 0; i < frames_each; ++i) {
        Frame frame{};
        frame.head_marker = default_head_marker;
        frame.tail_marker = default_tail_marker;
        frame.bdm = static_cast<std::uint8_t>(source);
        frame.time = 1000 + sequence * 10 + i;
        encode_frame(frame, out + header_bytes + i * frame_bytes, FrameVersion::one);
    }
}

}  // namespace

TEST_CASE("the sources of a sender may alternate in a message, also those whose ids share their low bits",
          "[net]") {
    // 7 and 71, and 263, share an entry of the splitter; each carries its own module alone.
    const std::vector<std::uint16_t> ids{7, 71, 7, 8, 263, 71, 8, 8, 7, 263};
    ReceiverOptions options;
    for (const std::uint16_t id : std::initializer_list<std::uint16_t>{7, 8, 71}) {
        AllowedSource source;
        source.id = id;
        source.modules.set(id);
        options.allowed_sources.push_back(source);
    }
    BatchPool pool(2, 1U << 17, make_host_memory({}));
    std::array<Batch*, 2> batches{pool.take(), pool.take()};
    std::array<ReceiverCounters, 2> counters;
    const std::size_t size = ids.size() * datagram_bytes;
    for (std::size_t way = 0; way < 2; ++way) {
        Splitter splitter(options, counters[way]);
        Batch& batch = *batches[way];
        for (std::size_t i = 0; i < ids.size(); ++i)
            put_datagram(ids[i], i, batch.data + i * datagram_bytes);
        const std::size_t step = way == 0 ? size : datagram_bytes;
        for (std::size_t at = 0; at < size; at += step)
            splitter.split({batch.data + at, step, datagram_bytes, 1, 2, 3}, &batch);
        splitter.publish_counts();
        batch.used = size;
    }
    std::array<std::vector<Datagram>, 2> members;
    for (std::size_t way = 0; way < 2; ++way) {
        each_group(*batches[way], batches[way]->datagrams, [&](const Group& group) {
            group.each([&](const Datagram& d) { members[way].push_back(d); });
        });
    }
    REQUIRE(members[0].size() == 8);  // 263 is not allowed
    REQUIRE(members[1].size() == 8);
    CHECK(counters[0].datagrams_unknown_source.value() == 2);
    for (std::size_t i = 0; i < 8; ++i) {
        const Datagram& together = members[0][i];
        const Datagram& alone = members[1][i];
        CHECK(together.source == ids[together.sequence]);
        CHECK(together.first_bdm == ids[together.sequence]);
        CHECK(together.timed_frames == frames_each);
        CHECK(std::memcmp(&together, &alone, offsetof(Datagram, admitted)) == 0);
    }
    for (Batch* batch : batches)
        pool.put(batch);
}
