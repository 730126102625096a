#include "tools/petctl/doctor/impression.hpp"

#include <algorithm>

namespace petacq::petctl {

namespace {

using config::Framing;

/// Petacqd's framings differ by the magic number of the header.
std::optional<Framing> framing_of(const Sample& sample, config::FrameVersion version) {
    net::DatagramHeader header;
    // Only the header is read, and the size compared.
    const bool whole = sample.head.size() >= net::header_bytes || sample.bytes == sample.head.size();
    for (const auto framing : {Framing::sequenced, Framing::bare}) {
        if (whole && net::parse_datagram(framing, version, sample.head.data(), sample.bytes, header) ==
                         net::Malformed::none)
            return framing;
    }
    return std::nullopt;
}

/// The key with the largest count.
template <class Key>
std::optional<Key> max_frequent(const std::map<Key, std::size_t>& counts) {
    const auto found = std::max_element(counts.begin(), counts.end(),
                                        [](const auto& a, const auto& b) { return a.second < b.second; });
    return found == counts.end() ? std::nullopt : std::optional(found->first);
}

/// What most of the samples are by their header and size; absent if fewer than half are so.
std::optional<Framing> framing_of(const std::set<Sample>& samples, config::FrameVersion version) {
    std::map<Framing, std::size_t> counts;
    for (const Sample& sample : samples) {
        if (const auto framing = framing_of(sample, version)) ++counts[*framing];
    }
    const auto framing = max_frequent(counts);
    return framing && 2 * counts[*framing] >= samples.size() ? framing : std::nullopt;
}

std::uint64_t big_endian(const std::byte* bytes, std::size_t count) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < count; ++i)
        value = value << 8 | std::to_integer<std::uint64_t>(bytes[i]);
    return value;
}

std::set<Sample> translated(const std::set<Sample>& samples, Framing framing, std::size_t& not_translated) {
    std::set<Sample> own;
    for (const Sample& sample : samples) {
        if (sample.translated.size() < net::header_bytes) {
            ++not_translated;
            continue;
        }
        const std::ptrdiff_t header = framing == Framing::sequenced ? 0 : net::header_bytes;
        Sample one{sample.address,   0,  {sample.translated.begin() + header, sample.translated.end()},
                   sample.arrived_s, {}, {}};
        one.bytes = one.head.size();
        own.insert(std::move(one));
    }
    return own;
}

/// The markers of most frames without tags; absent if fewer than half have them.
std::optional<Markers> markers_in(const std::set<Sample>& samples, const Shape& shape,
                                  config::FrameVersion version,
                                  std::optional<unsigned> tag_marker = std::nullopt) {
    std::map<std::pair<unsigned, unsigned>, std::size_t> counts;
    std::size_t frames = 0;
    for (const Sample& sample : samples) {
        for (const net::FrameWords& words : frames_of(sample, shape)) {
            const net::Frame frame = net::decode_frame(words, version);
            if (frame.head_marker == tag_marker) continue;
            ++counts[{frame.head_marker, frame.tail_marker}];
            ++frames;
        }
    }
    const auto pair = max_frequent(counts);
    if (!pair || 2 * counts[*pair] < frames) return std::nullopt;
    return Markers{pair->first, pair->second};
}

/// With the markers that are expected, or swapped, or with others.
std::optional<Shape> shape_of(const std::set<Sample>& samples, const Expected& expected) {
    const Markers tag{expected.tag_marker, expected.markers.tail};
    if (const auto shape = find_shape(samples, {expected.markers, tag}, expected.version)) return shape;
    if (const auto shape =
            find_shape(samples, {{expected.markers.tail, expected.markers.head}}, expected.version))
        return shape;
    for (const std::size_t header : {net::header_bytes, std::size_t{0}}) {
        const auto markers = markers_in(samples, {.header = header}, expected.version);
        if (!markers) continue;
        if (const auto shape =
                find_shape(samples, {*markers, {expected.tag_marker, markers->tail}}, expected.version))
            return shape;
    }
    return std::nullopt;
}

bool have_own_header(const std::set<Sample>& samples, config::FrameVersion version) {
    const auto good = std::count_if(samples.begin(), samples.end(), [version](const Sample& sample) {
        net::DatagramHeader header;
        return net::parse_datagram(Framing::sequenced, version, sample.head.data(),
                                   std::min(sample.head.size(), net::header_bytes),
                                   header) == net::Malformed::none;
    });
    return 2 * static_cast<std::size_t>(good) >= samples.size();
}

/// Framing and shape: the header decides, unless the frames are certainly elsewhere.
void find_framing(const std::set<Sample>& samples, const Expected& expected, Impression& seen) {
    seen.framing = framing_of(samples, expected.version);
    seen.shape.header = seen.framing == Framing::bare ? 0 : net::header_bytes;
    const auto shape = shape_of(samples, expected);
    if (!shape) return;
    const bool own_header = shape->header == net::header_bytes && have_own_header(samples, expected.version);
    seen.shape = *shape;
    seen.known_header = shape->header == 0 || own_header;
    seen.framing = shape->header == 0 ? Framing::bare : Framing::sequenced;
}

/// Counts the frames, and finds the markers of most.
void find_markers(const std::set<Sample>& samples, const Expected& expected, Impression& seen) {
    for (const Sample& sample : samples)
        for (const net::FrameWords& words : frames_of(sample, seen.shape))
            ++(net::decode_frame(words, expected.version).head_marker == expected.tag_marker ? seen.tags
                                                                                             : seen.frames);
    // Hits with the marker of tags, perhaps: the rest of them can be judged.
    seen.markers = seen.only_tags() ? Markers{expected.tag_marker, expected.markers.tail}
                                    : markers_in(samples, seen.shape, expected.version, expected.tag_marker);
}

void add_frames(const Sample& sample, const Impression& seen, config::FrameVersion version, Sender& sender) {
    std::optional<std::uint64_t> before;
    for (const net::FrameWords& words : frames_of(sample, seen.shape)) {
        const net::Frame frame = net::decode_frame(words, version);
        if (Markers{frame.head_marker, frame.tail_marker} != *seen.markers) continue;
        sender.modules.insert(frame.bdm);
        sender.frames.push_back(frame);
        if (!before) sender.readings.push_back({sample.arrived_s, frame.time});
        before = frame.time;
    }
}

}  // namespace

Impression impression_of(const std::set<Sample>& given, const Expected& expected) {
    Impression seen;
    seen.samples = given.size();
    for (const Sample& sample : given) {
        seen.sizes.insert(sample.bytes);
        seen.mean_bytes += static_cast<double>(sample.bytes) / static_cast<double>(given.size());
    }
    const std::set<Sample> samples =
        expected.foreign ? translated(given, expected.framing, seen.not_translated) : given;
    if (expected.foreign) {
        if (samples.empty()) return seen;
        seen.framing = expected.framing;
        if (expected.framing == Framing::bare) seen.shape.header = 0;
    } else {
        find_framing(samples, expected, seen);
    }
    if (seen.framing) find_markers(samples, expected, seen);
    // Of a frame with another marker nothing is translated.
    if (expected.foreign && seen.markers != expected.markers) seen.markers.reset();
    // Without a header and without markers, only the size fits.
    if (seen.framing == Framing::bare && seen.frames >= frames_needed && !seen.markers) seen.framing.reset();
    for (const Sample& sample : samples) {
        // With a magic number that is wrong, the rest of the header may still be right.
        const bool numbered = seen.framing == Framing::sequenced && seen.shape.header == net::header_bytes &&
                              sample.head.size() >= net::header_bytes;
        SenderName name{sample.address, std::nullopt};
        if (numbered) name.second = static_cast<unsigned>(big_endian(sample.head.data() + 6, 2));
        Sender& sender = seen.senders[name];
        if (numbered) {
            NumberReading reading{big_endian(sample.head.data() + 8, 8), std::nullopt,
                                  (sample.bytes - net::header_bytes) / seen.shape.period, sample.arrived_s};
            if (sample.next.size() >= net::header_bytes &&
                std::equal(sample.next.begin(), sample.next.begin() + 4, sample.head.begin()))
                reading.next = big_endian(sample.next.data() + 8, 8);
            sender.numbers.push_back(reading);
        }
        if (!seen.known_header && seen.strange_header.empty() && sample.head.size() >= seen.shape.header)
            seen.strange_header.assign(sample.head.begin(),
                                       sample.head.begin() + static_cast<std::ptrdiff_t>(seen.shape.header));
        if (seen.markers) add_frames(sample, seen, expected.version, sender);
    }
    return seen;
}

}  // namespace petacq::petctl
