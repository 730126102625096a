// Only valid frames speak for a time.
#include "net/wire.hpp"

#include <vector>

#include "tests/support/catch.hpp"

using namespace petacq::net;

namespace {

const FrameCheck small_scanner{0xA, 0x5, 8, 4, 100};
const Modules all_modules = ~Modules();
const Frame good_frame{0xA, 3, 7, 0, 99, 99, 500, 0, 0x5};

std::vector<std::byte> encoded_frames(const std::vector<Frame>& frames) {
    std::vector<std::byte> bytes(frames.size() * frame_bytes);
    for (std::size_t i = 0; i < frames.size(); ++i)
        encode_frame(frames[i], bytes.data() + i * frame_bytes);
    return bytes;
}

Frame at(std::uint64_t time, Frame frame = good_frame) {
    frame.time = time;
    return frame;
}

ValidTimes times_of(const std::vector<Frame>& frames) {
    return valid_times(small_scanner, all_modules, encoded_frames(frames).data(), frames.size());
}

}  // namespace

TEST_CASE("a frame is valid with both markers and all addresses in range") {
    CHECK(small_scanner.valid(encoded_frames({good_frame}).data(), all_modules));
    std::vector<Frame> bad(6, good_frame);
    bad[0].head_marker = 0xB;
    bad[1].tail_marker = 0x4;
    bad[2].bdm = 8;
    bad[3].du = 4;
    bad[4].x = 100;
    bad[5].y = 100;
    for (const Frame& frame : bad)
        CHECK_FALSE(small_scanner.valid(encoded_frames({frame}).data(), all_modules));
    CHECK(small_scanner.valid(encoded_frames({good_frame}).data(), Modules().set(7)));
    CHECK_FALSE(small_scanner.valid(encoded_frames({good_frame}).data(), Modules().set(6)));
}

TEST_CASE("the times of a datagram are those of its first and last valid frame") {
    Frame bad = good_frame;
    bad.tail_marker = 0;
    const Frame wild = at(UINT64_MAX, bad);
    const auto check = [](const std::vector<Frame>& frames, std::uint64_t first, std::uint64_t last,
                          std::uint32_t count) {
        const ValidTimes times = times_of(frames);
        CHECK(times.first == first);
        CHECK(times.last == last);
        CHECK(times.frames == count);
    };
    check({at(5), at(6), at(9)}, 5, 9, 3);
    check({wild, at(5), wild, at(9), wild, wild}, 5, 9, 3);
    check({wild, at(5), wild}, 5, 5, 1);
    check({at(7)}, 7, 7, 1);
    check({wild, wild}, 0, 0, 0);
    check({}, 0, 0, 0);
}
