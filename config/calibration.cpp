#include "config/calibration.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>

#include "config/base/error.hpp"
#include "config/base/file.hpp"
#include "config/base/sha256.hpp"

namespace petacq::config {

namespace {

void check_size(const char* name, std::uint64_t expected, std::uint64_t found, const std::string& shape) {
    if (expected != found) {
        throw Error(std::string(name) + ": expected " + shape + " = " + std::to_string(expected) +
                    " values, found " + std::to_string(found));
    }
}

void check_narrow(const Geometry& g, const std::vector<std::uint16_t>& position_table) {
    const auto wide = std::find_if(position_table.begin(), position_table.end(),
                                   [](std::uint16_t entry) { return entry > 255; });
    if (wide == position_table.end()) return;
    throw Error("position_table: expected values of one byte, since a unit has " +
                std::to_string(g.crystals_per_du()) + " crystals; found " + std::to_string(*wide));
}

void check_factors(const Geometry& g, const Calibration& c) {
    for (std::size_t i = 0; i < c.energy_factor.size(); ++i) {
        const float f = c.energy_factor[i];
        if (std::isfinite(f) && f >= 0) continue;
        const std::size_t locals = g.crystals_per_du();
        const std::size_t du = i / c.bins / locals;
        throw Error("energy_factor: expected finite values that are not negative, found " +
                    std::to_string(f) + " at [" + std::to_string(du / g.du_count) + "][" +
                    std::to_string(du % g.du_count) + "][" + std::to_string(i / c.bins % locals) + "][" +
                    std::to_string(i % c.bins) + "]");
    }
}

}  // namespace

void check_calibration(const Geometry& g, const Calibration& c) {
    const std::uint64_t units = std::uint64_t{g.bdm_count} * g.du_count;
    const std::string prefix =
        std::string("[") + std::to_string(g.bdm_count) + "][" + std::to_string(g.du_count) + "][";
    const std::uint64_t positions = std::uint64_t{g.position_size} * g.position_size;
    check_size("position_table", units * positions, c.position_table.size(),
               prefix + std::to_string(positions) + "]");
    if (!has_wide_positions(g)) check_narrow(g, c.position_table);
    if (c.bins < 1 || c.bins > max_bins) {
        throw Error("energy_factor: expected 1 to " + std::to_string(max_bins) + " bins, found " +
                    std::to_string(c.bins));
    }
    check_size("energy_factor", units * g.crystals_per_du() * c.bins, c.energy_factor.size(),
               prefix + std::to_string(g.crystals_per_du()) + "][" + std::to_string(c.bins) + "]");
    if (!c.time_offset.empty())
        check_size("time_offset", g.crystal_count(), c.time_offset.size(),
                   std::string("[") + std::to_string(g.crystal_count()) + "]");
    check_factors(g, c);
}

std::optional<double> Calibration::coincidence_fwhm_ps() const {
    const auto stated = origin.find("coincidence_fwhm_ps");
    if (stated == origin.end()) return std::nullopt;
    const std::string& text = stated->second;
    double ps = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ps);
    if (error != std::errc() || end != text.data() + text.size() || !(ps > 0) || !std::isfinite(ps))
        return std::nullopt;
    return ps;
}

std::string sha256_of_file(const std::filesystem::path& file) {
    const FilePointer f = open_for_reading(file);
    Sha256 digest;
    std::vector<std::byte> buffer(std::size_t{1} << 18);
    while (const std::size_t n = std::fread(buffer.data(), 1, buffer.size(), f.get()))
        digest.add(std::span(buffer).first(n));
    if (std::ferror(f.get()) != 0) throw IoError(file.string() + ": cannot be read");
    return digest.text();
}

}  // namespace petacq::config
