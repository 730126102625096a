// The facts that a user may declare when a file does not hold them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tools/petlm/reconstruction/corrections/nuclide.hpp"

namespace petacq::petlm {

/// The rules of the gammas of triples. A time in ns replaces the one in ticks.
struct DeclaredGammas {
    std::optional<double> lower_keV;  // NOLINT(readability-identifier-naming): a unit
    std::optional<double> upper_keV;  // NOLINT(readability-identifier-naming): a unit
    std::optional<std::uint32_t> before_ticks;
    std::optional<std::string> before_ns;
    std::optional<std::uint32_t> after_ticks;
    std::optional<std::string> after_ns;
    std::optional<std::string> policy;
    std::optional<std::uint64_t> delay_ticks;
    std::optional<std::string> delay_ns;
};

/// Times that are no ticks are decimal numbers.
struct Declared {
    std::optional<std::uint32_t> window_ticks;
    std::optional<std::string> window_ns;  ///< instead of window_ticks
    std::optional<std::string> window_mode;
    std::optional<std::string> multiples_policy;
    std::optional<std::uint32_t> max_multiplicity;
    std::optional<std::uint32_t> min_module_difference;
    std::optional<std::uint32_t> max_ring_difference;
    std::optional<std::uint64_t> delay_ticks;
    std::optional<std::string> delay_ns;  ///< instead of delay_ticks
    std::optional<std::string> delayed_rule;
    std::optional<double> lower_keV;  // NOLINT(readability-identifier-naming): a unit
    std::optional<double> upper_keV;  // NOLINT(readability-identifier-naming): a unit
    DeclaredGammas gammas;
    std::optional<std::string> start_utc;  ///< of the first recorded time
    std::optional<std::uint64_t> start_ticks;
    std::optional<std::string> duration_s;
    corrections::NuclideOptions source;
    std::optional<double> activity_MBq;    // NOLINT(readability-identifier-naming): a unit
    std::optional<std::string> assay_utc;  ///< when the activity was measured
};

}  // namespace petacq::petlm
