// Work on the detector units of a scanner, on all cores.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "config/scanner/geometry.hpp"
#include "config/spectra.hpp"
#include "daemon/system/progress_line.hpp"

namespace petacq::petcal {

/// "BDM 3, DU 1": what frames name, not a module of the scanner description and its unit.
inline std::string unit_name(std::size_t bdm, std::size_t du) {
    return "BDM " + std::to_string(bdm) + ", DU " + std::to_string(du);
}
/// The same; `unit` counts bdm * du_count + du.
inline std::string unit_name(const config::Geometry& g, std::size_t unit) {
    return unit_name(unit / g.du_count, unit % g.du_count);
}

/// Where the crystals of a unit begin among those of all units, one unit after the other. One more at the
/// end.
inline std::size_t first_of_unit(const config::Geometry& g, std::size_t unit) {
    return g.channel_map ? g.channel_map->first[unit] : unit * g.crystals_per_du();
}

/// The numbers, or changes, of the crystals of a unit among those of all, ordered by unit.
template <class T>
std::span<const T> of_unit(const config::Geometry& g, const std::vector<T>& by_unit, std::size_t unit) {
    return std::span(by_unit).subspan(first_of_unit(g, unit),
                                      first_of_unit(g, unit + 1) - first_of_unit(g, unit));
}
/// Those of all units of a BDM.
template <class T>
std::span<const T> of_module(const config::Geometry& g, const std::vector<T>& by_unit, std::size_t bdm) {
    const std::size_t first = first_of_unit(g, bdm * g.du_count);
    return std::span(by_unit).subspan(first, first_of_unit(g, (bdm + 1) * g.du_count) - first);
}

/// The spectra of the crystals of a unit, [local crystal][bin].
inline std::vector<std::uint32_t> unit_spectra(const config::Geometry& g, const config::Spectra& spectra,
                                               std::size_t unit) {
    constexpr std::size_t bins = config::energy_bins;
    std::vector<std::uint32_t> out;
    const auto number = static_cast<std::uint32_t>(unit);
    for (std::uint32_t local = 0; local < g.crystals_of_unit(number); ++local) {
        const std::size_t crystal = g.crystal(number / g.du_count, number % g.du_count, local);
        const auto first = spectra.energies.begin() + static_cast<std::ptrdiff_t>(crystal * bins);
        out.insert(out.end(), first, first + static_cast<std::ptrdiff_t>(bins));
    }
    return out;
}

/// Bins between which photopeaks are searched: from half to nearly twice their energy, what factors that were
/// never calibrated may give.
inline constexpr double peaks_from = 250 / config::energy_bin_keV;
inline constexpr double peaks_to = 960 / config::energy_bin_keV;

/// Calls `work` once for each number below `count`, on several threads, and shows the progress on a terminal.
/// Passes on what it throws.
inline void for_each_unit(const std::string& what, std::size_t count,
                          const std::function<void(std::size_t)>& work) {
    std::atomic<std::size_t> next = 0;
    daemon::ProgressLine progress(what, count, daemon::ProgressUnit::steps);
    const auto run = [&](bool shows) {
        for (std::size_t unit = next++; unit < count; unit = next++) {
            if (shows) progress.show(unit);
            work(unit);
        }
    };
    std::vector<std::future<void>> others;
    for (unsigned i = 1; i < std::thread::hardware_concurrency() && i < count; ++i)
        others.push_back(std::async(std::launch::async, run, false));
    run(true);
    for (std::future<void>& other : others)
        other.get();
}

}  // namespace petacq::petcal
