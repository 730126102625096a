// Detector files: HDF5, one data set for each property, indexed by crystal number.
#include <array>
#include <cmath>

#include "config/base/error.hpp"
#include "config/hdf5/table.hpp"
#include "tools/petsim/detector/detector.hpp"

namespace petacq::sim {

namespace {

using config::Hdf5Table;

struct Column {
    const char* name;
    float TrueCrystal::*member;
    double low;
    double high;
    const char* units;
};
constexpr double last_position = -1;  // as the limit of a column: the last position
constexpr std::array columns{
    Column{"spot_x", &TrueCrystal::spot_x, 0, last_position, "position, 0 to position_size - 1"},
    Column{"spot_y", &TrueCrystal::spot_y, 0, last_position, "position, 0 to position_size - 1"},
    Column{"spot_sigma_x", &TrueCrystal::spot_sigma_x, 0, 256, "positions"},
    Column{"spot_sigma_y", &TrueCrystal::spot_sigma_y, 0, 256, "positions"},
    Column{"gain", &TrueCrystal::gain, 1e-3, 1e4, "ADC counts per keV at 511 keV"},
    Column{"nonlinearity", &TrueCrystal::nonlinearity, 0, 10,
           "n of ADC = gain E (1 + n) / (1 + n E / 511 keV)"},
    Column{"energy_resolution", &TrueCrystal::energy_resolution, 0, 2, "FWHM / energy at 511 keV"},
    Column{"efficiency", &TrueCrystal::efficiency, 0, 100, "relative"},
    Column{"time_offset_ps", &TrueCrystal::time_offset_ps, -1e9, 1e9, "ps, added to the raw time"}};

Hdf5Table float_table(const char* name, const config::Geometry& g) {
    return {name, "f32", H5T_NATIVE_FLOAT, {g.crystal_count()}};
}

Hdf5Table state_table(const config::Geometry& g) {
    return {"state", "u8", H5T_NATIVE_UINT8, {g.crystal_count()}};
}

[[noreturn]] void refuse(const char* name, const std::string& expected, double found,
                         const std::string& where) {
    throw config::Error(std::string(name) + ": expected " + expected + ", found " + std::to_string(found) +
                        where);
}

void check_number(const char* name, double value, double low, double high, const std::string& where = "") {
    if (!(value >= low && value <= high))
        refuse(name, std::to_string(low) + " to " + std::to_string(high), value, where);
}

}  // namespace

void check_detector(const config::Geometry& g, const Detector& d) {
    if (d.crystals.size() != g.crystal_count()) {
        throw config::Error("detector: expected " + std::to_string(g.crystal_count()) + " crystals, found " +
                            std::to_string(d.crystals.size()));
    }
    check_number("crosstalk", d.crosstalk, 0, 1);
    check_number("noise_hz", d.noise_hz, 0, 1e7);
    for (std::size_t i = 0; i < d.crystals.size(); ++i) {
        const TrueCrystal& c = d.crystals[i];
        const std::string where = " at [" + std::to_string(i) + "]";
        for (const Column& column : columns) {
            const double high = column.high == last_position ? g.position_size - 1.0 : column.high;
            check_number(column.name, c.*column.member, column.low, high, where);
        }
        if (c.state > CrystalState::noisy) {
            refuse("state", "0 (good), 1 (dead) or 2 (noisy)", static_cast<double>(c.state), where);
        }
    }
}

Detector load_detector(const std::filesystem::path& file, const config::Geometry& g) {
    Detector d;
    config::read_hdf5_file(file, [&](hid_t h5) {
        d.crystals.resize(g.crystal_count());
        std::vector<float> values;
        for (const Column& column : columns) {
            config::read_table(h5, float_table(column.name, g), values);
            for (std::size_t i = 0; i < values.size(); ++i)
                d.crystals[i].*column.member = values[i];
        }
        std::vector<std::uint8_t> states;
        config::read_table(h5, state_table(g), states);
        for (std::size_t i = 0; i < states.size(); ++i)
            d.crystals[i].state = static_cast<CrystalState>(states[i]);
        d.crosstalk = config::read_number(h5, "crosstalk");
        d.noise_hz = config::read_number(h5, "noise_hz");
        check_detector(g, d);
    });
    d.sha256 = config::sha256_of_file(file);
    return d;
}

void save_detector(const std::filesystem::path& file, const config::Geometry& g, const Detector& d) {
    config::replace_hdf5_file(file, [&](hid_t h5) {
        check_detector(g, d);
        std::vector<float> values;
        for (const Column& column : columns) {
            values.clear();
            for (const TrueCrystal& c : d.crystals)
                values.push_back(c.*column.member);
            auto data = config::write_table(h5, float_table(column.name, g), H5T_IEEE_F32LE, values.data(),
                                            column.units);
            config::require_written(data.close());
        }
        std::vector<std::uint8_t> states;
        for (const TrueCrystal& c : d.crystals)
            states.push_back(static_cast<std::uint8_t>(c.state));
        auto data =
            config::write_table(h5, state_table(g), H5T_STD_U8LE, states.data(), "0 good, 1 dead, 2 noisy");
        config::require_written(data.close());
        config::write_attribute(h5, "crosstalk", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, &d.crosstalk);
        config::write_attribute(h5, "noise_hz", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, &d.noise_hz);
        if (!d.made_with.empty()) config::write_text(h5, "made_with", d.made_with);
    });
}

}  // namespace petacq::sim
