// Formats for tests, and their frames.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "net/foreign/translator.hpp"

namespace petacq::test {

using Bytes = std::vector<std::byte>;

/// A numbered format of 8-byte frames whose time is 24 bits, with 8 bits of a marker, of which roll-overs are
/// counted; ticks of 10 ns: a period is 168 ms.
inline nlohmann::json counted_format() {
    const auto field = [](unsigned offset, unsigned bytes) {
        return nlohmann::json{{"offset", offset}, {"bytes", bytes}};
    };
    return {{"name", "counted"},
            {"datagram",
             {{"byte_order", "big"},
              {"header_bytes", 4},
              {"markers", {{{"offset", 0}, {"bytes", 1}, {"value", 0x7E}}}},
              {"source", field(1, 1)},
              {"sequence", field(2, 2)}}},
            {"frame",
             {{"bytes", 8},
              {"byte_order", "big"},
              {"markers", {{{"offset", 0}, {"bytes", 1}, {"value", 0xC5}}}},
              {"bdm", field(1, 1)},
              {"du", 2},
              {"x", field(2, 1)},
              {"y", 7},
              {"energy", field(3, 2)}}},
            {"time", {{"counter", {field(5, 3)}}, {"roll_over", "count"}}}};
}

inline constexpr double counted_tick_ps = 10'000;

inline std::shared_ptr<net::ForeignFormat> format_of(const nlohmann::json& layout, double tick_ps,
                                                     const net::FrameCheck& frames = {}) {
    return std::make_shared<net::ForeignFormat>(
        config::layout_from_json(layout, config::max_bdm_count(frames.version)), frames, tick_ps);
}

struct Translated {
    net::Malformed malformed = net::Malformed::none;
    net::DatagramHeader header;
    std::vector<net::Frame> frames;
    std::vector<net::TagFrame> as_tags;  ///< the same frames
    std::uint64_t lost = 0;
};

inline Translated translate(net::Translator& translator, Bytes datagram, std::int64_t arrival_ns = 0,
                            net::Endpoint sender = {1, 1},
                            net::FrameVersion version = net::FrameVersion::one) {
    Translated result;
    const std::size_t size = datagram.size();
    datagram.resize(size + net::foreign_slack_bytes, std::byte{0xEE});
    std::size_t count = 0;
    result.malformed = translator.parse(datagram.data(), size, result.header, count);
    if (result.malformed != net::Malformed::none) return result;
    Bytes out(translator.max_bytes(size));
    result.lost = translator.translate(datagram.data(), size, sender, arrival_ns, result.header, out.data());
    for (std::size_t i = 0; i < count; ++i) {
        result.frames.push_back(net::decode_frame(out.data() + i * net::frame_bytes, version));
        result.as_tags.push_back(net::decode_tag(out.data() + i * net::frame_bytes, version));
    }
    return result;
}

/// A datagram of counted_format().
inline Bytes counted_datagram(unsigned source, unsigned sequence, const std::vector<std::uint64_t>& times) {
    Bytes bytes;
    const auto put = [&](std::uint64_t value, unsigned width) {
        for (unsigned i = width; i-- > 0;)
            bytes.push_back(static_cast<std::byte>(value >> 8 * i & 0xFF));
    };
    put(0x7E, 1);
    put(source, 1);
    put(sequence & 0xFFFF, 2);
    for (const std::uint64_t time : times) {
        put(0xC5, 1);
        put(source, 1);
        put(33, 1);
        put(500, 2);
        put(time & 0xFFFFFF, 3);
    }
    return bytes;
}

}  // namespace petacq::test
