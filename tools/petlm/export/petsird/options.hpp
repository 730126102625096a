// What a user chooses of a PETSIRD file. docs/reference/formats/petsird.md explains the options.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace petacq::petsird {

/// No version reads the files of another.
enum class Version : std::uint8_t { v0_9_1, v0_12_0 };

inline const std::map<std::string, Version>& versions() {
    static const std::map<std::string, Version> words = {{"0.9.1", Version::v0_9_1},
                                                         {"0.12.0", Version::v0_12_0}};
    return words;
}

inline std::string name_of(Version version) {
    for (const auto& [name, of] : versions())
        if (of == version) return name;
    return {};
}

struct PetsirdOptions {
    Version version = Version::v0_12_0;
    std::uint32_t block_ms = 1;       ///< length of a time block: the resolution of the time of an event
    std::uint32_t tof_bin_ticks = 1;  ///< width of a TOF bin; 0: no TOF
    std::uint32_t energy_bins = 1;    ///< of the energy window
    bool no_delayeds = false;
    bool no_triples = false;
    bool only_events = false;                  ///< prompts and delayeds alone
    std::optional<double> tof_resolution_ps;   ///< FWHM of the time difference of a pair
    std::optional<double> energy_resolution;   ///< FWHM / energy at 511 keV
    std::optional<std::uint32_t> bed_channel;  ///< of the tags with the position of the bed
    std::vector<std::string> signals;          ///< CHANNEL=TYPE: the types of the tags of channels

    bool operator==(const PetsirdOptions&) const = default;
};

}  // namespace petacq::petsird
