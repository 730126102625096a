// Only valid frames speak for a time.
#include "net/wire.hpp"

#include <vector>

#include "tests/support/catch.hpp"

using namespace petacq::net;

namespace {

const FrameCheck small_scanner{0xA, 0x5, 8, 4, 100};
const Modules all_modules = Modules::below(65'536);
const Frame good_frame{0xA, 3, 7, 0, 99, 99, 500, 0, 0x5};

std::vector<std::byte> encoded_frames(const std::vector<Frame>& frames) {
    std::vector<std::byte> bytes(frames.size() * frame_bytes);
    for (std::size_t i = 0; i < frames.size(); ++i)
        encode_frame(frames[i], bytes.data() + i * frame_bytes, FrameVersion::one);
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
    bad[0].head_marker = 0xC;
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

TEST_CASE("the temperature of a datagram is that of its last valid hit") {
    const auto warm = [](std::int16_t sixteenths, Frame frame = good_frame) {
        frame.temperature_16ths = sixteenths;
        return frame;
    };
    Frame bad = good_frame;
    bad.tail_marker = 0;
    CHECK(times_of({warm(5), warm(-23)}).temperature_16ths == -23);
    CHECK(times_of({warm(400), warm(-1, bad)}).temperature_16ths == 400);
    CHECK(times_of({warm(-2048)}).temperature_16ths == -2048);
    CHECK(times_of({warm(7, bad)}).temperature_16ths == 0);
}

TEST_CASE("a tag speaks for a time like a hit, and for no module") {
    std::vector<std::byte> bytes(3 * frame_bytes);
    const auto put = [&bytes](std::size_t i, std::uint64_t time, std::uint8_t tail) {
        encode_tag({0xB, 15, 200, time, 1, tail}, bytes.data() + i * frame_bytes, FrameVersion::one);
    };
    put(0, 4, 0x5);
    encode_frame(at(6), bytes.data() + frame_bytes, FrameVersion::one);
    put(2, 9, 0x5);
    CHECK(small_scanner.valid(bytes.data(), Modules()));
    CHECK_FALSE(small_scanner.valid_hit(bytes.data(), all_modules));
    const ValidTimes mixed = valid_times(small_scanner, all_modules, bytes.data(), 3);
    CHECK(mixed.first == 4);
    CHECK(mixed.last == 9);
    CHECK(mixed.frames == 3);
    CHECK(mixed.hits);
    CHECK(mixed.first_bdm == 7);
    CHECK(mixed.last_bdm == 7);

    put(1, 6, 0x5);
    put(2, 9, 0x4);  // a wrong tail marker
    const ValidTimes tags = valid_times(small_scanner, all_modules, bytes.data(), 3);
    CHECK(tags.first == 4);
    CHECK(tags.last == 6);
    CHECK(tags.frames == 2);
    CHECK_FALSE(tags.hits);
    CHECK(times_of({good_frame}).hits);
    FrameCheck same_markers = small_scanner;
    same_markers.tag_marker = same_markers.head_marker;
    CHECK_FALSE(same_markers.valid_tag(encoded_frames({good_frame}).data()));
}

TEST_CASE("frames of version 2 are valid by their own markers, and name any of 65,536 modules") {
    const FrameCheck large{0xA, 0x5, 65'536, 4, 100, 0xB, FrameVersion::two};
    std::vector<std::byte> bytes(3 * frame_bytes);
    Frame frame = at(6);
    frame.bdm = 65'535;
    encode_frame(frame, bytes.data() + frame_bytes, FrameVersion::two);
    encode_tag({0xB, 15, 200, 4, 1}, bytes.data(), FrameVersion::two);
    frame.time = 9;
    frame.bdm = 300;
    frame.temperature_16ths = -20;
    encode_frame(frame, bytes.data() + 2 * frame_bytes, FrameVersion::two);
    const Modules modules = Modules().set(300).set(65'535);
    const ValidTimes times = valid_times(large, modules, bytes.data(), 3);
    CHECK(times.first == 4);
    CHECK(times.last == 9);
    CHECK(times.frames == 3);
    CHECK(times.first_bdm == 65'535);
    CHECK(times.last_bdm == 300);
    CHECK(times.temperature_16ths == -32);
    CHECK(valid_times(large, Modules().set(300), bytes.data(), 3).first_bdm == 300);
    FrameCheck smaller = large;
    smaller.bdm_count = 65'535;
    CHECK_FALSE(smaller.valid_hit(bytes.data() + frame_bytes));
    CHECK(large.valid_hit(bytes.data() + frame_bytes));
    CHECK_FALSE(large.valid_hit(bytes.data()));
    CHECK(large.valid_tag(bytes.data()));
    CHECK(earliest_valid_time(large, bytes.data(), 3, 5) == 6);
}
