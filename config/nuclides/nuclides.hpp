// Half-lives of positron emitters, how many positrons a decay yields, and the gammas that come with them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace petacq::config {

/// A gamma that follows a decay. One that comes at once, within nanoseconds, is a prompt gamma: in
/// coincidence with an annihilation photon it makes a prompt that no window rejects.
struct Gamma {
    double energy_keV = 0;  // NOLINT(readability-identifier-naming): a unit
    double per_decay = 0;
    /// The share of the positrons that it follows, from the levels to which the positrons lead. Absent: as
    /// often as after any decay.
    std::optional<double> with_positron{};
    double delay_half_life_s = 0;  ///< of the isomer that emits it; 0: it comes at once
    bool operator==(const Gamma&) const = default;
};

struct Nuclide {
    std::string name;
    double half_life_s = 0;
    double branching_ratio = 1;  ///< positrons per decay
    /// Na-22, Sc-44, Mn-52, Ga-68, Y-86, Zr-89 and I-124: those of 10 of 100 decays or more, and a few
    /// others. Other nuclides: the most frequent one, if it comes at once and in 5 of 100 decays or more.
    std::vector<Gamma> gammas{};

    /// The chance that one of its gammas follows a decay with a positron, or one without.
    [[nodiscard]] double chance(const Gamma& gamma, bool positron) const;
    bool operator==(const Nuclide&) const = default;
};

/// The table, in the order of their mass numbers. Parents whose daughters add positrons of their own are not
/// here, other than Ge-68: what they yield depends on the time since they were separated.
std::span<const Nuclide> nuclides();
/// nullptr if the table does not have it.
const Nuclide* find_nuclide(std::string_view name);

/// A nuclide of the table or, with both values, one that is missing there. Values of a nuclide of the table
/// must be those of the table. Throws std::invalid_argument with what was expected; the message begins with
/// "nuclide", "half_life_s" or "branching_ratio".
Nuclide declared_nuclide(const std::string& name, std::optional<double> half_life_s = {},
                         std::optional<double> branching_ratio = {});

/// A sentence for the results of programs: that the nuclide emits prompt gammas, and what follows. Empty if
/// the table has none for it.
std::string prompt_gamma_note(std::string_view name);

}  // namespace petacq::config
