#include "tools/petbench/base/frames.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "net/wire.hpp"

namespace petacq::bench {

Stream make_stream(const config::Scanner& scanner, const StreamOptions& o) {
    const config::Geometry& g = scanner.geometry;
    std::mt19937_64 random(o.seed);
    const auto uniform = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
    const double mean_gap = 1e12 / scanner.tick_ps / o.singles_per_s;

    std::vector<std::vector<net::Frame>> open(g.bdm_count);  // [bdm] the datagram being filled
    Stream stream;
    stream.bytes.resize(o.frames * net::frame_bytes);
    std::size_t written = 0;
    std::vector<std::uint64_t> earliest;  // [span]
    const auto close = [&](std::vector<net::Frame>& frames) {
        gpu::FrameSpan span;
        span.frames = stream.bytes.data() + written;
        span.count = static_cast<std::uint32_t>(frames.size());
        for (const net::Frame& f : frames) {
            net::encode_frame(f, stream.bytes.data() + written, scanner.frame_version);
            written += net::frame_bytes;
        }
        earliest.push_back(frames.front().time);
        frames.clear();
        stream.spans.push_back(span);
    };
    double time = 1e6;
    for (std::size_t made = 0; made < o.frames; ++made) {
        const bool is_gamma = o.gamma_fraction > 0 && uniform() < o.gamma_fraction;
        if (!is_gamma && (made % 2 == 0 || uniform() >= o.pair_fraction))
            time -= std::log1p(-uniform()) * mean_gap;
        net::Frame f{};
        f.head_marker = net::default_head_marker;
        f.tail_marker = net::default_tail_marker;
        f.bdm = static_cast<std::uint16_t>(random() % g.bdm_count);
        f.du = static_cast<std::uint8_t>(random() % g.du_count);
        f.x = static_cast<std::uint8_t>(random() % g.position_size);
        f.y = static_cast<std::uint8_t>(random() % g.position_size);
        f.time = static_cast<std::uint64_t>(time);
        // Three in ten scattered; the rest in a photopeak of 12 % FWHM at 2044 counts.
        const double peak = 2044 * (1 + 0.05 * (uniform() + uniform() + uniform() + uniform() - 2) * 1.7);
        f.energy = static_cast<std::uint16_t>(is_gamma          ? peak * gamma_keV / 511
                                              : uniform() < 0.3 ? 400 + uniform() * 1300
                                                                : peak);
        f.temperature_16ths = 25 * 16;
        open[f.bdm].push_back(f);
        if (open[f.bdm].size() == o.frames_per_datagram) close(open[f.bdm]);
    }
    for (std::vector<net::Frame>& frames : open) {
        if (!frames.empty()) close(frames);
    }
    stream.watermarks.resize(stream.spans.size());
    std::uint64_t low = UINT64_MAX;
    for (std::size_t i = stream.spans.size(); i-- > 0;) {
        stream.watermarks[i] = low;
        low = std::min(low, earliest[i]);
    }
    return stream;
}

gpu::GammaRules gamma_rules(const config::Scanner& scanner, double window_ns) {
    gpu::GammaRules rules;
    rules.lower = 0.8F * static_cast<float>(gamma_keV);
    rules.upper = 1.2F * static_cast<float>(gamma_keV);
    rules.before = rules.after = static_cast<std::uint64_t>(window_ns * 1e3 / scanner.tick_ps);
    return rules;
}

}  // namespace petacq::bench
