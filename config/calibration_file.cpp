// Calibration files: HDF5 in, HDF5 out.
#include <filesystem>
#include <system_error>

#include "config/base/error.hpp"
#include "config/calibration.hpp"
#include "config/hdf5/table.hpp"

namespace petacq::config {

namespace {

struct CalibrationTables {
    Hdf5Table position_table;
    Hdf5Table energy_factor;
    Hdf5Table time_offset;
};

CalibrationTables tables_of_calibration(const Geometry& g) {
    const hsize_t positions = hsize_t{g.position_size} * g.position_size;
    return {{"position_table",
             has_wide_positions(g) ? "u16" : "u8",
             H5T_NATIVE_UINT16,
             {g.bdm_count, g.du_count, positions}},
            {"energy_factor",
             "f32",
             H5T_NATIVE_FLOAT,
             {g.bdm_count, g.du_count, g.crystals_per_du(), 0},
             max_bins},
            {"time_offset", "i32", H5T_NATIVE_INT32, {g.crystal_count()}}};
}

}  // namespace

Calibration load_calibration(const std::filesystem::path& file, const Geometry& geometry) {
    if (std::error_code ignored;
        std::filesystem::status(file, ignored).type() == std::filesystem::file_type::not_found) {
        throw IoError(
            file.string() +
            ": No such file or directory; petcal make makes the calibration of a simulated scanner");
    }
    Calibration c;
    read_hdf5_file(file, [&](hid_t h5) {
        const CalibrationTables tables = tables_of_calibration(geometry);
        read_table(h5, tables.position_table, c.position_table);
        c.bins = read_table(h5, tables.energy_factor, c.energy_factor);
        if (has_table(h5, tables.time_offset)) read_table(h5, tables.time_offset, c.time_offset);
        c.origin = read_texts(h5);
        check_calibration(geometry, c);
    });
    c.sha256 = sha256_of_file(file);
    return c;
}

void save_calibration(const std::filesystem::path& file, const Geometry& geometry,
                      const Calibration& calibration) {
    replace_hdf5_file(file, [&](hid_t h5) {
        check_calibration(geometry, calibration);
        CalibrationTables tables = tables_of_calibration(geometry);
        tables.energy_factor.shape.back() = calibration.bins;
        Hdf5DataSet positions = write_table(h5, tables.position_table,
                                            has_wide_positions(geometry) ? H5T_STD_U16LE : H5T_STD_U8LE,
                                            calibration.position_table.data(),
                                            "crystal of the block; crystals.y * crystals.z or more: outside");
        Hdf5DataSet factors = write_table(h5, tables.energy_factor, H5T_IEEE_F32LE,
                                          calibration.energy_factor.data(), "keV per ADC count");
        write_attribute(factors.id(), "adc_per_bin", H5T_STD_U32LE, H5T_NATIVE_UINT32, &adc_per_bin);
        Hdf5DataSet offsets;
        if (!calibration.time_offset.empty()) {
            offsets = write_table(h5, tables.time_offset, H5T_STD_I32LE, calibration.time_offset.data(),
                                  "ticks, added to the raw time");
        }
        require_written(positions.close() && factors.close() && offsets.close());
        write_texts(h5, calibration.origin);
    });
}

}  // namespace petacq::config
