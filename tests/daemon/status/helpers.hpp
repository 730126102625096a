// Shared by the status tests: a scanner, snapshots of an acquisition, a clock.
#pragma once

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "config/configuration.hpp"
#include "config/energy_bins.hpp"
#include "daemon/acquisition/acquisition.hpp"
#include "tests/support/configuration.hpp"

namespace petacq::test {

using SteadyTime = std::chrono::steady_clock::time_point;

inline SteadyTime at(double seconds) {
    // Not 0, which could be mistaken for "never".
    return SteadyTime(std::chrono::hours(1)) +
           std::chrono::duration_cast<std::chrono::steady_clock::duration>(
               std::chrono::duration<double>(seconds));
}

inline std::int64_t ns_at(double seconds) {
    return at(seconds).time_since_epoch() / std::chrono::nanoseconds(1);
}

/// 24 modules of 6 units.
inline config::Scanner small_scanner() {
    return config::load_scanner(std::filesystem::path(PETACQ_SOURCE_DIR) / "config" / "examples" /
                                "small.scanner.json");
}

inline daemon::AcquisitionSnapshot snapshot_at(double seconds) {
    daemon::AcquisitionSnapshot s;
    s.taken = at(seconds);
    s.histograms_taken = s.taken;
    return s;
}

/// Histograms in which every unit of `bdm` has counted `hits` at `temperature`.
inline std::shared_ptr<const gpu::SinglesHistograms> histograms(const config::Geometry& g, std::uint32_t bdm,
                                                                std::uint64_t hits, double temperature) {
    auto h = std::make_shared<gpu::SinglesHistograms>();
    h->per_crystal.resize(g.crystal_count());
    h->energy.resize(std::size_t{g.bdm_count} * config::energy_bins);
    h->temperature_sum_16ths.resize(std::size_t{g.bdm_count} * g.du_count);
    h->temperature_count.resize(std::size_t{g.bdm_count} * g.du_count);
    for (std::size_t unit = std::size_t{bdm} * g.du_count; unit < (bdm + std::size_t{1}) * g.du_count;
         ++unit) {
        h->temperature_count[unit] = hits;
        h->temperature_sum_16ths[unit] =
            static_cast<std::int64_t>(temperature * 16) * static_cast<std::int64_t>(hits);
    }
    h->energy[std::size_t{bdm} * config::energy_bins + 127] = hits * g.du_count;
    return h;
}

}  // namespace petacq::test
