// Shared by the tests of petlm: runs on disk, the program as users run it, files read back.
#pragma once

#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "config/base/constants.hpp"
#include "config/scanner/scanner.hpp"
#include "daemon/listmode/writer.hpp"
#include "tests/daemon/listmode/support.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/configuration.hpp"
#include "tests/support/program.hpp"
#include "tools/geometry/hit_finder.hpp"

namespace petacq::test {

inline Outcome run_petlm(const std::string& arguments) {
    return shell(PETLM_PROGRAM " " + arguments);
}

inline const std::array<std::string, 5>& export_formats() {
    static const std::array<std::string, 5> all = {"castor", "stir", "coinstruct", "csv", "hdf5"};
    return all;
}

inline Outcome exported(const std::string& format, const std::filesystem::path& from,
                        const std::filesystem::path& to, const std::string& options = "") {
    return run_petlm("export --format " + format + quoted(from) + "--output" + quoted(to) + options);
}

/// Uneven in every direction: crystals.y != crystals.z, blocks.y != blocks.z, several modules and gaps.
inline config::Scanner export_scanner() {
    config::Scanner s;
    s.name = "test scanner";
    s.geometry = {6, {1, 2, 2}, {1, 2, 3}, {1, 5, 4}, 24, 6, 64};
    s.tick_ps = 15.625;
    s.dimensions = {32, 1.6, 1.7, 12, 0.4, 0.5, 1};
    return s;
}

inline constexpr std::uint64_t run_start = 5'000'000'000;  ///< ticks, 78.125 ms

inline nlohmann::json file_description(const config::Scanner& scanner) {
    return {{"run_id", "test-run"},
            {"start_utc", "2026-11-20T18:45:00.123Z"},
            {"scanner", scanner.name},
            {"tick_ps", scanner.tick_ps},
            {"crystals", scanner.geometry.crystal_count()},
            {"crystals_in_ring", scanner.geometry.crystals_in_ring()},
            {"window_ticks", 300},
            {"delay_ticks", 10000}};
}

inline void write_plm(const std::filesystem::path& file, const gpu::RecordVector<gpu::Coincidence>& records,
                      const nlohmann::json& description, std::uint32_t block_bytes = 4096) {
    daemon::ListModeOptions options;
    options.block_bytes = block_bytes;
    options.sync_interval_ms = 3'600'000;
    daemon::ListModeWriter writer(file, options, description);
    writer.append(std::vector(records));
    REQUIRE(writer.finish().written == records.size());
}

/// Writes a run directory with its records in one file or in several parts.
inline void write_run(const std::filesystem::path& directory,
                      const gpu::RecordVector<gpu::Coincidence>& records,
                      const config::Scanner& scanner = export_scanner(), std::size_t parts = 1,
                      const nlohmann::json& coincidence = nlohmann::json::object()) {
    std::filesystem::create_directories(directory);
    nlohmann::json rules = {{"window_ticks", 300}, {"delay_ticks", 10000}};
    rules.update(coincidence);
    const std::uint64_t stop = records.empty() ? run_start : records.back().time + 1000;
    const nlohmann::json run = {{"run_id", "test-run"},
                                {"state", "complete"},
                                {"start_utc", "2026-11-20T18:45:00.123Z"},
                                {"start_ticks", run_start},
                                {"stop_ticks", stop},
                                {"configuration", *configuration_with({{"coincidence", rules}}).document},
                                {"scanner", config::to_json(scanner)}};
    write_file(directory / "run.json", run.dump());
    for (std::size_t part = 0; part < parts; ++part) {
        const auto at = [&](std::size_t p) {
            return records.begin() + static_cast<std::ptrdiff_t>(records.size() * p / parts);
        };
        const std::string number = std::to_string(10'001 + part).substr(1);
        const std::string name = parts == 1 ? "coincidences.plm" : "coincidences-" + number + ".plm";
        write_plm(directory / name, {at(part), at(part + 1)}, file_description(scanner));
    }
}

using config::light_mm_per_ps;

/// The records of an ideal scanner for a point source, in order and a few microseconds apart. Every second
/// pair is repeated as a delayed, so that both kinds show where the source is.
inline gpu::RecordVector<gpu::Coincidence> point_source(const config::Scanner& scanner, config::Vector3 where,
                                                        std::size_t count) {
    const geometry::HitFinder finder(scanner);
    std::mt19937_64 random(7);
    std::normal_distribution<double> normal;
    gpu::RecordVector<gpu::Coincidence> out;
    std::uint64_t time = run_start;
    while (out.size() < count) {
        config::Vector3 u = {normal(random), normal(random), normal(random)};
        const double length = std::hypot(u[0], u[1], u[2]);
        for (double& x : u)
            x /= length;
        auto a = finder.find(where, u);
        auto b = finder.find(where, {-u[0], -u[1], -u[2]});
        if (!a || !b) continue;
        if (b->distance_mm < a->distance_mm) std::swap(a, b);
        gpu::Coincidence c;
        c.time = time += 200'000 + random() % 400'000;
        c.dt = static_cast<std::uint32_t>(
            std::lround((b->distance_mm - a->distance_mm) / light_mm_per_ps / scanner.tick_ps));
        if (c.dt == 0 && b->crystal < a->crystal) std::swap(a, b);
        c.crystal_a = a->crystal;
        c.crystal_b = b->crystal;
        c.energy_a = 400.5F + static_cast<float>(out.size() % 200);
        c.energy_b = 511.25F;
        out.push_back(c);
        if (out.size() % 3 == 2) {
            c.kind = gpu::Kind::delayed;
            out.push_back(c);
        }
    }
    return out;
}

inline gpu::RecordVector<gpu::Coincidence> of_kind(const gpu::RecordVector<gpu::Coincidence>& all,
                                                   gpu::Kind kind) {
    gpu::RecordVector<gpu::Coincidence> out;
    for (const auto& c : all) {
        if (c.kind == kind) out.push_back(c);
    }
    return out;
}

/// Reads consecutive values.
class Bytes {
  public:
    explicit Bytes(const std::filesystem::path& file) : data_(read_file(file)) {}
    template <class T>
    T take() {
        REQUIRE(at_ + sizeof(T) <= data_.size());
        T value;
        std::memcpy(&value, data_.data() + at_, sizeof(T));
        at_ += sizeof(T);
        return value;
    }
    [[nodiscard]] bool at_end() const { return at_ == data_.size(); }
    [[nodiscard]] std::size_t size() const { return data_.size(); }

  private:
    std::string data_;
    std::size_t at_ = 0;
};

/// Parses lines of the form "key<separator>value".
inline std::map<std::string, std::string> key_values(const std::filesystem::path& file,
                                                     const std::string& separator) {
    std::map<std::string, std::string> out;
    std::istringstream lines(read_file(file));
    for (std::string line; std::getline(lines, line);) {
        const auto at = line.find(separator);
        if (at != std::string::npos) out[line.substr(0, at)] = line.substr(at + separator.size());
    }
    return out;
}

/// Names in a directory.
inline std::set<std::string> names_in(const std::filesystem::path& directory) {
    std::set<std::string> out;
    for (const auto& entry : std::filesystem::directory_iterator(directory))
        out.insert(entry.path().filename().string());
    return out;
}

}  // namespace petacq::test
