#include "daemon/sinogram/gamma_times.hpp"

#include <algorithm>

namespace petacq::sinogram {

namespace {

/// Both ends belong to the window.
std::uint64_t window_ticks(const config::Gammas& gammas) {
    return std::uint64_t{gammas.before_ticks} + gammas.after_ticks + 1;
}

std::uint64_t ratio_up(std::uint64_t a, std::uint64_t b) {
    return (a + b - 1) / b;
}

}  // namespace

GammaTimes::GammaTimes(const config::Gammas& gammas)
    : before_ticks_(gammas.before_ticks),
      bin_ticks_(ratio_up(window_ticks(gammas), most_bins)),
      triples_(ratio_up(window_ticks(gammas), bin_ticks_)),
      delayed_(triples_.size()) {}

void GammaTimes::add(std::span<const gpu::Triple> triples) {
    for (const gpu::Triple& triple : triples) {
        if (triple.pair.kind != gpu::Kind::prompt) continue;
        const auto from_start = static_cast<std::uint64_t>(triple.gamma_dt - first_ticks());
        auto& counts = triple.third == gpu::ThirdPhoton::delayed ? delayed_ : triples_;
        ++counts[std::min<std::size_t>(from_start / bin_ticks_, counts.size() - 1)];
    }
}

void GammaTimes::clear() {
    std::fill(triples_.begin(), triples_.end(), 0);
    std::fill(delayed_.begin(), delayed_.end(), 0);
}

}  // namespace petacq::sinogram
