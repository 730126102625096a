// Runs with saved singles, and what a search over all of them at once finds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "config/configuration.hpp"
#include "config/scanner/scanner.hpp"
#include "daemon/listmode/writer.hpp"
#include "gpu/pipeline.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/read_listmode.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tools/petlm/resort/resort.hpp"

namespace petacq::test {

using Singles = gpu::RecordVector<gpu::Single>;

inline config::Scanner resort_scanner() {
    config::Scanner s;
    s.name = "test scanner";
    s.geometry = {6, {1, 2, 2}, {1, 2, 3}, {1, 5, 4}, 24, 6, 64};
    s.tick_ps = 1'000'000;  // a microsecond: seconds are short
    s.dimensions = {32, 1.6, 1.7, 12, 0.4, 0.5, 1};
    return s;
}

/// Throws nothing away.
inline nlohmann::json resort_configuration_of(const nlohmann::json& coincidence) {
    return {{"scanner", "scanner.json"},
            {"calibration", "calibration.h5"},
            {"data_dir", "/data"},
            {"coincidence", coincidence},
            {"energy", {{"filter", false}}},
            {"listmode", nlohmann::json::object()},
            {"receive", {{"sockets", {{{"address", "127.0.0.1"}, {"port", 9655}}}}}},
            {"pipeline", {{"threads", 1}}},
            {"sources", {{"accept_any", true}}}};
}

inline void sort_singles(Singles& singles) {
    std::sort(singles.begin(), singles.end(), [](const gpu::Single& a, const gpu::Single& b) {
        return std::tie(a.time, a.crystal, a.energy) < std::tie(b.time, b.crystal, b.energy);
    });
}

/// run.json of a complete run, changed by the JSON merge patch.
inline nlohmann::json run_document(const std::filesystem::path& directory, const nlohmann::json& coincidence,
                                   const nlohmann::json& changes) {
    nlohmann::json run = {{"run_id", directory.filename().string()},
                          {"state", "complete"},
                          {"start_utc", "2026-11-20T18:45:00.000Z"},
                          {"calibration_sha256", "abc"},
                          {"configuration", resort_configuration_of(coincidence)},
                          {"scanner", config::to_json(resort_scanner())}};
    run.merge_patch(changes);
    return run;
}

/// Writes a run directory with these singles, which are in order.
inline void write_singles_run(const std::filesystem::path& directory, const Singles& singles,
                              const nlohmann::json& coincidence, std::uint64_t start, std::uint64_t stop,
                              const nlohmann::json& changes = nlohmann::json::object(),
                              std::uint32_t block_bytes = 4096) {
    std::filesystem::create_directories(directory);
    nlohmann::json all = {{"start_ticks", start}, {"stop_ticks", stop}};
    all.merge_patch(changes);
    write_file(directory / "run.json", run_document(directory, coincidence, all).dump());
    daemon::ListModeOptions options;
    options.kind = daemon::RecordKind::singles;
    options.block_bytes = block_bytes;
    options.sync_interval_ms = 3'600'000;
    daemon::ListModeWriter writer(directory / "singles.plm", options, {{"run_id", "r"}});
    writer.append(std::vector(singles));
    REQUIRE(writer.finish().written == singles.size());
}

/// The section of a configuration with these rules.
inline nlohmann::json coincidence_of(const gpu::CoincidenceRules& rules) {
    nlohmann::json section = {{"window_ticks", rules.window},
                              {"window_mode", name_of(rules.mode)},
                              {"multiples_policy", name_of(rules.policy)},
                              {"delayeds", name_of(rules.delayeds)},
                              {"max_multiplicity", rules.max_multiplicity}};
    if (rules.delay) section["delay_ticks"] = *rules.delay;
    return section;
}

/// The runs of so many hosts, each with the singles of other crystals.
inline std::vector<std::filesystem::path> write_host_runs(
    const std::filesystem::path& directory, const Singles& singles, std::uint64_t hosts,
    const nlohmann::json& coincidence, const nlohmann::json& changes = nlohmann::json::object(),
    std::uint32_t block_bytes = 4096) {
    std::vector<Singles> parts(hosts);
    for (const gpu::Single& s : singles)
        parts[s.crystal % hosts].push_back(s);
    std::vector<std::filesystem::path> runs;
    for (std::size_t h = 0; h < hosts; ++h) {
        runs.push_back(directory / ("host" + std::to_string(h)));
        write_singles_run(runs.back(), parts[h], coincidence, 0, singles.back().time + 1, changes,
                          block_bytes);
    }
    return runs;
}

/// What one pipeline finds in all singles at once.
inline gpu::SliceResult found_at_once(const Singles& singles, const gpu::CoincidenceRules& rules,
                                      const gpu::EnergyWindow& energy = {false, 0, 0}) {
    const config::Scanner scanner = resort_scanner();
    gpu::PipelineOptions options;
    options.input = gpu::Input::singles;
    options.geometry = scanner.geometry;
    options.energy = energy;
    options.rules = rules;
    options.max_slice_frames = static_cast<std::uint32_t>(singles.size() + 1);
    config::Calibration calibration;
    const std::size_t units = std::size_t{scanner.geometry.bdm_count} * scanner.geometry.du_count;
    calibration.position_table.assign(units * 64 * 64, 0);
    calibration.bins = 1;
    calibration.energy_factor.assign(units * scanner.geometry.crystals_per_du(), 1);
    const auto pipeline = gpu::make_cpu_pipeline(options, calibration);
    const gpu::FrameSpan span{reinterpret_cast<const std::byte*>(singles.data()),
                              static_cast<std::uint32_t>(singles.size())};
    gpu::Slice slice;
    slice.spans = {&span, 1};
    slice.watermark = UINT64_MAX;
    slice.close_at = UINT64_MAX;
    slice.ends_interval = true;
    pipeline->submit(slice);
    gpu::SliceResult result;
    REQUIRE(pipeline->collect(result, true));
    return result;
}

/// Times that divide badly, each in its own way.
inline Singles difficult(const std::string& kind, std::uint32_t window, std::mt19937_64& random,
                         std::size_t count) {
    const std::uint32_t crystals = resort_scanner().geometry.crystal_count();
    Singles singles;
    std::uint64_t time = random() % 1000;
    for (std::size_t i = 0; i < count; ++i) {
        if (kind == "sparse") time += random() % (20 * window);
        if (kind == "dense") time += random() % std::max(2U, window / 4);
        if (kind == "chained") time += window - random() % 2;  // never a gap
        if (kind == "on the edge") time += window + random() % 2;
        if (kind == "bursts") time += random() % 50 == 0 ? 3 * window : random() % 2;
        singles.push_back({time, static_cast<std::uint32_t>(random() % crystals),
                           static_cast<float>(300 + random() % 400)});
    }
    sort_singles(singles);
    return singles;
}

template <class Record>
bool same_bytes(const gpu::RecordVector<Record>& a, const gpu::RecordVector<Record>& b) {
    return a.size() == b.size() &&
           (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof a.front()) == 0);
}

/// The singles in [from, to).
inline Singles between(const Singles& singles, std::uint64_t from, std::uint64_t to) {
    Singles out;
    std::copy_if(singles.begin(), singles.end(), std::back_inserter(out),
                 [&](const gpu::Single& s) { return s.time >= from && s.time < to; });
    return out;
}

/// petlm::resort() without its line on standard output.
inline int quietly_resort(const petlm::ResortOptions& options) {
    struct Quiet {
        ~Quiet() { std::cout.rdbuf(before); }
        std::ostringstream ignored;
        std::streambuf* const before = std::cout.rdbuf(ignored.rdbuf());
    } const quiet;
    return petlm::resort(options);
}

}  // namespace petacq::test
