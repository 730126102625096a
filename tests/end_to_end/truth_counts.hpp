// The counts that a daemon must have, derived from what the simulator sent.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace petacq::test {

/// The fates of the frames in datagrams that are neither malformed nor duplicate, counted from the truth
/// file. The energy window ends at 650 keV.
struct TruthCounts {
    std::uint64_t received = 0;
    std::uint64_t unreadable = 0;  ///< marker, address, position
    std::uint64_t time_jump = 0;   ///< corrupted times, clock jumps
    std::uint64_t after_reset = 0;
    std::uint64_t below_window = 0;
    std::uint64_t above_window = 0;
    std::uint64_t accepted = 0;
};
TruthCounts count_truth(const std::filesystem::path& file, double lower_keV = 350);

/// Checks every counter of a run's ledger that the simulator determines; nothing may be lost between
/// simulator and daemon, and no frame may be late. For streams without resets.
void check_ledger(const nlohmann::json& ledger, const nlohmann::json& summary, const TruthCounts& truth);

}  // namespace petacq::test
