#include "config/nuclides/nuclides.hpp"

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>

namespace petacq::config {
namespace {

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
    for (const Nuclide& nuclide : nuclides)
        names += (names.empty() ? "" : ", ") + std::string(nuclide.name);
    return names;
}

}  // namespace

NamedNuclide declared_nuclide(const std::string& name, std::optional<double> half_life_s,
                              std::optional<double> branching_ratio) {
    if (const Nuclide* const known = find_nuclide(name)) {
        check_same("half_life_s", half_life_s, known->half_life_s, name);
        check_same("branching_ratio", branching_ratio, known->branching_ratio, name);
        return {name, known->half_life_s, known->branching_ratio};
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
    return {name, *half_life_s, *branching_ratio};
}

std::string prompt_gamma_note(std::string_view name) {
    const Nuclide* const nuclide = find_nuclide(name);
    if (nuclide == nullptr || nuclide->prompt_gamma.per_decay == 0) return "";
    return fmt::format(
        "{} emits prompt gammas (mainly {:.0f} keV in {:.0f} % of its decays): coincidences with them are "
        "among "
        "the prompts, and are not corrected.",
        name, nuclide->prompt_gamma.energy_keV, 100 * nuclide->prompt_gamma.per_decay);
}

}  // namespace petacq::config
