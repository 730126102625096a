// Half-lives of positron emitters, how many positrons a decay yields, and the gammas that come with them.
//
// Sources: the Decay Data Evaluation Project (DDEP), Table of Radionuclides, BIPM Monographie 5, as published
// by the Laboratoire National Henri Becquerel (http://www.lnhb.fr/nuclear-data); for nuclides marked ENSDF,
// and for all gammas, the Evaluated Nuclear Structure Data File of the National Nuclear Data Center
// (https://www.nndc.bnl.gov/ensdf).
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace petacq::config {

/// The most frequent gamma that is emitted at once, within nanoseconds, after a decay. In coincidence with an
/// annihilation photon it makes a prompt that no window rejects.
struct PromptGamma {
    double energy_keV = 0;  // NOLINT(readability-identifier-naming): a unit
    double per_decay = 0;   ///< 0: no gamma in 5 of 100 decays or more
};

struct Nuclide {
    std::string_view name;
    double half_life_s;
    double branching_ratio;  ///< positrons per decay
    PromptGamma prompt_gamma{};
};

inline constexpr double minute_s = 60;
inline constexpr double hour_s = 60 * minute_s;
inline constexpr double day_s = 24 * hour_s;
inline constexpr double year_s = 365.2422 * day_s;

/// In the order of their mass numbers. Parents whose daughters add positrons of their own are not here, other
/// than Ge-68: what they yield depends on the time since they were separated.
inline constexpr std::array nuclides{
    Nuclide{"C-11", 20.361 * minute_s, 0.9975},
    Nuclide{"N-13", 9.967 * minute_s, 0.99818},
    Nuclide{"O-14", 70.606, 0.9988, {2312.6, 0.9939}},  // ENSDF
    Nuclide{"O-15", 2.041 * minute_s, 0.99885},
    Nuclide{"F-18", 1.8289 * hour_s, 0.9686},
    Nuclide{"Na-22", 2.6019 * year_s, 0.9035, {1274.5, 0.9994}},   // ENSDF
    Nuclide{"P-30", 2.498 * minute_s, 0.9986},                     // ENSDF
    Nuclide{"K-38", 7.651 * minute_s, 0.996, {2167.5, 0.9985}},    // ENSDF
    Nuclide{"Sc-43", 3.891 * hour_s, 0.881, {372.9, 0.225}},       // ENSDF
    Nuclide{"Sc-44", 4.042 * hour_s, 0.9428, {1157.0, 0.999}},     // ENSDF
    Nuclide{"Ti-45", 184.8 * minute_s, 0.8482},                    // ENSDF
    Nuclide{"V-48", 15.974 * day_s, 0.504, {983.5, 0.9998}},       // ENSDF
    Nuclide{"Mn-51", 46.2 * minute_s, 0.9709},                     // ENSDF
    Nuclide{"Mn-52", 5.591 * day_s, 0.294, {1434.1, 1.0}},         // ENSDF
    Nuclide{"Mn-52m", 21.1 * minute_s, 0.9657, {1434.1, 0.9822}},  // ENSDF
    Nuclide{"Co-55", 17.53 * hour_s, 0.759, {931.1, 0.75}},        // ENSDF
    Nuclide{"Cu-60", 23.7 * minute_s, 0.926, {1332.5, 0.88}},      // ENSDF
    Nuclide{"Cu-61", 3.336 * hour_s, 0.6143, {283.0, 0.1269}},     // ENSDF
    Nuclide{"Cu-62", 9.67 * minute_s, 0.9783},                     // ENSDF
    Nuclide{"Zn-63", 38.47 * minute_s, 0.9274, {669.6, 0.082}},    // ENSDF
    Nuclide{"Cu-64", 12.7004 * hour_s, 0.1752},
    Nuclide{"Ga-66", 9.49 * hour_s, 0.5681, {1039.2, 0.37}},  // ENSDF
    Nuclide{"Ga-68", 67.83 * minute_s, 0.8888},  // 0.8768 to the ground state, the rest to the first level
    Nuclide{"Ge-68", 270.95 * day_s, 0.8888},    // the positrons of Ga-68, in equilibrium with it
    Nuclide{"As-72", 26.0 * hour_s, 0.8785, {834.0, 0.81}},        // ENSDF
    Nuclide{"As-74", 17.77 * day_s, 0.2911, {595.8, 0.594}},       // ENSDF
    Nuclide{"Br-75", 96.7 * minute_s, 0.7462, {286.5, 0.88}},      // ENSDF
    Nuclide{"Br-76", 16.2 * hour_s, 0.5561, {559.1, 0.74}},        // ENSDF
    Nuclide{"Rb-81", 4.572 * hour_s, 0.2726, {446.2, 0.235}},      // ENSDF
    Nuclide{"Rb-82", 1.2575 * minute_s, 0.9543, {776.5, 0.1506}},  // ENSDF
    Nuclide{"Y-86", 14.74 * hour_s, 0.3195, {1076.6, 0.825}},      // ENSDF
    Nuclide{"Zr-89", 78.41 * hour_s, 0.2274},  // ENSDF; its gamma of 909 keV comes seconds later
    Nuclide{"Nb-90", 14.6 * hour_s, 0.5505, {1129.2, 0.9269}},     // ENSDF
    Nuclide{"Y-90", 2.6684 * day_s, 3.19e-5},                      // internal pair production
    Nuclide{"Tc-94m", 52.0 * minute_s, 0.7015, {871.1, 0.942}},    // ENSDF
    Nuclide{"In-110m", 69.1 * minute_s, 0.6126, {657.8, 0.9774}},  // ENSDF
    Nuclide{"I-120", 81.6 * minute_s, 0.683, {560.4, 0.696}},      // ENSDF
    Nuclide{"I-124", 4.176 * day_s, 0.227, {602.7, 0.629}},        // ENSDF
    Nuclide{"La-132", 4.8 * hour_s, 0.4208, {464.6, 0.76}},        // ENSDF
    Nuclide{"La-133", 3.912 * hour_s, 0.0719},                     // ENSDF
    Nuclide{"Tb-152", 17.5 * hour_s, 0.2027, {344.3, 0.635}},      // ENSDF
};

/// nullptr if the table does not have it.
constexpr const Nuclide* find_nuclide(std::string_view name) {
    const auto* const found = std::find_if(nuclides.begin(), nuclides.end(),
                                           [&](const Nuclide& nuclide) { return nuclide.name == name; });
    return found == nuclides.end() ? nullptr : found;
}

/// A nuclide as somebody named it, with its values.
struct NamedNuclide {
    std::string name;
    double half_life_s = 0;
    double branching_ratio = 1;  ///< positrons per decay
    bool operator==(const NamedNuclide&) const = default;
};

/// A nuclide of the table or, with both values, one that is missing there. Values of a nuclide of the table
/// must be those of the table. Throws std::invalid_argument with what was expected; the message begins with
/// "nuclide", "half_life_s" or "branching_ratio".
NamedNuclide declared_nuclide(const std::string& name, std::optional<double> half_life_s = {},
                              std::optional<double> branching_ratio = {});

/// A sentence for the results of programs: that the nuclide emits prompt gammas, and what follows. Empty if
/// the table has none for it.
std::string prompt_gamma_note(std::string_view name);

}  // namespace petacq::config
