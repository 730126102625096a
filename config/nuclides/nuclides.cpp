// Sources: the Decay Data Evaluation Project (DDEP), Table of Radionuclides, BIPM Monographie 5, as published
// by the Laboratoire National Henri Becquerel (http://www.lnhb.fr/nuclear-data); for nuclides marked ENSDF,
// and for all gammas, the Evaluated Nuclear Structure Data File of the National Nuclear Data Center
// (https://www.nndc.bnl.gov/ensdf). How often positrons are followed by a gamma is the sum over the levels to
// which they lead, each with the branches through which it decays.
#include "config/nuclides/nuclides.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

namespace petacq::config {
namespace {

constexpr double minute_s = 60;
constexpr double hour_s = 60 * minute_s;
constexpr double day_s = 24 * hour_s;
constexpr double year_s = 365.2422 * day_s;

constexpr double few_gammas = 0.05;  // per decay: fewer are not worth a note

constexpr double longest_half_life_s = 1e12;
constexpr double max_branching_ratio = 2;  // positrons of a daughter may be counted with its parent

/// An element, a mass number, and m or m2 of a metastable state: "Tc-94m".
bool is_name(std::string_view name) {
    const auto skip = [&](std::size_t max, auto is_one) {
        std::size_t count = 0;
        while (count < max && count < name.size() && is_one(name[count]))
            ++count;
        name.remove_prefix(count);
        return count;
    };
    const auto digit = [](char c) { return c >= '0' && c <= '9'; };
    return skip(1, [](char c) { return c >= 'A' && c <= 'Z'; }) == 1 &&
           (skip(1, [](char c) { return c >= 'a' && c <= 'z'; }), skip(1, [](char c) { return c == '-'; })) ==
               1 &&
           skip(3, digit) > 0 && (skip(1, [](char c) { return c == 'm'; }) == 0 || skip(1, digit) <= 1) &&
           name.empty();
}

[[noreturn]] void refuse(std::string_view what, const std::string& expected, const std::string& found) {
    throw std::invalid_argument(fmt::format("{}: expected {}, found {}", what, expected, found));
}

void check_same(std::string_view what, std::optional<double> given, double expected,
                const std::string& name) {
    if (given && !(std::abs(*given - expected) <= 1e-6 * expected))
        refuse(what, fmt::format("that of {} in the table, {:.6g}", name, expected),
               fmt::format("{:.6g}", *given));
}

std::string known_names() {
    std::string names;
    for (const Nuclide& nuclide : nuclides())
        names += (names.empty() ? "" : ", ") + nuclide.name;
    return names;
}

}  // namespace

std::span<const Nuclide> nuclides() {
    static const std::array table{
        Nuclide{"C-11", 20.361 * minute_s, 0.9975}, Nuclide{"N-13", 9.967 * minute_s, 0.99818},
        Nuclide{"O-14", 70.606, 0.9988, {{2312.6, 0.9939}}},  // ENSDF
        Nuclide{"O-15", 2.041 * minute_s, 0.99885}, Nuclide{"F-18", 1.8289 * hour_s, 0.9686},
        Nuclide{"Na-22", 2.6019 * year_s, 0.9035, {{1274.5, 0.9994, 0.9994}}},                    // ENSDF
        Nuclide{"P-30", 2.498 * minute_s, 0.9986},                                                // ENSDF
        Nuclide{"K-38", 7.651 * minute_s, 0.996, {{2167.5, 0.9985}}},                             // ENSDF
        Nuclide{"Sc-43", 3.891 * hour_s, 0.881, {{372.9, 0.225}}},                                // ENSDF
        Nuclide{"Sc-44", 4.042 * hour_s, 0.9428, {{1157.0, 0.999, 1.0}, {1499.5, 0.0091, 0.0}}},  // ENSDF
        Nuclide{"Ti-45", 184.8 * minute_s, 0.8482},                                               // ENSDF
        Nuclide{"V-48", 15.974 * day_s, 0.504, {{983.5, 0.9998}}},                                // ENSDF
        Nuclide{"Mn-51", 46.2 * minute_s, 0.9709},                                                // ENSDF
        // ENSDF; its positrons leave the level from which these three come one after the other
        Nuclide{"Mn-52",
                5.591 * day_s,
                0.294,
                {{744.2, 0.900, 0.989}, {935.5, 0.945, 0.989}, {1434.1, 1.0, 1.0}}},
        Nuclide{"Mn-52m", 21.1 * minute_s, 0.9657, {{1434.1, 0.9822}}},  // ENSDF
        Nuclide{"Co-55", 17.53 * hour_s, 0.759, {{931.1, 0.75}}},        // ENSDF
        Nuclide{"Cu-60", 23.7 * minute_s, 0.926, {{1332.5, 0.88}}},      // ENSDF
        Nuclide{"Cu-61", 3.336 * hour_s, 0.6143, {{283.0, 0.1269}}},     // ENSDF
        Nuclide{"Cu-62", 9.67 * minute_s, 0.9783},                       // ENSDF
        Nuclide{"Zn-63", 38.47 * minute_s, 0.9274, {{669.6, 0.082}}},    // ENSDF
        Nuclide{"Cu-64", 12.7004 * hour_s, 0.1752},
        Nuclide{"Ga-66", 9.49 * hour_s, 0.5681, {{1039.2, 0.37}}},  // ENSDF
        // 0.8768 to the ground state, the rest to the first level
        Nuclide{"Ga-68", 67.83 * minute_s, 0.8888, {{1077.3, 0.0322, 0.0134}}},
        // the positrons of Ga-68, in equilibrium with it
        Nuclide{"Ge-68", 270.95 * day_s, 0.8888, {{1077.3, 0.0322, 0.0134}}},
        Nuclide{"As-72", 26.0 * hour_s, 0.8785, {{834.0, 0.81}}},        // ENSDF
        Nuclide{"As-74", 17.77 * day_s, 0.2911, {{595.8, 0.594}}},       // ENSDF
        Nuclide{"Br-75", 96.7 * minute_s, 0.7462, {{286.5, 0.88}}},      // ENSDF
        Nuclide{"Br-76", 16.2 * hour_s, 0.5561, {{559.1, 0.74}}},        // ENSDF
        Nuclide{"Rb-81", 4.572 * hour_s, 0.2726, {{446.2, 0.235}}},      // ENSDF
        Nuclide{"Rb-82", 1.2575 * minute_s, 0.9543, {{776.5, 0.1506}}},  // ENSDF
        // ENSDF
        Nuclide{"Y-86",
                14.74 * hour_s,
                0.3195,
                {{443.1, 0.1691, 0.199},
                 {627.7, 0.3259, 0.203},
                 {703.3, 0.1543, 0.050},
                 {777.4, 0.2244, 0.148},
                 {1076.6, 0.825, 0.884},
                 {1153.0, 0.3053, 0.375},
                 {1854.4, 0.1716, 0.113},
                 {1920.7, 0.2079, 0.277}}},
        // ENSDF; the gamma is that of the isomer Y-89m
        Nuclide{"Zr-89", 78.41 * hour_s, 0.2274, {{909.2, 0.9904, {}, 15.66}}},
        Nuclide{"Nb-90", 14.6 * hour_s, 0.5505, {{1129.2, 0.9269}}},     // ENSDF
        Nuclide{"Y-90", 2.6684 * day_s, 3.19e-5},                        // internal pair production
        Nuclide{"Tc-94m", 52.0 * minute_s, 0.7015, {{871.1, 0.942}}},    // ENSDF
        Nuclide{"In-110m", 69.1 * minute_s, 0.6126, {{657.8, 0.9774}}},  // ENSDF
        Nuclide{"I-120", 81.6 * minute_s, 0.683, {{560.4, 0.696}}},      // ENSDF
        // ENSDF; its positrons leave the ground state in 10.7, the level of 603 keV in 11.7 of 100 decays
        Nuclide{"I-124",
                4.176 * day_s,
                0.227,
                {{602.7, 0.629, 0.524}, {722.8, 0.1036, 0.011}, {1691.0, 0.1115, 0.0}}},
        Nuclide{"La-132", 4.8 * hour_s, 0.4208, {{464.6, 0.76}}},    // ENSDF
        Nuclide{"La-133", 3.912 * hour_s, 0.0719},                   // ENSDF
        Nuclide{"Tb-152", 17.5 * hour_s, 0.2027, {{344.3, 0.635}}},  // ENSDF
    };
    return table;
}

double Nuclide::chance(const Gamma& gamma, bool positron) const {
    const double with = gamma.with_positron.value_or(gamma.per_decay);
    if (positron) return with;
    if (!(branching_ratio < 1)) return 0;
    return std::clamp((gamma.per_decay - branching_ratio * with) / (1 - branching_ratio), 0.0, 1.0);
}

const Nuclide* find_nuclide(std::string_view name) {
    const auto found = std::find_if(nuclides().begin(), nuclides().end(),
                                    [&](const Nuclide& nuclide) { return nuclide.name == name; });
    return found == nuclides().end() ? nullptr : &*found;
}

Nuclide declared_nuclide(const std::string& name, std::optional<double> half_life_s,
                         std::optional<double> branching_ratio) {
    if (const Nuclide* const known = find_nuclide(name)) {
        check_same("half_life_s", half_life_s, known->half_life_s, name);
        check_same("branching_ratio", branching_ratio, known->branching_ratio, name);
        return *known;
    }
    const std::string found = name.size() > 100 ? fmt::format("{} bytes", name.size()) : "'" + name + "'";
    if (!half_life_s || !branching_ratio) {
        refuse("nuclide",
               fmt::format("one of {}, or any other with its half-life and branching ratio", known_names()),
               found);
    }
    if (!is_name(name)) refuse("nuclide", "an element and a mass number, such as Fe-52 or Tc-94m", found);
    if (!(*half_life_s > 0 && *half_life_s <= longest_half_life_s)) {
        refuse("half_life_s", fmt::format("seconds above 0, at most {:g}", longest_half_life_s),
               fmt::format("{:.6g}", *half_life_s));
    }
    if (!(*branching_ratio > 0 && *branching_ratio <= max_branching_ratio)) {
        refuse("branching_ratio",
               fmt::format("positrons per decay: a number above 0, at most {:g}", max_branching_ratio),
               fmt::format("{:.6g}", *branching_ratio));
    }
    return {name, *half_life_s, *branching_ratio, {}};
}

std::string prompt_gamma_note(std::string_view name) {
    const Nuclide* const nuclide = find_nuclide(name);
    if (nuclide == nullptr) return "";
    const Gamma* main = nullptr;
    for (const Gamma& gamma : nuclide->gammas) {
        if (gamma.delay_half_life_s == 0 && (main == nullptr || gamma.per_decay > main->per_decay))
            main = &gamma;
    }
    if (main == nullptr || main->per_decay < few_gammas) return "";
    return fmt::format(
        "{} emits prompt gammas (mainly {:.0f} keV in {:.0f} % of its decays): coincidences with them are "
        "among the prompts.",
        name, main->energy_keV, 100 * main->per_decay);
}

}  // namespace petacq::config
