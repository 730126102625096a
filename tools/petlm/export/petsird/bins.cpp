#include "tools/petlm/export/petsird/bins.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "daemon/coverage/unknown.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/export/petsird/coding.hpp"

namespace petacq::petsird {
namespace {

struct EnergyRange {
    double lower;
    double upper;
};

/// Where neither the energies nor their window are known, one bin holds all that there can be.
constexpr EnergyRange any_energy{0, 1'000'000};

EnergyRange energy_window(const petlm::ExportSource& source) {
    const auto& energy = source.coverage().rules.energy;
    if (energy && energy->filter && energy->upper_keV > energy->lower_keV)
        return {energy->lower_keV, energy->upper_keV};
    if (!daemon::tells(source.coverage(), daemon::unknown_energies)) return any_energy;
    float highest = 0;
    source.for_each_block(
        source.crystals(),
        [&](const daemon::ListModeReader& reader) {
            for (const auto& c : reader.coincidences())
                highest = std::max({highest, c.energy_a, c.energy_b});
        },
        "looking for the highest energy in");
    return {0, std::floor(static_cast<double>(highest)) + 1};
}

std::uint32_t window_of(const petlm::ExportSource& source) {
    const auto& rules = source.coverage().rules.coincidence;
    if (!rules) {
        throw petlm::BadInput(
            source.target().string() +
            ": expected records whose coincidence window is known, as the TOF bins need it; of imported ones "
            "petlm import may declare it (--window-ns)");
    }
    return rules->window_ticks;
}

}  // namespace

Bins::Bins(const petlm::ExportSource& source, const config::Scanner& scanner, const PetsirdOptions& options,
           const std::optional<config::Gammas>& gammas)
    : types(types_of(scanner)),
      element(scanner.geometry.crystal_count()),
      window_ticks(window_of(source)),
      tof_bin_ticks(daemon::tells(source.coverage(), daemon::unknown_dt) ? options.tof_bin_ticks : 0) {
    first_element = {0};
    for (const ModuleType& type : types) {
        std::uint32_t number = first_element.back();
        for (const std::uint32_t crystal : type.crystals)
            element[crystal] = number++;
        first_element.push_back(number);
    }
    set_energies(source, options, gammas);
    if (std::uint64_t{first_element.back()} * energies() > Varint::end) {
        throw petlm::UsageError(
            fmt::format("{} crystals with {} energy bins: expected at most {} detection bins",
                        first_element.back(), energies(), Varint::end));
    }
    if (tof_bin_ticks == 0) return;
    std::uint64_t longest = window_ticks;
    if (gammas) {
        longest =
            std::max<std::uint64_t>(window_ticks + std::uint64_t{gammas->before_ticks}, gammas->after_ticks);
    }
    const std::uint64_t half = (2 * longest + tof_bin_ticks) / (2 * std::uint64_t{tof_bin_ticks});
    if (2 * half + 1 > most_tof_bins) {
        throw petlm::UsageError(fmt::format(
            "--tof-bin-ticks {}: {} TOF bins for photons up to {} ticks apart; expected at most {}: choose "
            "wider ones",
            tof_bin_ticks, 2 * half + 1, longest, most_tof_bins));
    }
    tof_half = static_cast<std::uint32_t>(half);
}

void Bins::set_energies(const petlm::ExportSource& source, const PetsirdOptions& options,
                        const std::optional<config::Gammas>& gammas) {
    const EnergyRange window = energy_window(source);
    const std::uint32_t bins =
        daemon::tells(source.coverage(), daemon::unknown_energies) ? options.energy_bins : 1;
    const double step = (window.upper - window.lower) / bins;
    for (std::uint32_t k = 0; k < bins; ++k)
        energy_edges.push_back(static_cast<float>(window.lower + k * step));
    energy_edges.push_back(static_cast<float>(window.upper));
    pair_energies = {0, bins};
    if (!gammas) return;
    // A bin between the windows, in which there is nothing, tells where each of them begins and ends.
    const std::array<float, 2> of_gammas = {static_cast<float>(gammas->lower_keV),
                                            static_cast<float>(gammas->upper_keV)};
    if (of_gammas[0] > energy_edges.back()) {
        gamma_energy = bins + 1;
        energy_edges.insert(energy_edges.end(), of_gammas.begin(), of_gammas.end());
    } else {
        gamma_energy = 0;
        pair_energies.first = 2;
        energy_edges.insert(energy_edges.begin(), of_gammas.begin(), of_gammas.end());
    }
}

std::uint32_t Bins::energy_bin(float energy) const {
    const auto first = energy_edges.begin() + pair_energies.first;
    const auto inner = std::upper_bound(first + 1, first + pair_energies.count, energy);
    return static_cast<std::uint32_t>(inner - energy_edges.begin()) - 1;
}

}  // namespace petacq::petsird
