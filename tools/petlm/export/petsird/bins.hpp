// How records become events of a PETSIRD file: the numbers of their detection bins and TOF bins.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "config/configuration.hpp"
#include "tools/petlm/export/petsird/module_types.hpp"
#include "tools/petlm/export/petsird/options.hpp"
#include "tools/petlm/records/source.hpp"

namespace petacq::petsird {

/// A range of energy bins.
struct EnergyBins {
    std::uint32_t first = 0;
    std::uint32_t count = 1;
};

/// The tables of one conversion. Immutable once built, so threads may share it.
struct Bins {
    std::vector<ModuleType> types;
    std::vector<std::uint32_t> element;        ///< [crystal] among the elements of all types, type by type
    std::vector<std::uint32_t> first_element;  ///< [type], and the number of all
    std::uint32_t window_ticks = 0;
    std::uint32_t tof_bin_ticks = 1;
    std::uint32_t tof_half = 0;  ///< bins on either side of the middle one
    std::vector<float> energy_edges;
    EnergyBins pair_energies;                   ///< of the photons of pairs; the others have none of them
    std::optional<std::uint32_t> gamma_energy;  ///< the energy bin of gammas; absent: no triples

    static constexpr std::uint32_t most_tof_bins = 65535;

    /// Energies and time differences that the records do not tell have one bin, whatever the options say.
    /// `gammas`: the rules of the triples that the file gets. Throws petlm::UsageError for bins that the
    /// format does not hold, and as ExportSource does.
    Bins(const petlm::ExportSource& source, const config::Scanner& scanner, const PetsirdOptions& options,
         const std::optional<config::Gammas>& gammas);

    [[nodiscard]] std::uint32_t energies() const {
        return static_cast<std::uint32_t>(energy_edges.size()) - 1;
    }
    [[nodiscard]] float lowest_keV() const { return energy_edges[pair_energies.first]; }
    [[nodiscard]] float highest_keV() const {
        return energy_edges[pair_energies.first + pair_energies.count];
    }
    [[nodiscard]] std::uint32_t type_count() const { return static_cast<std::uint32_t>(types.size()); }
    /// Lists of pairs: of two types, of which the second is not the higher one.
    [[nodiscard]] std::uint32_t pair_lists() const { return type_count() * (type_count() + 1) / 2; }
    [[nodiscard]] std::uint32_t triple_lists() const {
        return gamma_energy ? type_count() * (type_count() + 1) * (type_count() + 2) / 6 : 0;
    }

    /// Among the bins of all types. `energy`: of a photon of a pair.
    [[nodiscard]] std::uint32_t detection_bin(std::uint32_t crystal, float energy) const {
        if (energies() == 1) return element[crystal];
        return element[crystal] * energies() + energy_bin(energy);
    }
    [[nodiscard]] std::uint32_t gamma_bin(std::uint32_t crystal) const {
        return element[crystal] * energies() + *gamma_energy;
    }
    [[nodiscard]] std::uint32_t type_of_bin(std::uint32_t bin) const {
        if (types.size() == 1) return 0;
        const std::uint32_t of = bin / energies();
        std::uint32_t type = 0;
        while (of >= first_element[type + 1])
            ++type;
        return type;
    }

  private:
    [[nodiscard]] std::uint32_t energy_bin(float energy) const;
    void set_energies(const petlm::ExportSource& source, const PetsirdOptions& options,
                      const std::optional<config::Gammas>& gammas);
};

}  // namespace petacq::petsird
