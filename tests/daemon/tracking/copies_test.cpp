// Datagrams of bare framing that come twice.
#include <array>
#include <random>
#include <vector>

#include "daemon/tracking/copy_watch.hpp"
#include "net/wire.hpp"
#include "tests/support/catch.hpp"

using petacq::daemon::CopyWatch;
namespace net = petacq::net;

namespace {

constexpr std::int64_t milli = 1'000'000;

using Payload = std::vector<std::byte>;

Payload payload(std::uint64_t time, std::size_t frames) {
    Payload bytes(frames * net::frame_bytes);
    for (std::size_t i = 0; i < frames; ++i) {
        net::Frame frame{};
        frame.head_marker = net::default_head_marker;
        frame.tail_marker = net::default_tail_marker;
        frame.time = time + i;
        net::encode_frame(frame, bytes.data() + i * net::frame_bytes, net::FrameVersion::one);
    }
    return bytes;
}

std::uint64_t fingerprint(const Payload& bytes) {
    return net::fingerprint_of(bytes.data(), bytes.size() / net::frame_bytes);
}

}  // namespace

TEST_CASE("a payload that a source sends again within a second is a copy", "[copies]") {
    CopyWatch watch;
    const std::uint64_t one = fingerprint(payload(1000, 91));
    const std::uint64_t other = fingerprint(payload(2000, 91));
    CHECK_FALSE(watch.is_copy(0, one, 5 * milli));
    CHECK_FALSE(watch.is_copy(1, one, 5 * milli));  // of another source
    CHECK_FALSE(watch.is_copy(0, other, 6 * milli));
    CHECK(watch.is_copy(0, one, 7 * milli));
    CHECK(watch.is_copy(1, one, 7 * milli));
    CHECK(watch.is_copy(0, one, 1007 * milli));  // a third
    CHECK_FALSE(watch.is_copy(0, one, 2008 * milli));
    CHECK_FALSE(CopyWatch().is_copy(0, 0, 0));
}

TEST_CASE("copies are found among the datagrams of many sources, and only those", "[copies]") {
    CopyWatch watch;
    std::mt19937_64 random(5);
    std::size_t copies = 0;
    std::size_t wrong = 0;
    constexpr std::size_t count = 100'000;
    constexpr std::size_t behind = 200;  // datagrams between one and its copy
    std::array<std::pair<std::uint32_t, std::uint64_t>, behind> latest{};
    for (std::size_t i = 0; i < count; ++i) {
        const auto now = static_cast<std::int64_t>(i) * 1000;
        auto& [source, number] = latest.at(i % behind);
        if (i >= behind) copies += watch.is_copy(source, number, now) ? 1 : 0;
        source = static_cast<std::uint32_t>(random() % 500);
        number = fingerprint(payload(random(), 1 + random() % 3));
        wrong += watch.is_copy(source, number, now) ? 1 : 0;
    }
    CHECK(wrong == 0);
    CHECK(copies > (count - behind) * 95 / 100);  // some are hidden by others
}

TEST_CASE("any change at an end of the payload, and its length, change the fingerprint", "[copies]") {
    const Payload bytes = payload(1000, 3);
    const std::uint64_t original = fingerprint(bytes);
    CHECK(fingerprint(payload(1000, 3)) == original);
    for (const std::size_t at : {0U, 1U, 9U, 13U, 15U, 32U, 33U, 41U, 45U, 47U}) {
        Payload changed = bytes;
        changed[at] ^= std::byte{0x10};
        CHECK(fingerprint(changed) != original);
    }
    Payload longer = payload(1000, 2);
    longer.insert(longer.end(), bytes.end() - net::frame_bytes, bytes.end());
    longer.insert(longer.end(), bytes.end() - net::frame_bytes, bytes.end());
    CHECK(fingerprint(longer) != original);
    CHECK(net::fingerprint_of(nullptr, 0) == 0);
}
