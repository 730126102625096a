// The versions of a frame, and how many modules each can name.
#pragma once

#include <cstdint>

namespace petacq::config {

/// The form of the frames of a scanner's boards (docs/reference/wire-format.md). The number is the
/// `frame_version` of the scanner description, and the version in the header of a sequenced datagram.
enum class FrameVersion : std::uint8_t {
    one = 1,  ///< the module in 8 bits
    two = 2   ///< the module in 16 bits
};

/// Modules (BDMs) that a frame can name.
constexpr std::uint32_t max_bdm_count(FrameVersion version) {
    return version == FrameVersion::one ? 256 : 65'536;
}

}  // namespace petacq::config
