// How the bytes of datagrams are arranged: header, length and byte order of the frames, markers. Found by
// trying, so that a board with one mistake can still be judged for the rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "net/wire.hpp"
#include "tools/petctl/doctor/sample.hpp"

namespace petacq::petctl {

/// One frame in 256 of another format has given markers by chance; this many do not agree by chance.
inline constexpr std::size_t frames_needed = 16;

struct Markers {
    unsigned head = 0;
    unsigned tail = 0;  ///< frames of version 2 have none: 0
    bool operator==(const Markers&) const = default;
};

/// The bytes of a frame: as in the wire format, or in groups of bytes, each reversed.
enum class FrameOrder : std::uint8_t { as_specified = 1, of_2 = 2, of_4 = 4, of_8 = 8, of_16 = 16 };

struct Shape {
    std::size_t header = net::header_bytes;
    std::size_t period = net::frame_bytes;  ///< from a frame to the next
    std::size_t trailer = 0;                ///< behind the last frame
    FrameOrder order = FrameOrder::as_specified;

    bool operator==(const Shape&) const = default;
};

/// The frames of a sample whose 16 bytes are there, in the byte order of the wire format.
std::vector<net::FrameWords> frames_of(const Sample& sample, const Shape& shape);

/// The shape in which nine frames of ten, and nine first frames of ten, have one of these pairs of markers.
/// Of several the one most like the wire format. Absent: none.
std::optional<Shape> find_shape(const std::set<Sample>& samples, const std::vector<Markers>& pairs,
                                config::FrameVersion version);

}  // namespace petacq::petctl
