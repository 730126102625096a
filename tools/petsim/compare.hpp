// Compares the list-mode of a run with the truth: which pairs are expected, found, or missing and why.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "config/configuration.hpp"
#include "config/scanner/scanner.hpp"
#include "gpu/base/records.hpp"
#include "tools/petsim/compare_triples.hpp"
#include "tools/petsim/simulation/base/truth.hpp"

namespace petacq::sim {

/// The rules of pairs and triples of the run.
struct PairingRules {
    std::uint32_t window_ticks = 0;
    bool every = false;            ///< window mode "every"
    bool remove_multiples = true;  ///< multiples policy RemoveMultiples
    bool filter = true;
    float lower = 0;  ///< keV, inclusive
    float upper = 0;
    std::uint32_t min_module_difference = 0;
    std::uint32_t max_ring_difference = UINT32_MAX;
    std::optional<config::Gammas> gammas;  ///< absent: the run records no triples
};
/// From the "configuration" of a run.json. Throws std::runtime_error naming a missing key.
PairingRules rules_from_configuration(const nlohmann::json& configuration);

/// What the calibration of the daemon makes of the frames of a true detector: of those that are neither
/// corrupted nor moved in time nor of several hits.
struct CalibrationErrors {
    std::uint64_t frames = 0;
    std::uint64_t outside = 0;  ///< of these, outside any crystal
    std::uint64_t right = 0;    ///< of these, in the crystal of their hit; the other members are of these
    double energy_mean = 0;     ///< of found / true energy - 1, for true energies inside the energy limits
    double energy_rms = 0;      ///< around the mean
    double time_mean = 0;       ///< of found - true time, ticks
    double time_rms = 0;        ///< around the mean
};

struct Comparison {
    std::uint64_t frames = 0;   ///< in the truth file
    std::uint64_t tags = 0;     ///< in the truth file, not among the frames
    std::uint64_t singles = 0;  ///< of these, sent whole and inside the energy window
    std::uint64_t moved = 0;  ///< with a clock jump or after a reset: left out, so that the rest is not exact
    std::uint64_t pairs_sent = 0;    ///< annihilations with both singles
    std::uint64_t detectable = 0;    ///< of these, inside the window and with good geometry
    std::uint64_t found = 0;         ///< of these, in the list-mode, record for record
    std::uint64_t in_multiples = 0;  ///< not found: in a group of more than two
    std::uint64_t consumed = 0;  ///< not found: an earlier single opened the window that closed between them
    std::uint64_t unexplained = 0;  ///< not found for another reason: must be 0

    std::uint64_t prompts = 0;     ///< in the list-mode
    std::uint64_t trues = 0;       ///< of one annihilation, neither photon scattered
    std::uint64_t scattered = 0;   ///< of one annihilation, one scattered
    std::uint64_t randoms = 0;     ///< of two annihilations
    std::uint64_t one_photon = 0;  ///< of one photon, which scattered from crystal to crystal
    std::uint64_t spurious = 0;    ///< of one decay, at least one of them a gamma
    std::uint64_t intrinsic = 0;   ///< of one decay of Lu-176
    std::uint64_t foreign = 0;     ///< of singles that are not in the truth: must be 0
    std::uint64_t delayeds = 0;

    /// With RemoveMultiples and a window mode in which each single belongs to one window, every prompt can be
    /// predicted.
    std::optional<std::uint64_t> prompts_expected;
    std::uint64_t prompts_missing = 0;  ///< expected and not in the list-mode: must be 0
    std::uint64_t prompts_surplus = 0;  ///< in the list-mode and not expected: must be 0

    /// Of a run that records triples.
    std::optional<TripleComparison> triples;

    /// Known from truth files of version 2.
    std::optional<CalibrationErrors> calibration;

    [[nodiscard]] bool agrees() const {
        return unexplained == 0 && foreign == 0 && prompts_missing == 0 && prompts_surplus == 0 &&
               (!triples || triples->agrees());
    }
};

/// `coincidences` and `triples` may be in any order.
Comparison compare(const config::Geometry& geometry, const PairingRules& rules,
                   std::vector<TruthRecord> truth, std::vector<gpu::Coincidence> coincidences,
                   std::vector<gpu::Triple> triples = {});

/// `decays`: positrons emitted, for the sensitivity; 0: unknown.
nlohmann::json to_json(const Comparison& c, double decays);
std::string to_text(const Comparison& c, double decays);

/// `petsim compare`: reads both files and prints the comparison. Returns 0 if they agree, 1 if not. Throws
/// std::runtime_error for files that cannot be used.
int compare_files(const std::string& truth_file, const std::string& run_directory, bool json);

}  // namespace petacq::sim
