// Which modules are out of step with the others: what is known, and what to say about it.
//
// The majority decides: most modules that have pairs with each other are in step. A module is out of step
// when it is off by more than a source anywhere in the scanner could make it, by many times the error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "daemon/synchrony/module_places.hpp"
#include "daemon/synchrony/time_differences.hpp"

namespace petacq::daemon {

struct ModuleSynchrony {
    enum class SynchronyState : std::uint8_t {
        unknown,  ///< too few coincidences
        in_step,
        out_of_step,
        no_partners,  ///< no coincidences within the reach, where its neighbours have many
    };
    SynchronyState state = SynchronyState::unknown;
    double late_ticks = 0;  ///< against the majority; not of unknown and no_partners
    double error_ticks = 0;
    double pairs = 0;                     ///< from which it is known, without randoms
    std::optional<std::uint16_t> source;  ///< the board, where it is known
};

/// "in_step"
const char* name_of(ModuleSynchrony::SynchronyState state);

struct SynchronyReport {
    std::vector<ModuleSynchrony> modules;
    std::uint64_t singles = 0;       ///< of the samples
    double min_ticks = 0;            ///< by more a module is out of step
    std::uint64_t window_ticks = 0;  ///< of coincidences
    double reach_ticks = 0;          ///< so far a module with few coincidences was looked for
    bool complete = false;           ///< all modules that count are known
    /// How many modules are known.
    [[nodiscard]] std::size_t known() const;
};

/// What is known of the scanner. Times are in ticks.
struct SynchronyOptions {
    std::vector<ModulePlace> places;  ///< by compared_modules()
    double tick_ns = 1;
    std::uint32_t window = 0;  ///< of coincidences
    double diameter_mm = 0;    ///< of the scanner, crystals included
    /// [bdm]; empty: none is known. SynchronyWatch puts them into the report.
    std::vector<std::optional<std::uint16_t>> sources;
    /// To either side. The narrow one is cut where rates are high, the wide one is for those without a peak
    /// in it.
    static constexpr double narrow_ns = 8000;
    static constexpr double wide_ns = 1e6;
};

/// By compared_modules(), as the modules of the hits. REQUIRES: `hits` are in the order of time.
SynchronyReport judge_synchrony(std::span<const TimedSingle> hits, const SynchronyOptions& options);

}  // namespace petacq::daemon
