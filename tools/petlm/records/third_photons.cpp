#include "tools/petlm/records/third_photons.hpp"

#include <cmath>

namespace petacq::petlm {

double gammas_of_random_prompt(std::uint32_t after_ticks, std::uint32_t window_ticks) {
    return 1 + (after_ticks < window_ticks ? static_cast<double>(after_ticks) / window_ticks : 1);
}

void ThirdPhotons::add(std::span<const gpu::Coincidence> pairs) {
    for (const gpu::Coincidence& pair : pairs)
        ++pairs_[index(pair.kind)];
}

void ThirdPhotons::add(std::span<const gpu::Triple> triples) {
    for (const gpu::Triple& triple : triples)
        ++triples_[index(triple.pair.kind)][static_cast<std::size_t>(triple.third)];
}

double ThirdPhotons::by_chance(gpu::Kind kind) const {
    if (pairs(kind) == 0) return 0;
    return static_cast<double>(triples(kind, gpu::ThirdPhoton::delayed)) / static_cast<double>(pairs(kind));
}

double ThirdPhotons::true_share(gpu::Kind kind) const {
    if (pairs(kind) == 0) return 0;
    const auto coincident = static_cast<double>(triples(kind, gpu::ThirdPhoton::coincident));
    const auto delayed = static_cast<double>(triples(kind, gpu::ThirdPhoton::delayed));
    return hidden_factor() * (coincident - delayed) / static_cast<double>(pairs(kind));
}

double ThirdPhotons::error_of_true_share(gpu::Kind kind) const {
    if (pairs(kind) == 0) return 0;
    const auto all = static_cast<double>(triples(kind, gpu::ThirdPhoton::coincident) +
                                         triples(kind, gpu::ThirdPhoton::delayed));
    return hidden_factor() * std::sqrt(all) / static_cast<double>(pairs(kind));
}

double ThirdPhotons::of_randoms(gpu::Kind kind, std::uint32_t after_ticks, std::uint32_t window_ticks) const {
    return by_chance(kind) +
           gammas_of_random_prompt(after_ticks, window_ticks) * true_share(kind) / hidden_factor();
}

double ThirdPhotons::hidden_factor() const {
    const double delayed = by_chance(gpu::Kind::prompt);
    switch (policy_) {
        case config::GammaPolicy::all:
            break;
        case config::GammaPolicy::nearest:
            return delayed < 1 ? 1 / (1 - delayed) : 1;
        case config::GammaPolicy::only_one: {
            // q e^-q = D has a solution below 1 for D up to 1 / e.
            double q = delayed;
            for (int i = 0; i < 100; ++i)
                q = delayed * std::exp(q);
            const double alone = std::exp(-q) - delayed;
            return alone > 0 && q < 1 ? 1 / alone : 1;
        }
    }
    return 1;
}

}  // namespace petacq::petlm
