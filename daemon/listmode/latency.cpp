#include "daemon/listmode/latency.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace petacq::daemon {

std::size_t LatencyHistogram::bucket_of(std::uint64_t us) {
    if (us < linear) return us;
    const auto octave = static_cast<unsigned>(std::bit_width(us)) - 1;
    if (octave >= top_bit) return buckets - 1;
    // The leading bit and the linear_bits - 1 after it.
    const std::uint64_t mantissa = us >> (octave - linear_bits + 1);
    return linear + (octave - linear_bits) * (linear / 2) + (mantissa - linear / 2);
}

std::int64_t LatencyHistogram::middle_ns(std::size_t bucket) {
    if (bucket < linear) return static_cast<std::int64_t>(bucket) * 1000 + 500;
    const std::size_t above = bucket - linear;
    const auto shift = static_cast<unsigned>(above / (linear / 2)) + 1;
    const std::uint64_t low = (above % (linear / 2) + linear / 2) << shift;
    const std::uint64_t width = std::uint64_t{1} << shift;
    return static_cast<std::int64_t>(low * 1000 + width * 500);
}

void LatencyHistogram::record(std::int64_t ns) {
    const std::int64_t value = std::max<std::int64_t>(ns, 0);
    ++counts_[bucket_of(static_cast<std::uint64_t>(value) / 1000)];
    ++samples_;
    max_ns_ = std::max(max_ns_, value);
}

std::int64_t LatencyHistogram::quantile_ns(std::span<const LatencyHistogram* const> histograms, double q) {
    std::uint64_t samples = 0;
    std::int64_t max_ns = 0;
    for (const LatencyHistogram* h : histograms) {
        samples += h->samples_;
        max_ns = std::max(max_ns, h->max_ns_);
    }
    const auto rank =
        std::clamp<std::uint64_t>(static_cast<std::uint64_t>(std::ceil(q * static_cast<double>(samples))), 1,
                                  std::max<std::uint64_t>(samples, 1));
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < buckets; ++i) {
        for (const LatencyHistogram* h : histograms)
            seen += h->counts_[i];
        // The last bucket has no upper end.
        if (seen >= rank) return i == buckets - 1 ? max_ns : std::min(middle_ns(i), max_ns);
    }
    return 0;
}

void RecentLatency::record(std::int64_t latency_ns, std::int64_t now_ns) {
    if (!started_ns_ || now_ns - *started_ns_ >= 2 * half_ns) {
        for (LatencyHistogram& h : halves_)
            h.clear();
        started_ns_ = now_ns;
    } else if (now_ns - *started_ns_ >= half_ns) {
        current_ ^= 1;
        halves_[current_].clear();
        *started_ns_ += half_ns;
    }
    halves_[current_].record(latency_ns);
}

LatencySummary RecentLatency::summary(std::int64_t now_ns) const {
    if (!started_ns_ || now_ns - *started_ns_ >= 2 * half_ns) return {};
    const std::array both{&halves_[current_], &halves_[current_ ^ 1]};
    // Once the current half is over, the previous one is too old.
    const std::span recent = std::span(both).first(now_ns - *started_ns_ >= half_ns ? 1 : 2);
    LatencySummary s;
    std::int64_t max_ns = 0;
    for (const LatencyHistogram* h : recent) {
        s.samples += h->samples();
        max_ns = std::max(max_ns, h->max_ns());
    }
    s.p50_ms = static_cast<double>(LatencyHistogram::quantile_ns(recent, 0.5)) * 1e-6;
    s.p99_ms = static_cast<double>(LatencyHistogram::quantile_ns(recent, 0.99)) * 1e-6;
    s.max_ms = static_cast<double>(max_ns) * 1e-6;
    return s;
}

}  // namespace petacq::daemon
