// FrameCheck for a loop: all fields of a hit are compared at once.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "net/wire.hpp"

namespace petacq::net {

/// Whether frames are valid hits, like FrameCheck::valid_hit() with every count at least 1. The module must
/// be in the set of its sender, too: that is left to the caller. In version 2 that set tells all about the
/// module, whose 16 bits are no matter of single bytes.
class FrameTest {
    // The bytes of a frame, in a vector register.
    using Bytes __attribute__((vector_size(16))) = std::uint8_t;

  public:
    explicit FrameTest(const FrameCheck& check) {
        const auto field = [this](std::size_t byte, unsigned mask, unsigned least, unsigned count) {
            mask_[byte] = static_cast<std::uint8_t>(mask);
            least_[byte] = static_cast<std::uint8_t>(least);
            assert(count != 0);
            most_[byte] = static_cast<std::uint8_t>(count - 1);
        };
        const bool one = check.version == FrameVersion::one;
        // The head marker is the high half of its byte, so that du is a range of values of the byte.
        field(one ? 0 : 15, 0xFF, unsigned{check.head_marker} << 4, std::min<unsigned>(check.du_count, 16));
        if (one) {
            field(1, 0xFF, 0, std::min<unsigned>(check.bdm_count, 256));
            field(15, 0x0F, check.tail_marker, 1);
        }
        field(10, 0xFF, 0, std::min<unsigned>(check.position_size, 256));
        field(11, 0xFF, 0, std::min<unsigned>(check.position_size, 256));
    }

    [[nodiscard]] bool both_pass(const std::byte* a, const std::byte* b) const {
        const Bytes wrong = wrong_bytes(a) | wrong_bytes(b);
        std::uint64_t half[2];
        std::memcpy(half, &wrong, sizeof half);
        return (half[0] | half[1]) == 0;
    }

  private:
    [[nodiscard]] Bytes wrong_bytes(const std::byte* frame) const {
        Bytes bytes;
        std::memcpy(&bytes, frame, sizeof bytes);
        return ((bytes & mask_) - least_) > most_;
    }

    // A byte is right if, masked, it lies in [least, least + most].
    Bytes mask_{};
    Bytes least_{};
    Bytes most_{};
};

}  // namespace petacq::net
