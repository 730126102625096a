#include "tools/petctl/doctor/shape.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

namespace petacq::petctl {

namespace {

constexpr std::size_t longest_header = 64;
constexpr std::size_t longest_frame = 32;
constexpr double nearly_all = 0.9;

/// How many bytes stand behind the last frame, if nearly all samples agree.
std::optional<std::size_t> trailer_of(const std::set<Sample>& samples, const Shape& shape) {
    std::map<std::size_t, std::size_t> counts;
    std::size_t all = 0;
    for (const Sample& sample : samples) {
        if (sample.bytes < shape.header) continue;
        ++counts[(sample.bytes - shape.header) % shape.period];
        ++all;
    }
    for (const auto& [bytes, count] : counts)
        if (static_cast<double>(count) >= nearly_all * static_cast<double>(all)) return bytes;
    return std::nullopt;
}

bool fits(const std::set<Sample>& samples, const Shape& shape, const std::vector<Markers>& pairs,
          config::FrameVersion version) {
    std::size_t good = 0;
    std::size_t all = 0;
    std::size_t good_first = 0;
    std::size_t firsts = 0;
    for (const Sample& sample : samples) {
        bool first = true;
        for (const net::FrameWords& words : frames_of(sample, shape)) {
            const net::Frame frame = net::decode_frame(words, version);
            const bool has = std::any_of(pairs.begin(), pairs.end(), [&](const Markers& m) {
                return m.head == frame.head_marker && m.tail == frame.tail_marker;
            });
            ++all;
            good += has ? 1 : 0;
            firsts += first ? 1 : 0;
            good_first += first && has ? 1 : 0;
            first = false;
        }
    }
    const auto enough = [](std::size_t part, std::size_t whole) {
        return static_cast<double>(part) >= nearly_all * static_cast<double>(whole);
    };
    // Few frames have their markers by chance: then only petacqd's own shapes are thought of.
    const bool own = shape == Shape{} || shape == Shape{.header = 0};
    return all >= (own ? 1 : frames_needed) && enough(good, all) && enough(good_first, firsts);
}

}  // namespace

std::vector<net::FrameWords> frames_of(const Sample& sample, const Shape& shape) {
    std::vector<net::FrameWords> frames;
    const auto group = static_cast<std::ptrdiff_t>(shape.order);
    const std::size_t end = std::min(sample.head.size(), sample.bytes);
    for (std::size_t at = shape.header; at + net::frame_bytes <= end; at += shape.period) {
        std::array<std::byte, net::frame_bytes> bytes{};
        std::memcpy(bytes.data(), sample.head.data() + at, bytes.size());
        for (auto* part = bytes.data(); part != bytes.data() + bytes.size(); part += group)
            std::reverse(part, part + group);
        frames.push_back(net::load_frame(bytes.data()));
    }
    return frames;
}

std::optional<Shape> find_shape(const std::set<Sample>& samples, const std::vector<Markers>& pairs,
                                config::FrameVersion version) {
    const auto found = [&](Shape shape) -> std::optional<Shape> {
        const auto trailer = trailer_of(samples, shape);
        if (!trailer || !fits(samples, shape, pairs, version)) return std::nullopt;
        shape.trailer = *trailer;
        return shape;
    };
    std::optional<Shape> first;
    for (const auto order : {FrameOrder::as_specified, FrameOrder::of_16, FrameOrder::of_8, FrameOrder::of_4,
                             FrameOrder::of_2}) {
        for (std::size_t header = 0; header <= longest_header; ++header) {
            const auto shape = found({header, net::frame_bytes, 0, order});
            if (!shape) continue;
            // The second half of a reversed word and the first of the next look like a frame in another
            // order, with bytes left over at both ends.
            if (shape->trailer == 0 || order == FrameOrder::as_specified) return shape;
            if (!first) first = shape;
        }
    }
    if (first) return first;
    for (std::size_t period = net::frame_bytes + 1; period <= longest_frame; ++period) {
        for (std::size_t header = 0; header <= longest_header; ++header)
            if (const auto shape = found({header, period, 0, FrameOrder::as_specified})) return shape;
    }
    return std::nullopt;
}

}  // namespace petacq::petctl
