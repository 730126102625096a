// The seconds of a run, for pictures over time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace petacq::petlm {

/// One number per row. NaN: unknown.
struct SecondsRows {
    std::vector<std::uint64_t> from_ticks;
    std::vector<std::uint64_t> to_ticks;
    std::vector<double> prompts;
    std::vector<double> delayeds;
    std::vector<double> of_delayeds;  ///< random coincidences: delayeds with their weight
    std::vector<double> randoms;      ///< random coincidences: the noise-free estimate
    std::vector<double> pile_up;      ///< mean over time
    std::vector<double> dead_time;    ///< part of the time that modules were blind, mean over those known
    std::vector<double> temperature;  ///< degrees C, mean over time and modules, as far as known
    std::vector<double> coldest;      ///< module in any second
    std::vector<double> hottest;

    [[nodiscard]] std::size_t size() const { return to_ticks.size(); }
};

struct SecondsOverTime {
    std::optional<SecondsRows> rows;  ///< none without seconds
    std::string trouble;              ///< why seconds are missing; empty if none are
};

/// The whole seconds in seconds.plm; neighbouring ones of a long run make one row.
SecondsOverTime seconds_over_time(const std::filesystem::path& run);

}  // namespace petacq::petlm
