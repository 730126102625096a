#include "config/spectra.hpp"

#include <algorithm>
#include <functional>
#include <string>

#include "config/base/error.hpp"
#include "config/hdf5/table.hpp"

namespace petacq::config {

namespace {

constexpr const char* calibration_attribute = "calibration_sha256";

struct SpectraTables {
    Hdf5Table floods;
    Hdf5Table energies;
};

SpectraTables tables_of_spectra(const Geometry& g) {
    const hsize_t positions = hsize_t{g.position_size} * g.position_size;
    return {{"floods", "u32", H5T_NATIVE_UINT32, {g.bdm_count, g.du_count, positions}},
            {"energies", "u32", H5T_NATIVE_UINT32, {g.crystal_count(), energy_bins}}};
}

void check_size(const char* name, std::size_t expected, std::size_t found) {
    if (found != expected) {
        throw Error(std::string(name) + ": expected " + std::to_string(expected) + " counts, found " +
                    std::to_string(found));
    }
}

void add(std::vector<std::uint32_t>& to, const std::vector<std::uint32_t>& more) {
    std::transform(to.begin(), to.end(), more.begin(), to.begin(), std::plus<>());
}

}  // namespace

Spectra Spectra::none(const Geometry& g) {
    Spectra s;
    s.floods.resize(std::size_t{g.bdm_count} * g.du_count * g.position_size * g.position_size);
    s.energies.resize(std::size_t{g.crystal_count()} * energy_bins);
    return s;
}

Spectra& Spectra::operator+=(const Spectra& more) {
    add(floods, more.floods);
    add(energies, more.energies);
    if (calibration_sha256 != more.calibration_sha256) calibration_sha256.clear();
    return *this;
}

Spectra load_spectra(const std::filesystem::path& file, const Geometry& geometry) {
    Spectra spectra;
    read_hdf5_file(file, [&](hid_t h5) {
        const SpectraTables tables = tables_of_spectra(geometry);
        read_table(h5, tables.floods, spectra.floods);
        read_table(h5, tables.energies, spectra.energies);
        spectra.calibration_sha256 = read_texts(h5)[calibration_attribute];
    });
    return spectra;
}

void save_spectra(const std::filesystem::path& file, const Geometry& geometry, const Spectra& spectra) {
    const Spectra none = Spectra::none(geometry);
    check_size("floods", none.floods.size(), spectra.floods.size());
    check_size("energies", none.energies.size(), spectra.energies.size());
    replace_hdf5_file(file, [&](hid_t h5) {
        const SpectraTables tables = tables_of_spectra(geometry);
        Hdf5DataSet floods = write_table(h5, tables.floods, H5T_STD_U32LE, spectra.floods.data(), "frames");
        Hdf5DataSet energies =
            write_table(h5, tables.energies, H5T_STD_U32LE, spectra.energies.data(), "frames");
        write_attribute(energies.id(), "keV_per_bin", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, &energy_bin_keV);
        require_written(floods.close() && energies.close());
        write_texts(h5, {{calibration_attribute, spectra.calibration_sha256}});
    });
}

}  // namespace petacq::config
