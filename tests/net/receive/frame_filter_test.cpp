// FrameTest against FrameCheck, which looks at one field after the other.
#include "net/receive/frame_filter.hpp"

#include <array>
#include <random>

#include "tests/support/catch.hpp"

using namespace petacq::net;

TEST_CASE("all fields at once give the same result as one after the other") {
    std::mt19937 random(7);
    const auto below = [&random](unsigned n) {
        return std::uniform_int_distribution<unsigned>(0, n - 1)(random);
    };
    unsigned valid = 0;
    for (int scanner = 0; scanner < 100; ++scanner) {
        // Counts at both ends of their ranges, too.
        const auto count = [&](unsigned most) { return std::array{1U, most, 1 + below(most)}[below(3)]; };
        const FrameCheck check{static_cast<std::uint8_t>(below(16)),
                               static_cast<std::uint8_t>(below(16)),
                               count(256),
                               static_cast<std::uint16_t>(count(16)),
                               static_cast<std::uint16_t>(count(256)),
                               default_tag_marker,
                               scanner % 2 == 0 ? FrameVersion::one : FrameVersion::two};
        const bool one = check.version == FrameVersion::one;
        const FrameTest test(check);
        // In version 2 the set alone tells which modules there are.
        const Modules modules = Modules::below(check.bdm_count);
        // A valid frame with, usually, one byte changed; the rest is anything.
        const auto make = [&] {
            std::array<std::byte, frame_bytes> frame{};
            for (std::byte& b : frame)
                b = static_cast<std::byte>(below(256));
            const auto head_and_du = static_cast<std::byte>(check.head_marker << 4 | below(check.du_count));
            frame[0] = one ? head_and_du : std::byte{0};
            frame[1] = static_cast<std::byte>(below(check.bdm_count));
            frame[10] = static_cast<std::byte>(below(check.position_size));
            frame[11] = static_cast<std::byte>(below(check.position_size));
            frame[15] = one ? static_cast<std::byte>(below(16) << 4 | check.tail_marker) : head_and_du;
            if (below(3) != 0) frame[below(frame_bytes)] = static_cast<std::byte>(below(256));
            return frame;
        };
        for (int i = 0; i < 500; ++i) {
            const auto a = make();
            const auto b = make();
            const bool expected = check.valid_hit(a.data()) && check.valid_hit(b.data());
            const bool passed = test.both_pass(a.data(), b.data()) &&
                                modules[frame_bdm(a.data(), check.version)] &&
                                modules[frame_bdm(b.data(), check.version)];
            if (passed != expected) FAIL("scanner " << scanner << ", pair " << i);
            valid += expected;
        }
    }
    CHECK(valid > 5000);
    CHECK(valid < 45000);
}
