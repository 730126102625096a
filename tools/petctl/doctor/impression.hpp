// What samples of datagrams tell about the boards: framing, markers, modules, times, numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "config/choices.hpp"
#include "net/wire.hpp"
#include "tools/petctl/doctor/sample.hpp"
#include "tools/petctl/doctor/shape.hpp"

namespace petacq::petctl {

/// Address with port, and the id in sequenced datagrams.
using SenderName = std::pair<std::string, std::optional<unsigned>>;

/// The detector time of a sample, and when it arrived.
struct TimeReading {
    double arrived_s = 0;
    std::uint64_t ticks = 0;  ///< of its first frame with the markers that most have
};

/// The sequence number of a sample.
struct NumberReading {
    std::uint64_t number = 0;
    std::optional<std::uint64_t> next;  ///< of the sender's next datagram
    std::size_t frames = 0;             ///< in the datagram
    double arrived_s = 0;
};

struct Sender {
    std::set<unsigned> modules;         ///< of the frames with those markers
    std::vector<TimeReading> readings;  ///< in order of arrival
    std::vector<NumberReading> numbers;
    std::vector<net::Frame> frames;  ///< with those markers
};

/// What the daemon expects of the boards.
struct Expected {
    config::Framing framing = config::Framing::sequenced;
    Markers markers;
    unsigned tag_marker = 0;
    bool foreign = false;  ///< samples are judged as the daemon has translated them
    config::FrameVersion version = config::FrameVersion::one;
};

struct Impression {
    std::size_t samples = 0;
    std::size_t frames = 0;  ///< in them, without tags
    std::size_t tags = 0;
    std::size_t not_translated = 0;  ///< samples that do not fit the layout
    std::set<std::size_t> sizes;
    double mean_bytes = 0;                   ///< of a datagram
    std::optional<config::Framing> framing;  ///< of most of them; absent: not petacqd's frames
    Shape shape;                             ///< as far as it is known
    bool known_header = true;                ///< in front of the frames is nothing, or petacqd's header
    std::vector<std::byte> strange_header;   ///< what stands there else, of one sample
    std::optional<Markers> markers;          ///< of most of their frames
    std::map<SenderName, Sender> senders;

    /// The header of sequenced framing has a magic number. Bare frames have only their size and their
    /// markers, so that a few may be anything.
    [[nodiscard]] bool sure_of_framing() const {
        return framing && (*framing == config::Framing::sequenced || frames + tags >= frames_needed);
    }
    [[nodiscard]] bool only_tags() const { return frames == 0 && tags >= frames_needed; }
};

Impression impression_of(const std::set<Sample>& samples, const Expected& expected);

}  // namespace petacq::petctl
