// What the decided singles of an interval of detector time add up to: the input of the randoms estimate, of
// the records by second and of the monitoring of the detector.
#pragma once

#include <cstdint>
#include <vector>

#include "config/scanner/geometry.hpp"
#include "gpu/base/counters.hpp"
#include "gpu/base/records.hpp"
#include "gpu/rules/coincidence_rules.hpp"
#include "gpu/sectors.hpp"
#include "net/wire.hpp"

namespace petacq::gpu {

/// Where the decided singles went. In window mode "single" every single belongs to one group. In mode "every"
/// a single is decided as the opener of its own window; being the partner in another's counts as reuse.
/// Delayed windows are counted by themselves: `delayeds`, `delayed_*` and `groups*` are in no identity.
struct SingleCounts {
    PETACQ_SINGLE_COUNTERS(PETACQ_COUNTER_MEMBER)

    SingleCounts& operator+=(const SingleCounts& o);
    bool operator==(const SingleCounts&) const = default;
};

/// Where the gammas went, and the triples of the decided pairs. A gamma counts as used with its first triple,
/// and as unused once no pair that is still to come can use it.
struct GammaCounts {
    PETACQ_GAMMA_COUNTERS(PETACQ_COUNTER_MEMBER)

    GammaCounts& operator+=(const GammaCounts& o);
    bool operator==(const GammaCounts&) const = default;
    /// Gammas that are counted.
    [[nodiscard]] std::uint64_t gammas() const { return used + unused; }
};

/// The energy of an end of a prompt within 20 % of 511 keV, in sixteenths of a keV, rounded down; else 0.
PETACQ_HD inline std::uint32_t photopeak_energy(float energy) {
    return 408.8F <= energy && energy <= 613.2F ? static_cast<std::uint32_t>(energy * 16) : 0;
}

/// Ends of prompts in one module (BDM): each prompt counts in the modules of both of its singles.
struct PromptEnds {
    std::uint64_t dt = 0;           ///< ticks; time of the other single less the time of this one; signed, in
                                    ///< two's complement
    std::uint64_t abs_dt = 0;       ///< ticks
    std::uint64_t dt_squared = 0;   ///< ticks^2, modulo 2^64
    std::uint64_t peak = 0;         ///< ends with a photopeak_energy
    std::uint64_t peak_energy = 0;  ///< sum of these

    /// The end of a single whose partner is `dt` ticks later, or earlier if `dt` is negative.
    PETACQ_HD static PromptEnds of(std::int64_t dt, float energy) {
        const auto apart = static_cast<std::uint64_t>(dt < 0 ? -dt : dt);
        const std::uint32_t peak = photopeak_energy(energy);
        return {static_cast<std::uint64_t>(dt), apart, apart * apart, peak > 0 ? 1U : 0U, peak};
    }
    PromptEnds& operator+=(const PromptEnds& o) {
        dt += o.dt;
        abs_dt += o.abs_dt;
        dt_squared += o.dt_squared;
        peak += o.peak;
        peak_energy += o.peak_energy;
        return *this;
    }
    bool operator==(const PromptEnds&) const = default;
};

/// Whose energies IntervalSums::energies counts: of a single alone in its window, and of two in a window.
enum EnergyOf : std::uint8_t { of_alone, of_lesser, of_greater };
inline constexpr std::uint32_t energies_of = 3;
inline constexpr std::uint32_t sampled_energy_bins = 64;  ///< of 16 keV; the last one has all higher ones
inline constexpr std::uint32_t energy_samples = energies_of * sampled_energy_bins;

/// Whether energies count: under the only policy for which the randoms estimate needs them. A search decides
/// it once and not for each window.
PETACQ_HD constexpr bool samples_energies(MultiplesPolicy policy) {
    return policy == MultiplesPolicy::take_winner_if_is_good;
}
/// Whether those of a window count, by the time of its opener: one window in windows_per_sample is a sample.
inline constexpr std::uint32_t windows_per_sample = 16;
PETACQ_HD inline bool is_sample(std::uint64_t opened) {
    // The product spreads times that are multiples of some period.
    return (opened * 0x9E3779B97F4A7C15 >> 32) % windows_per_sample == 0;
}
/// Where such an energy counts.
PETACQ_HD inline std::uint32_t energy_sample(EnergyOf whose, float keV) {
    const bool highest = !(keV < 16.0F * (sampled_energy_bins - 1));
    return whose * sampled_energy_bins +
           (highest ? sampled_energy_bins - 1 : static_cast<std::uint32_t>(keV / 16));
}

/// All sums are over the groups whose opener lies in the interval, and over their pairs; a delayed belongs to
/// the group that was shifted, or to its opener. They are whole numbers, so they depend neither on the
/// division into slices and threads nor on the back-end.
struct IntervalSums {
    std::vector<std::uint32_t> unpaired;  ///< [crystal] singles alone in their window
    std::vector<std::uint32_t> grouped;   ///< [crystal] the other decided singles; without a search, all
    std::vector<std::uint32_t> prompts;   ///< [crystal] ends of prompts
    std::vector<std::uint32_t> delayeds;  ///< [crystal] ends of delayeds
    std::vector<PromptEnds> modules;      ///< [bdm]
    /// [a * sectors + b] prompts with the earlier single in sector a and the later one in b; Sectors tells
    /// which modules these are: with at most 256, each is a sector.
    std::vector<std::uint32_t> module_pairs;
    /// The same for windows of exactly two singles of different crystals that geometry refuses. They tell,
    /// under every policy, where partners lie that no prompt shows.
    std::vector<std::uint32_t> refused_pairs;
    /// [EnergyOf * sampled_energy_bins + bin] of the windows of one or two singles that are samples, under a
    /// policy that samples_energies().
    std::vector<std::uint32_t> energies;
    SingleCounts counts;
    GammaCounts gammas;

    /// The sums over nothing.
    static IntervalSums none(const config::Geometry& geometry);
    /// Makes them the sums over nothing, of the same scanner.
    void clear();
    /// Adds sums of the same scanner.
    IntervalSums& operator+=(const IntervalSums& more);
    bool operator==(const IntervalSums&) const = default;
};

/// [crystal] the module (BDM) that the crystal belongs to.
std::vector<std::uint16_t> modules_of_crystals(const config::Geometry& geometry);

}  // namespace petacq::gpu
