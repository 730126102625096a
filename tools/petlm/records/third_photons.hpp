// How many of the third photons of a run belong to the decay of their pair, and how many are there by chance.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "config/choices.hpp"
#include "gpu/base/records.hpp"

namespace petacq::petlm {

/// Gammas of its two decays that a random prompt has, for each that its first photon has: the gamma of the
/// second photon lies in the window of the gammas, too, if the photons are at most `after_ticks` apart. They
/// are evenly up to `window_ticks` apart.
double gammas_of_random_prompt(std::uint32_t after_ticks, std::uint32_t window_ticks);

/// Counts triples by their pair, and by where their gamma was looked for. A gamma that is there by chance is
/// as likely a fixed delay later, where the delayed triples come from: the coincident ones less these are
/// true. Policies that keep one gamma at most hide some of the true ones behind those of chance; true_share()
/// adds these. Not thread-safe.
class ThirdPhotons {
  public:
    explicit ThirdPhotons(config::GammaPolicy policy) : policy_(policy) {}

    void add(std::span<const gpu::Coincidence> pairs);
    void add(std::span<const gpu::Triple> triples);

    [[nodiscard]] std::uint64_t pairs(gpu::Kind kind) const { return pairs_[index(kind)]; }
    [[nodiscard]] std::uint64_t triples(gpu::Kind kind, gpu::ThirdPhoton third) const {
        return triples_[index(kind)][static_cast<std::size_t>(third)];
    }
    /// Triples by chance for each pair; 0 without pairs.
    [[nodiscard]] double by_chance(gpu::Kind kind) const;
    /// Triples for each pair, if there were none by chance; 0 without pairs.
    [[nodiscard]] double true_share(gpu::Kind kind) const;
    /// The error of true_share() by counting.
    [[nodiscard]] double error_of_true_share(gpu::Kind kind) const;
    /// Coincident triples for each random prompt: by chance, and with the gammas of its two decays. `kind`
    /// shows those of the first photon alone, as delayed pairs do.
    [[nodiscard]] double of_randoms(gpu::Kind kind, std::uint32_t after_ticks,
                                    std::uint32_t window_ticks) const;
    /// By which coincident less delayed triples are multiplied. With C coincident and D delayed triples for
    /// each pair, q the mean number of gammas by chance, and p the chance of a true one:
    ///   all:      C = p + q,                        D = q
    ///   nearest:  C = 1 - (1 - p) e^-q,             D = 1 - e^-q
    ///   only_one: C = p e^-q + (1 - p) q e^-q,      D = q e^-q
    [[nodiscard]] double hidden_factor() const;

  private:
    static std::size_t index(gpu::Kind kind) { return static_cast<std::size_t>(kind); }

    config::GammaPolicy policy_;
    std::array<std::uint64_t, 2> pairs_{};                   // [gpu::Kind]
    std::array<std::array<std::uint64_t, 2>, 2> triples_{};  // [gpu::Kind][gpu::ThirdPhoton]
};

}  // namespace petacq::petlm
