#include "tools/petctl/doctor/samples.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "net/wire.hpp"
#include "tools/petctl/values.hpp"

namespace petacq::petctl {

using nlohmann::json;

namespace {

std::vector<std::byte> bytes_of(const std::string& hexadecimal) {
    const auto digit = [](char c) { return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10) & 0xF; };
    std::vector<std::byte> bytes;
    for (std::size_t i = 0; i + 1 < hexadecimal.size(); i += 2)
        bytes.push_back(static_cast<std::byte>(digit(hexadecimal[i]) << 4 | digit(hexadecimal[i + 1])));
    return bytes;
}

/// Petacqd's framings differ by the magic number of the header.
std::optional<config::Framing> framing_of(const Sample& sample) {
    net::DatagramHeader header;
    // Only the header is read, and the size compared.
    const bool whole = sample.head.size() >= net::header_bytes || sample.bytes == sample.head.size();
    for (const auto framing : {config::Framing::sequenced, config::Framing::bare}) {
        if (whole &&
            net::parse_datagram(framing, sample.head.data(), sample.bytes, header) == net::Malformed::none)
            return framing;
    }
    return std::nullopt;
}

std::vector<net::Frame> frames_of(const Sample& sample, config::Framing framing) {
    std::vector<net::Frame> frames;
    std::size_t at = framing == config::Framing::sequenced ? net::header_bytes : 0;
    for (; at + net::frame_bytes <= sample.head.size(); at += net::frame_bytes)
        frames.push_back(net::decode_frame(sample.head.data() + at));
    return frames;
}

/// The key with the largest count.
template <class Key>
std::optional<Key> most_frequent(const std::map<Key, std::size_t>& counts) {
    const auto found = std::max_element(counts.begin(), counts.end(),
                                        [](const auto& a, const auto& b) { return a.second < b.second; });
    return found == counts.end() ? std::nullopt : std::optional(found->first);
}

}  // namespace

void add_samples(const json& status, std::set<Sample>& samples) {
    const json& found = at(status, {"reception", "samples"});
    if (!found.is_array()) return;
    for (const json& one : found) {
        const json& bytes = at(one, {"bytes"});
        const json& head = at(one, {"head"});
        const json& address = at(one, {"address"});
        const json& arrived = at(one, {"arrived_s"});
        if (!bytes.is_number_unsigned() || !head.is_string() || !address.is_string() || !arrived.is_number())
            continue;
        samples.insert({address, bytes.get<std::size_t>(), bytes_of(head.get_ref<const std::string&>()),
                        arrived.get<double>()});
    }
}

namespace {

SenderName name_of(const Sample& sample, std::optional<config::Framing> framing) {
    net::DatagramHeader header;
    const bool has_id =
        framing == config::Framing::sequenced &&
        net::parse_datagram(*framing, sample.head.data(), sample.bytes, header) == net::Malformed::none;
    return {sample.address, has_id ? std::optional<unsigned>(header.source) : std::nullopt};
}

/// What most of the samples are; absent if fewer than half are so.
std::optional<config::Framing> framing_of(const std::set<Sample>& samples) {
    std::map<config::Framing, std::size_t> counts;
    for (const Sample& sample : samples) {
        if (const auto framing = framing_of(sample)) ++counts[*framing];
    }
    const auto framing = most_frequent(counts);
    return framing && 2 * counts[*framing] >= samples.size() ? framing : std::nullopt;
}

/// The same of the frames, which it counts.
std::optional<Markers> markers_of(const std::set<Sample>& samples, config::Framing framing,
                                  unsigned tag_marker, std::size_t& frames) {
    std::map<std::pair<unsigned, unsigned>, std::size_t> counts;
    for (const Sample& sample : samples) {
        for (const net::Frame& frame : frames_of(sample, framing)) {
            if (frame.head_marker == tag_marker) continue;
            ++counts[{frame.head_marker, frame.tail_marker}];
            ++frames;
        }
    }
    const auto pair = most_frequent(counts);
    if (!pair || 2 * counts[*pair] < frames) return std::nullopt;
    return Markers{pair->first, pair->second};
}

bool has(const net::Frame& frame, const Markers& markers) {
    return Markers{frame.head_marker, frame.tail_marker} == markers;
}

}  // namespace

Impression impression_of(const std::set<Sample>& samples, unsigned tag_marker) {
    Impression seen;
    seen.samples = samples.size();
    seen.framing = framing_of(samples);
    if (seen.framing) seen.markers = markers_of(samples, *seen.framing, tag_marker, seen.frames);
    for (const Sample& sample : samples) {
        seen.sizes.insert(sample.bytes);
        const SenderName name = name_of(sample, seen.framing);
        Sender& sender = seen.senders[name];
        if (!seen.markers) continue;
        bool timed = false;  // the first time of a datagram
        for (const net::Frame& frame : frames_of(sample, *seen.framing)) {
            if (!has(frame, *seen.markers)) continue;
            sender.modules.insert(frame.bdm);
            if (!std::exchange(timed, true)) sender.readings.push_back({sample.arrived_s, frame.time});
        }
    }
    return seen;
}

}  // namespace petacq::petctl
