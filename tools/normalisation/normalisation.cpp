#include "tools/normalisation/normalisation.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "config/base/error.hpp"
#include "config/calibration.hpp"
#include "config/hdf5/table.hpp"

namespace petacq::normalisation {

namespace {

using config::Hdf5Table;

constexpr const char* activity_factor_name = "activity_factor";

struct NormalisationTables {
    Hdf5Table efficiency;
    Hdf5Table transaxial;
    Hdf5Table axial;
};

NormalisationTables layout_of(const config::Geometry& g) {
    const hsize_t columns = g.crystals_per_module_y();
    return {{"efficiency", "f32", H5T_NATIVE_FLOAT, {g.crystal_count()}},
            {"transaxial", "f32", H5T_NATIVE_FLOAT, {g.modules_in_ring() / 2 + 1, columns, columns}},
            {"axial", "f32", H5T_NATIVE_FLOAT, {g.rings(), g.rings()}}};
}

void check_values(const char* name, const std::vector<float>& values) {
    for (const float value : values) {
        if (std::isfinite(value) && value >= 0) continue;
        throw config::Error(std::string(name) + ": expected finite factors that are not negative, found " +
                            std::to_string(value));
    }
}

void check(const config::Geometry& g, const Normalisation& n) {
    const Normalisation even = Normalisation::even(g);
    const auto check_table = [](const char* name, const std::vector<float>& expected,
                                const std::vector<float>& found) {
        if (found.size() != expected.size()) {
            throw config::Error(std::string(name) + ": expected " + std::to_string(expected.size()) +
                                " factors, found " + std::to_string(found.size()));
        }
        check_values(name, found);
    };
    check_table("efficiency", even.efficiency, n.efficiency);
    check_table("transaxial", even.transaxial, n.transaxial);
    check_table("axial", even.axial, n.axial);
    const auto alive = [](float efficiency) { return efficiency > 0; };
    if (std::none_of(n.efficiency.begin(), n.efficiency.end(), alive))
        throw config::Error("efficiency: expected some above 0, found none");
    for (std::uint32_t a = 0; a < g.rings(); ++a) {
        for (std::uint32_t b = 0; b < a; ++b) {
            if (n.axial[a * g.rings() + b] == n.axial[b * g.rings() + a]) continue;
            throw config::Error("axial: expected the same factor for rings " + std::to_string(a) + ", " +
                                std::to_string(b) + " in either order");
        }
    }
    if (n.activity_factor && !(std::isfinite(*n.activity_factor) && *n.activity_factor > 0)) {
        throw config::Error(std::string(activity_factor_name) + ": expected a number above 0, found " +
                            std::to_string(*n.activity_factor));
    }
}

}  // namespace

std::optional<double> Normalisation::number(const std::string& name) const {
    const auto found = origin.find(name);
    if (found == origin.end()) return std::nullopt;
    const std::string& text = found->second;
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
        return std::nullopt;
    return value;
}

Normalisation Normalisation::even(const config::Geometry& g) {
    const std::size_t columns = g.crystals_per_module_y();
    Normalisation n;
    n.efficiency.assign(g.crystal_count(), 1);
    n.transaxial.assign((g.modules_in_ring() / 2 + 1) * columns * columns, 1);
    n.axial.assign(std::size_t{g.rings()} * g.rings(), 1);
    return n;
}

Normalisation load(const std::filesystem::path& file, const config::Geometry& geometry) {
    Normalisation n;
    config::read_hdf5_file(file, [&](hid_t h5) {
        const NormalisationTables layout = layout_of(geometry);
        config::read_table(h5, layout.efficiency, n.efficiency);
        config::read_table(h5, layout.transaxial, n.transaxial);
        config::read_table(h5, layout.axial, n.axial);
        if (H5Aexists(h5, activity_factor_name) > 0)
            n.activity_factor = config::read_number(h5, activity_factor_name);
        check(geometry, n);
        n.origin = config::read_texts(h5);
    });
    n.sha256 = config::sha256_of_file(file);
    return n;
}

void save(const std::filesystem::path& file, const config::Geometry& geometry, const Normalisation& n) {
    check(geometry, n);
    config::replace_hdf5_file(file, [&](hid_t h5) {
        const NormalisationTables layout = layout_of(geometry);
        auto efficiency = config::write_table(h5, layout.efficiency, H5T_IEEE_F32LE, n.efficiency.data(),
                                              "detection efficiency, mean 1; 0: dead");
        auto transaxial = config::write_table(h5, layout.transaxial, H5T_IEEE_F32LE, n.transaxial.data(),
                                              "factor by modules apart and columns in the modules");
        auto axial =
            config::write_table(h5, layout.axial, H5T_IEEE_F32LE, n.axial.data(), "factor by pair of rings");
        config::require_written(efficiency.close() && transaxial.close() && axial.close());
        if (n.activity_factor) {
            config::write_attribute(h5, activity_factor_name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE,
                                    &*n.activity_factor);
        }
        config::write_texts(h5, n.origin);
    });
}

}  // namespace petacq::normalisation
