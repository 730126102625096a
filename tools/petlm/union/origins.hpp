// From which host the hits of a union came, and what all of them lack.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "config/scanner/scanner.hpp"
#include "tools/petlm/resort/result/resorted_run.hpp"
#include "tools/petlm/union/stream.hpp"
#include "tools/petlm/union/united_capture.hpp"
#include "tools/petlm/union/united_singles.hpp"

namespace petacq::petlm {

struct Origins {
    struct OfRun {
        std::filesystem::path directory;
        std::string state;   ///< as in its run.json
        std::string damage;  ///< HeardRun::damage()
    };
    std::vector<OfRun> runs;
    std::vector<HitOrigins> modules;  ///< [bdm] `only` is as long as the runs
    HitOrigins all;                   ///< of the scanner
    std::int64_t datagrams_lost = 0;  ///< by all runs, in the seconds of which it is known
    double unknown_s = 0;             ///< length of the others
    std::vector<double> estimated_s;  ///< [bdm] in which the share of its data that arrived is an estimate
    /// Not more datagrams were lost by all. Absent: no run that covers everything knows what it has lost.
    std::optional<std::uint64_t> datagrams_at_most;
    std::optional<UnitedCapture> capture;        ///< if all runs have captures
    std::optional<std::uint64_t> captures_lack;  ///< datagrams that are in none of them; absent: unknown
};

Origins origins_of(const HeardStream& stream, const UnitedSingles& singles,
                   std::optional<UnitedCapture> capture, const ResortedRun& made,
                   const config::Scanner& scanner);

/// `united` of run.json.
nlohmann::json to_json(const Origins& origins);

}  // namespace petacq::petlm
