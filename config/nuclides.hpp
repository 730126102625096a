// Half-lives of positron emitters, and how many positrons a decay yields.
//
// Sources: the Decay Data Evaluation Project (DDEP), Table of Radionuclides, BIPM Monographie 5, as published
// by the Laboratoire National Henri Becquerel (http://www.lnhb.fr/nuclear-data); for nuclides marked ENSDF,
// the Evaluated Nuclear Structure Data File of the National Nuclear Data Center
// (https://www.nndc.bnl.gov/ensdf).
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace petacq::config {

struct Nuclide {
    std::string_view name;
    double half_life_s;
    double branching_ratio;  ///< positrons per decay
};

inline constexpr double minute_s = 60;
inline constexpr double hour_s = 60 * minute_s;
inline constexpr double day_s = 24 * hour_s;
inline constexpr double year_s = 365.2422 * day_s;

/// In the order of their mass numbers.
inline constexpr std::array nuclides{
    Nuclide{"C-11", 20.361 * minute_s, 0.9975},
    Nuclide{"N-13", 9.967 * minute_s, 0.99818},
    Nuclide{"O-15", 2.041 * minute_s, 0.99885},
    Nuclide{"F-18", 1.8289 * hour_s, 0.9686},
    Nuclide{"Na-22", 2.6019 * year_s, 0.9035},  // ENSDF
    Nuclide{"Cu-64", 12.7004 * hour_s, 0.1752},
    Nuclide{"Ga-68", 67.83 * minute_s, 0.8888},   // 0.8768 to the ground state, the rest to the first level
    Nuclide{"Ge-68", 270.95 * day_s, 0.8888},     // the positrons of Ga-68, in equilibrium with it
    Nuclide{"Rb-82", 1.2575 * minute_s, 0.9543},  // ENSDF
    Nuclide{"Zr-89", 78.41 * hour_s, 0.2274},     // ENSDF
    Nuclide{"Y-90", 2.6684 * day_s, 3.19e-5},     // internal pair production
    Nuclide{"I-124", 4.176 * day_s, 0.227},       // ENSDF
};

/// nullptr if the table does not have it.
constexpr const Nuclide* find_nuclide(std::string_view name) {
    const auto* const found = std::find_if(nuclides.begin(), nuclides.end(),
                                           [&](const Nuclide& nuclide) { return nuclide.name == name; });
    return found == nuclides.end() ? nullptr : found;
}

}  // namespace petacq::config
