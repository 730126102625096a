// petbench translate: the translation of foreign frames on one core, without sockets.
//
// Datagrams of a layout with random fields and the right markers lie in a block that fits the second cache,
// as in the receiver, which translates what the kernel has just copied. What is written goes round in a
// batch.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <random>
#include <vector>

#include "net/foreign/translator.hpp"
#include "tools/petbench/base/measure.hpp"
#include "tools/petbench/base/suites.hpp"

namespace petacq::bench {

namespace {

constexpr std::size_t source_bytes = std::size_t{384} << 10;
constexpr std::size_t batch_bytes = std::size_t{1} << 20;
constexpr std::size_t max_frames_in_block = 64;

void set_bits(std::byte* section, const config::LayoutField& f, config::ByteOrder order,
              std::uint64_t value) {
    for (unsigned i = 0; i < f.bits; ++i) {
        const unsigned bit = f.low_bit + i;
        std::byte& byte =
            section[f.offset + (order == config::ByteOrder::little ? bit / 8 : f.bytes - 1 - bit / 8)];
        const auto mask = static_cast<std::byte>(1U << bit % 8);
        byte = (value >> i & 1) != 0 ? byte | mask : byte & ~mask;
    }
}

void set_markers(std::byte* section, const config::Layout::Section& s) {
    for (const config::LayoutMarker& m : s.markers)
        set_bits(section, m.field, s.byte_order, m.value);
}

/// One datagram of at most `size` bytes.
std::vector<std::byte> datagram_of(const config::Layout& l, std::size_t size, std::mt19937& random) {
    std::vector<std::byte> bytes(size + net::foreign_slack_bytes);
    for (std::byte& b : bytes)
        b = static_cast<std::byte>(random() & 0xFF);
    set_markers(bytes.data(), l.datagram);
    std::size_t at = l.datagram.bytes;
    const std::size_t end = size - std::min<std::size_t>(size, l.trailer_bytes);
    std::size_t left = net::max_foreign_frames;
    while (left > 0 && at + l.block.bytes + l.frame.bytes <= end) {
        std::size_t count = std::min(left, (end - at - l.block.bytes) / l.frame.bytes);
        if (l.block.bytes != 0) {
            count = std::min(count, max_frames_in_block);
            set_bits(bytes.data() + at, l.frames, l.block.byte_order, count);
        }
        at += l.block.bytes;
        for (std::size_t i = 0; i < count; ++i, at += l.frame.bytes)
            set_markers(bytes.data() + at, l.frame);
        left -= count;
        if (l.block.bytes == 0) break;
    }
    at += l.trailer_bytes;
    if (l.length) set_bits(bytes.data(), *l.length, l.datagram.byte_order, at);
    bytes.resize(at);
    return bytes;
}

}  // namespace

void run(const TranslateSuite& suite) {
    const config::Layout layout =
        config::load_layout(suite.layout, config::max_bdm_count(net::FrameVersion::one));
    const auto format = std::make_shared<net::ForeignFormat>(layout, net::FrameCheck(), suite.tick_ps);
    std::printf("translate: layout \"%s\", frames of %u bytes, medians of %u x %g s\n", layout.name.c_str(),
                layout.frame.bytes, suite.repetitions, suite.seconds);
    std::mt19937 random(1);
    std::vector<std::byte> batch(batch_bytes);
    for (const std::size_t payload : suite.payloads) {
        std::vector<std::byte> block;
        std::vector<std::pair<std::size_t, std::size_t>> datagrams;  // offset, size
        while (block.size() + payload + net::foreign_slack_bytes < source_bytes || datagrams.empty()) {
            const std::vector<std::byte> one = datagram_of(layout, payload, random);
            datagrams.emplace_back(block.size(), one.size());
            block.insert(block.end(), one.begin(), one.end());
        }
        block.resize(block.size() + net::foreign_slack_bytes);
        net::Translator translator(format);
        std::vector<double> frame_rates;
        std::vector<double> byte_rates;
        for (unsigned r = 0; r < suite.repetitions; ++r) {
            std::uint64_t frames = 0;
            std::uint64_t bytes = 0;
            std::size_t used = 0;
            std::int64_t now_ns = 0;
            const double began = thread_cpu_seconds();
            double taken = 0;
            for (; taken < suite.seconds; taken = thread_cpu_seconds() - began) {
                for (const auto& [offset, size] : datagrams) {
                    net::DatagramHeader header;
                    std::size_t count = 0;
                    const std::byte* const data = block.data() + offset;
                    if (translator.parse(data, size, header, count) != net::Malformed::none) continue;
                    if (used + count * net::frame_bytes > batch.size()) used = 0;
                    translator.translate(data, size, {1, 1}, now_ns += 10'000, header, batch.data() + used);
                    used += count * net::frame_bytes;
                    frames += count;
                    bytes += size;
                }
            }
            frame_rates.push_back(static_cast<double>(frames) / taken);
            byte_rates.push_back(static_cast<double>(bytes) / taken);
        }
        std::printf("payload %5zu bytes: %7.1f M frames/s, %6.2f Gb/s of payload, on one core\n", payload,
                    median(frame_rates) * 1e-6, median(byte_rates) * 8e-9);
    }
}

}  // namespace petacq::bench
