#include "tools/petbench/live/stream.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

#include "net/wire.hpp"

namespace petacq::bench {

namespace {

void move_time(std::byte* frame, std::uint64_t ticks) {
    const std::uint64_t moved = net::swap_bytes(net::frame_time(frame) + ticks);
    std::memcpy(frame + 2, &moved, sizeof moved);
}

std::size_t count_of(const SourceFrames& source) {
    return source.frames.size() / net::frame_bytes;
}

void sort_by_time(SourceFrames& source) {
    std::vector<std::pair<std::uint64_t, std::size_t>> order;
    for (std::size_t i = 0; i < count_of(source); ++i)
        order.emplace_back(net::frame_time(source.frames.data() + i * net::frame_bytes), i);
    std::sort(order.begin(), order.end());
    std::vector<std::byte> sorted(source.frames.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
        std::copy_n(source.frames.data() + order[i].second * net::frame_bytes, net::frame_bytes,
                    sorted.data() + i * net::frame_bytes);
    }
    source.frames = std::move(sorted);
}

}  // namespace

std::size_t StreamPart::frames(std::size_t i) const {
    return (payloads_[i].size() - net::header_bytes) / net::frame_bytes;
}

void StreamPart::stamp(std::size_t first, std::size_t count, std::uint64_t ticks, SequenceNumbers& next) {
    std::byte* at = bytes_.data() + (payloads_[first].data() - bytes_.data());
    for (std::size_t i = first; i < first + count; ++i) {
        SentDatagram& datagram = datagrams_[i];
        net::encode_header({0, sources_[datagram.source], next[datagram.source]++}, at, version_);
        const std::uint64_t step = ticks - datagram.ticks;  // modulo 2^64: also backwards
        std::byte* const end = at + payloads_[i].size();
        for (at += net::header_bytes; at != end; at += net::frame_bytes)
            move_time(at, step);
        datagram.ticks = ticks;
    }
}

std::vector<std::vector<std::byte>> StreamPart::ends(const SequenceNumbers& next) const {
    std::vector<std::vector<std::byte>> datagrams;
    for (std::size_t s = 0; s < sources_.size(); ++s) {
        datagrams.emplace_back(net::header_bytes);
        net::encode_header({net::flag_end_of_stream, sources_[s], next[s]}, datagrams.back().data(),
                           version_);
    }
    return datagrams;
}

LiveStream::LiveStream(net::FrameVersion version, std::vector<SourceFrames> sources, std::size_t payload,
                       unsigned parts, std::uint64_t burst)
    : parts_(parts) {
    for (StreamPart& part : parts_)
        part.version_ = version;
    std::erase_if(sources, [](const SourceFrames& source) { return source.frames.empty(); });
    if (sources.size() < parts) {
        throw std::invalid_argument("the stream has " + std::to_string(sources.size()) +
                                    " sources: expected at least one for each of " + std::to_string(parts) +
                                    " senders");
    }
    sources_ = sources.size();
    const std::size_t room = (payload - net::header_bytes) / net::frame_bytes * net::frame_bytes;
    std::uint64_t last = 0;
    for (SourceFrames& source : sources) {
        sort_by_time(source);
        // A shorter datagram would end a GSO message.
        if (source.frames.size() > room) source.frames.resize(source.frames.size() / room * room);
        first_ = std::min(first_, net::frame_time(source.frames.data()));
        last =
            std::max(last, net::frame_time(source.frames.data() + source.frames.size() - net::frame_bytes));
        frames_ += count_of(source);
    }
    // From the last frame to the first of the next pass is as far as between two frames on average.
    period_ = last - first_ + std::max<std::uint64_t>(1, (last - first_) / frames_);

    struct SentStretch {
        std::uint64_t due;
        std::uint32_t source;  // in its part
        std::uint64_t place;   // among those of its source
        std::span<const std::byte> frames;
        auto key() const { return std::tuple(due, source, place); }
    };
    std::vector<std::vector<SentStretch>> pieces(parts);
    for (std::size_t s = 0; s < sources.size(); ++s) {
        StreamPart& part = parts_[s % parts];
        std::span<const std::byte> rest = sources[s].frames;
        std::uint64_t place = 0;
        for (; !rest.empty(); ++place) {
            const auto frames = rest.first(std::min(room, rest.size()));
            rest = rest.subspan(frames.size());
            const std::uint64_t time = net::frame_time(frames.data() + frames.size() - net::frame_bytes);
            const std::uint64_t due = std::min(((time - first_) / burst + 1) * burst - 1, last - first_);
            pieces[s % parts].push_back(
                {due, static_cast<std::uint32_t>(part.sources_.size()), place, frames});
        }
        part.sources_.push_back(sources[s].source);
    }
    for (unsigned p = 0; p < parts; ++p) {
        StreamPart& part = parts_[p];
        std::sort(pieces[p].begin(), pieces[p].end(),
                  [](const SentStretch& a, const SentStretch& b) { return a.key() < b.key(); });
        std::size_t bytes = 0;
        for (const SentStretch& piece : pieces[p])
            bytes += net::header_bytes + piece.frames.size();
        part.bytes_.resize(bytes);
        std::byte* at = part.bytes_.data();
        for (const SentStretch& piece : pieces[p]) {
            part.datagrams_.push_back({piece.due, 0, piece.source});
            part.payloads_.emplace_back(at, net::header_bytes + piece.frames.size());
            at = std::copy(piece.frames.begin(), piece.frames.end(), at + net::header_bytes);
        }
    }
}

}  // namespace petacq::bench
