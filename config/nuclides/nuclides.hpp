// Half-lives of positron emitters, how many positrons a decay yields, and the gammas that come with them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace petacq::config {

/// The most frequent gamma that is emitted at once, within nanoseconds, after a decay. In coincidence with an
/// annihilation photon it makes a prompt that no window rejects.
struct PromptGamma {
    double energy_keV = 0;  // NOLINT(readability-identifier-naming): a unit
    double per_decay = 0;   ///< 0: no gamma in 5 of 100 decays or more
    bool operator==(const PromptGamma&) const = default;
};

struct Nuclide {
    std::string name;
    double half_life_s = 0;
    double branching_ratio = 1;  ///< positrons per decay
    PromptGamma prompt_gamma{};
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
