// Seconds of a small scanner.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "daemon/seconds/file.hpp"
#include "daemon/seconds/second.hpp"

namespace petacq::test {

/// Three modules of one unit of 2 x 2 crystals.
inline config::Geometry small_scanner() {
    config::Geometry g;
    g.channels = 3;
    g.crystals = {1, 2, 2};
    g.bdm_count = 3;
    g.du_count = 1;
    g.position_size = 16;
    return g;
}

/// The i-th second, of 1000 ticks; its numbers differ and agree with each other.
inline daemon::Second second_number(std::uint64_t i) {
    daemon::Second s = daemon::Second::none(small_scanner());
    std::uint32_t next = static_cast<std::uint32_t>(1000 * i);
    for (auto* const crystals : {&s.sums.unpaired, &s.sums.grouped, &s.sums.prompts, &s.sums.delayeds}) {
        for (std::uint32_t& count : *crystals)
            count = ++next;
    }
    for (gpu::PromptEnds& m : s.sums.modules) {
        m = gpu::PromptEnds::of(-static_cast<std::int64_t>(++next), 511.25F);
        m.dt_squared = ++next;
        m.abs_dt = ++next;
        m.peak = ++next;
        m.peak_energy = ++next;
    }
    const auto sum = [](const auto& crystals) {
        return std::accumulate(crystals.begin(), crystals.end(), std::uint64_t{0});
    };
    s.sums.counts.unpaired = sum(s.sums.unpaired);
    s.sums.counts.decided = s.sums.counts.unpaired + sum(s.sums.grouped);
    s.sums.counts.prompts = sum(s.sums.prompts) / 2;
    s.sums.counts.delayeds = sum(s.sums.delayeds) / 2;
    std::iota(s.sums.module_pairs.begin(), s.sums.module_pairs.end(), 0U);
    s.sums.module_pairs[0] += static_cast<std::uint32_t>(s.sums.counts.prompts - sum(s.sums.module_pairs));
    std::iota(s.sums.refused_pairs.rbegin(), s.sums.refused_pairs.rend(), ++next);
    std::iota(s.sums.energies.begin(), s.sums.energies.end(), ++next);
    s.sums.counts.groups = i % 2;
    s.late = ++next;
    s.temperature_C[1] = 21.5 + static_cast<double>(i);
    s.dead_time[2] = 77;
    s.randoms.total = 0.25 * static_cast<double>(i);
    s.load = 0.125 * static_cast<double>(i);
    s.pile_up = 1 + s.load;
    s.delayeds_weight = 1.5 - s.load;
    s.range = {5000 + 1000 * i, 6000 + 1000 * i};
    s.length_s = 1;
    return s;
}

/// Writes that many of them; a tick is a millisecond.
inline daemon::SecondsCounts write_seconds(const std::filesystem::path& path, std::uint64_t count,
                                           config::Compression compression = config::Compression::none) {
    const nlohmann::json description = {
        {"run_id", "test-run"}, {"tick_ps", 1e9}, {"crystals", small_scanner().crystal_count()}};
    daemon::SecondsFile file(path, small_scanner(), description, compression, std::chrono::seconds(1));
    for (std::uint64_t i = 0; i < count; ++i)
        file.append(second_number(i));
    return file.finish();
}

}  // namespace petacq::test
