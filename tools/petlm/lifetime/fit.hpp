// The lifetimes of positrons in a spectrum, by maximum likelihood.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tools/petlm/lifetime/spectrum.hpp"

namespace petacq::lifetime {

/// What is not fitted. The lifetimes are those of para-positronium and of positrons that annihilate without
/// forming positronium, in tissue (Moskal et al., Nat. Rev. Phys. 1 (2019) 527).
struct FitSettings {
    double para_ns = 0.125;
    double direct_ns = 0.39;
    std::optional<double> resolution_ns;  ///< FWHM of a lifetime; absent: fitted
    std::optional<double> offset_ns;      ///< at which positrons without a lifetime are; absent: fitted
};

/// One standard deviation; 0: not fitted, or at the end of its range. Both are NaN where the data do not
/// tell: the error exceeds the value of a time, the range of an intensity (1) or that of the offset (the
/// spectrum).
struct Estimate {
    double value = 0;
    double error = 0;
};

enum class Component : std::uint8_t { para, direct, ortho };
inline constexpr std::size_t components = 3;

struct LifetimeFit {
    Estimate ortho_ns;
    std::array<Estimate, components> intensities;  ///< [Component] add up to 1
    Estimate mean_ns;                              ///< of all lifetimes
    Estimate resolution_ns;                        ///< FWHM
    Estimate offset_ns;
    Estimate chance_per_bin;  ///< triples whose gamma came by chance
    double triples = 0;       ///< that belong to the three components
    double deviance = 0;      ///< -2 ln of the likelihood ratio to a model with as many parameters as bins
    double freedom = 0;       ///< bins less fitted parameters: its expectation
    bool converged = false;

    std::vector<double> expected;                              ///< [bin] all together
    std::array<std::vector<double>, components> of_component;  ///< [Component][bin]

    [[nodiscard]] const Estimate& intensity(Component component) const {
        return intensities[static_cast<std::size_t>(component)];
    }
    /// Whether the data show ortho-positronium: otherwise its lifetime means nothing.
    [[nodiscard]] bool has_ortho() const {
        const Estimate& ortho = intensity(Component::ortho);
        return ortho.error > 0 && ortho.value > 3 * ortho.error;
    }
};

/// Maximises the Poisson likelihood of all histograms of the spectrum together. A component is an exponential
/// decay convolved with a Gaussian, integrated over each bin; what chance adds is flat, and constrained by
/// the delayed gammas; the random prompts of each bin are constrained by those measured (Barlow and Beeston,
/// Comp. Phys. Comm. 77 (1993) 219, with the closed form for one such source). Errors are from the expected
/// information, with intensities that vanish held at 0. Throws std::invalid_argument for a spectrum with
/// fewer than 100 triples beyond those by chance.
LifetimeFit fit_lifetimes(const Spectrum& spectrum, const FitSettings& settings);

}  // namespace petacq::lifetime
