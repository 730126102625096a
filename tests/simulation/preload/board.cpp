#include "tests/simulation/preload/board.hpp"

#include <algorithm>

namespace petacq::simulation {

namespace {

// The scanner of play.py.
constexpr std::int64_t ticks_per_ns = 64;
constexpr std::uint64_t units = 2;
constexpr std::uint64_t positions = 16;
constexpr std::size_t frames_of_burst = 90;

}  // namespace

std::int64_t Board::clock_ns(std::int64_t at_ns) const {
    return std::max<std::int64_t>(0, at_ns + offset_ns_ + (at_ns - drift_from_ns_) / 1'000'000 * drift_ppm_);
}

void Board::drift(std::int64_t at_ns, std::int64_t ppm) {
    offset_ns_ = clock_ns(at_ns) - at_ns;
    drift_from_ns_ = at_ns;
    drift_ppm_ = ppm;
}

void Board::reset(std::int64_t at_ns) {
    drift_ppm_ = 0;
    offset_ns_ = -at_ns;
    number_ = 0;
    forget_hits();
}

void Board::add_hit(std::int64_t at_ns, std::uint64_t least_adc, std::uint64_t spread_adc, Random& random) {
    net::Frame f{};
    f.head_marker = net::default_head_marker;
    f.tail_marker = net::default_tail_marker;
    f.bdm = source_;
    f.du = static_cast<std::uint8_t>(random.below(units));
    f.time = static_cast<std::uint64_t>(clock_ns(at_ns) * ticks_per_ns) + random.below(200);
    f.x = static_cast<std::uint8_t>(random.below(positions));
    f.y = static_cast<std::uint8_t>(random.below(positions));
    f.energy = static_cast<std::uint16_t>(least_adc + random.below(spread_adc));
    f.temperature_16ths = 320;
    hits_.push_back(f);
}

void Board::tag(std::int64_t at_ns, Random& random) {
    net::TagFrame t;
    t.channel = static_cast<std::uint8_t>(random.below(16));
    t.kind = static_cast<std::uint8_t>(random.below(6));
    t.time = static_cast<std::uint64_t>(clock_ns(at_ns) * ticks_per_ns);
    t.value = static_cast<std::uint32_t>(random.below(std::uint64_t{1} << 32U));
    tags_.push_back(t);
}

Datagram Board::datagram() {
    std::stable_sort(hits_.begin(), hits_.end(),
                     [](const net::Frame& a, const net::Frame& b) { return a.time < b.time; });
    Datagram out(net::header_bytes + (hits_.size() + tags_.size()) * net::frame_bytes);
    net::encode_header({0, source_, number_++}, out.data(), net::FrameVersion::one);
    for (std::size_t i = 0; i < hits_.size(); ++i) {
        net::encode_frame(hits_[i], out.data() + net::header_bytes + i * net::frame_bytes,
                          net::FrameVersion::one);
    }
    for (std::size_t i = 0; i < tags_.size(); ++i) {
        net::encode_tag(tags_[i], out.data() + net::header_bytes + (hits_.size() + i) * net::frame_bytes,
                        net::FrameVersion::one);
    }
    forget_hits();
    return out;
}

Datagram Board::burst(std::int64_t at_ns, Random& random) {
    std::vector<net::Frame> kept;
    std::vector<net::TagFrame> kept_tags;
    kept.swap(hits_);
    kept_tags.swap(tags_);
    for (std::size_t i = 0; i < frames_of_burst; ++i)
        hit(at_ns, random);
    Datagram out = datagram();
    hits_.swap(kept);
    tags_.swap(kept_tags);
    return out;
}

}  // namespace petacq::simulation
