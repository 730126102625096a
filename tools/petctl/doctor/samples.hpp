// What samples of datagrams tell about the boards: framing, markers, modules, times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "config/choices.hpp"

namespace petacq::petctl {

/// The beginning of a datagram, as `reception.samples` of the status has it.
struct Sample {
    std::string address;  ///< of its sender, with the port
    std::size_t bytes = 0;
    std::vector<std::byte> head;
    double arrived_s = 0;

    bool operator<(const Sample& other) const {
        return std::tie(address, arrived_s) < std::tie(other.address, other.arrived_s);
    }
};

/// Adds the samples of a status; those that are there already stay once.
void add_samples(const nlohmann::json& status, std::set<Sample>& samples);

struct Markers {
    unsigned head = 0;
    unsigned tail = 0;
    bool operator==(const Markers&) const = default;
};

/// Address with port, and the id in sequenced datagrams.
using SenderName = std::pair<std::string, std::optional<unsigned>>;

/// One frame in 256 of another format has given markers by chance; so many do not agree by chance.
inline constexpr std::size_t frames_needed = 16;

/// The detector time of a sample, and when it arrived.
struct TimeReading {
    double arrived_s = 0;
    std::uint64_t ticks = 0;  ///< of its first frame with the markers that most have
};

struct Sender {
    std::set<unsigned> modules;         ///< of the frames with those markers
    std::vector<TimeReading> readings;  ///< in order of arrival
};

struct Impression {
    std::size_t samples = 0;
    std::size_t frames = 0;  ///< in them, without tags
    std::set<std::size_t> sizes;
    std::optional<config::Framing> framing;  ///< of most of them; absent: not petacqd's frames
    std::optional<Markers> markers;          ///< of most of their frames
    std::map<SenderName, Sender> senders;

    /// The header of sequenced framing has a magic number. Bare frames have only their size and their
    /// markers, so that a few may be anything.
    [[nodiscard]] bool sure_of_framing() const {
        return framing && (*framing == config::Framing::sequenced || frames >= frames_needed);
    }
};

/// `tag_marker`: frames with this head marker are no hits.
Impression impression_of(const std::set<Sample>& samples, unsigned tag_marker);

}  // namespace petacq::petctl
