#include "tools/petcal/results/results.hpp"

#include <chrono>
#include <cmath>
#include <span>

#include "config/base/error.hpp"
#include "config/base/sha256.hpp"
#include "config/calibration.hpp"
#include "config/energy_bins.hpp"
#include "config/hdf5/table.hpp"
#include "daemon/system/utc.hpp"
#include "daemon/system/version.hpp"

namespace petacq::petcal {

namespace {

using config::Hdf5Table;

struct CrystalsLayout {
    Hdf5Table position_table;
    Hdf5Table derived;
    Hdf5Table spots;
    Hdf5Table quality;
};

CrystalsLayout crystals_layout(const config::Geometry& g) {
    const hsize_t positions = hsize_t{g.position_size} * g.position_size;
    return {{"position_table",
             config::has_wide_positions(g) ? "u16" : "u8",
             H5T_NATIVE_UINT16,
             {g.bdm_count, g.du_count, positions}},
            {"derived", "u8", H5T_NATIVE_UINT8, {g.bdm_count, g.du_count}},
            {"spots", "f32", H5T_NATIVE_FLOAT, {g.bdm_count, g.du_count, g.crystals_per_du(), 2}},
            {"quality", "f32", H5T_NATIVE_FLOAT, {g.bdm_count, g.du_count, quality_figures}}};
}

struct EnergyLayout {
    Hdf5Table energy_factor;
    Hdf5Table state;
    Hdf5Table peak;
    Hdf5Table resolution;
};

EnergyLayout energy_layout(const config::Geometry& g, hsize_t bins) {
    const config::Hdf5Shape crystals{g.bdm_count, g.du_count, g.crystals_per_du()};
    config::Hdf5Shape factors = crystals;
    factors.push_back(bins);
    return {{"energy_factor", "f32", H5T_NATIVE_FLOAT, factors, config::max_bins},
            {"state", "u8", H5T_NATIVE_UINT8, crystals},
            {"peak_keV", "f32", H5T_NATIVE_FLOAT, crystals},
            {"resolution", "f32", H5T_NATIVE_FLOAT, crystals}};
}

void check_at_most(const char* name, const std::vector<std::uint8_t>& values, std::uint8_t most) {
    for (const std::uint8_t value : values) {
        if (value <= most) continue;
        throw config::Error(std::string(name) + ": expected 0 to " + std::to_string(most) + ", found " +
                            std::to_string(value));
    }
}

void check_factors(const std::vector<float>& factors) {
    for (const float factor : factors) {
        if (std::isfinite(factor) && factor >= 0) continue;
        throw config::Error("energy_factor: expected finite values that are not negative, found " +
                            std::to_string(factor));
    }
}

}  // namespace

Origin made_by(const std::string& command) {
    return {{"made_by", command + " " + daemon::version},
            {"created_utc", daemon::utc_text(std::chrono::system_clock::now())}};
}

std::string map_checksum(const config::Geometry& geometry, const std::vector<std::uint16_t>& position_table) {
    config::Sha256 digest;
    if (config::has_wide_positions(geometry)) {
        digest.add(std::as_bytes(std::span(position_table)));
    } else {
        const std::vector<std::uint8_t> bytes(position_table.begin(), position_table.end());
        digest.add(std::as_bytes(std::span(bytes)));
    }
    return digest.text();
}

CrystalsResult load_crystals(const std::filesystem::path& file, const config::Geometry& geometry) {
    CrystalsResult r;
    config::read_hdf5_file(file, [&](hid_t h5) {
        const CrystalsLayout layout = crystals_layout(geometry);
        config::read_table(h5, layout.position_table, r.position_table);
        config::read_table(h5, layout.derived, r.derived);
        config::read_table(h5, layout.spots, r.spots);
        config::read_table(h5, layout.quality, r.quality);
        check_at_most("derived", r.derived, 1);
        r.origin = config::read_texts(h5);
    });
    return r;
}

void save_crystals(const std::filesystem::path& file, const config::Geometry& geometry,
                   const CrystalsResult& r) {
    config::replace_hdf5_file(file, [&](hid_t h5) {
        const CrystalsLayout layout = crystals_layout(geometry);
        const hid_t type = config::has_wide_positions(geometry) ? H5T_STD_U16LE : H5T_STD_U8LE;
        auto table = config::write_table(h5, layout.position_table, type, r.position_table.data(),
                                         "crystal of the block; crystals.y * crystals.z or more: outside");
        auto derived = config::write_table(h5, layout.derived, H5T_STD_U8LE, r.derived.data(), "1 derived");
        auto spots =
            config::write_table(h5, layout.spots, H5T_IEEE_F32LE, r.spots.data(), "position: x, y; -1: none");
        auto quality = config::write_table(h5, layout.quality, H5T_IEEE_F32LE, r.quality.data(),
                                           "counts per crystal, peaks / crystals, separation along x, along "
                                           "y, share of counts between peaks");
        config::require_written(table.close() && derived.close() && spots.close() && quality.close());
        config::write_texts(h5, r.origin);
    });
}

EnergyResult load_energy(const std::filesystem::path& file, const config::Geometry& geometry) {
    EnergyResult r;
    config::read_hdf5_file(file, [&](hid_t h5) {
        const EnergyLayout layout = energy_layout(geometry, 0);
        r.bins = config::read_table(h5, layout.energy_factor, r.energy_factor);
        config::read_table(h5, layout.state, r.state);
        config::read_table(h5, layout.peak, r.peak_keV);
        config::read_table(h5, layout.resolution, r.resolution);
        check_at_most("state", r.state, static_cast<std::uint8_t>(EnergyState::kept));
        check_factors(r.energy_factor);
        r.origin = config::read_texts(h5);
        const auto map = r.origin.find("map_sha256");
        if (map == r.origin.end()) throw config::Error("expected the attribute \"map_sha256\", found none");
        r.map_sha256 = map->second;
    });
    return r;
}

void save_energy(const std::filesystem::path& file, const config::Geometry& geometry, const EnergyResult& r) {
    config::replace_hdf5_file(file, [&](hid_t h5) {
        const EnergyLayout layout = energy_layout(geometry, r.bins);
        auto factors = config::write_table(h5, layout.energy_factor, H5T_IEEE_F32LE, r.energy_factor.data(),
                                           "keV per ADC count");
        auto state = config::write_table(h5, layout.state, H5T_STD_U8LE, r.state.data(),
                                         "0 fitted, 1 median of the unit, 2 kept");
        auto peak = config::write_table(h5, layout.peak, H5T_IEEE_F32LE, r.peak_keV.data(), "keV");
        auto resolution = config::write_table(h5, layout.resolution, H5T_IEEE_F32LE, r.resolution.data(),
                                              "FWHM / energy at 511 keV");
        config::require_written(factors.close() && state.close() && peak.close() && resolution.close());
        Origin origin = r.origin;
        origin["map_sha256"] = r.map_sha256;
        config::write_texts(h5, origin);
    });
}

}  // namespace petacq::petcal
