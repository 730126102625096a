#include "tools/normalisation/normalisation.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "config/base/error.hpp"
#include "config/calibration.hpp"
#include "config/hdf5/table.hpp"
#include "tools/normalisation/symmetry.hpp"

namespace petacq::normalisation {

namespace {

using config::Hdf5Table;

constexpr const char* activity_factor_name = "activity_factor";

Hdf5Table efficiency_table(const config::Geometry& g) {
    return {"efficiency", "f32", H5T_NATIVE_FLOAT, {g.crystal_count()}};
}

struct FactorTables {
    Hdf5Table transaxial;
    Hdf5Table axial;
};

FactorTables ring_tables(const config::Geometry& g) {
    const hsize_t columns = g.crystals_per_module_y();
    return {{"transaxial", "f32", H5T_NATIVE_FLOAT, {g.modules_in_ring() / 2 + 1, columns, columns}},
            {"axial", "f32", H5T_NATIVE_FLOAT, {g.rings(), g.rings()}}};
}

FactorTables class_tables(const PairClasses& classes) {
    return {{"transaxial", "f32", H5T_NATIVE_FLOAT, {classes.transaxial_count()}},
            {"axial", "f32", H5T_NATIVE_FLOAT, {classes.axial_count()}}};
}

/// Absent without geometric factors.
std::optional<FactorTables> factor_tables(const config::Geometry& g, const PairClasses* classes) {
    if (classes != nullptr) return class_tables(*classes);
    if (g.is_ring()) return ring_tables(g);
    return std::nullopt;
}

/// Calls use(table, file type, what it holds, values) for each table of the classes.
template <class Classes, class Use>
void for_each_table(const config::Geometry& g, Classes& c, Use use) {
    const hsize_t crystals = g.crystal_count();
    const hsize_t modules = c.columns.size();
    const auto u16 = [](const char* name, hsize_t count, hsize_t most = 0) {
        return Hdf5Table{name, "u16", H5T_NATIVE_UINT16, {count}, most};
    };
    const auto u32 = [](const char* name, config::Hdf5Shape shape, hsize_t most = 0) {
        return Hdf5Table{name, "u32", H5T_NATIVE_UINT32, std::move(shape), most};
    };
    use(u32("module", {crystals}), H5T_STD_U32LE, "module of the crystal", c.module);
    use(u16("column", crystals), H5T_STD_U16LE, "column of the crystal in its module", c.column);
    use(u16("mirrored_column", crystals), H5T_STD_U16LE, "the same in the reversed module",
        c.mirrored_column);
    use(u16("row", crystals), H5T_STD_U16LE, "row of the crystal in its module", c.row);
    use(u16("mirrored_row", crystals), H5T_STD_U16LE, "the same in the reversed module", c.mirrored_row);
    use(u16("rows", modules), H5T_STD_U16LE, "rows of the module", c.rows);
    use(u32("pair_class", {modules, modules}), H5T_STD_U32LE, "class of two modules", c.pair_class);
    use(Hdf5Table{"pair_turn", "u8", H5T_NATIVE_UINT8, {modules, modules}}, H5T_STD_U8LE,
        "bits: 1 swapped; reversed: 2 columns of a, 4 rows of a, 8 columns of b, 16 rows of b", c.pair_turn);
    use(u32("class_a", {c.class_a.size()}, modules * modules), H5T_STD_U32LE, "first module of the class",
        c.class_a);
    use(u32("class_b", {c.class_a.size()}), H5T_STD_U32LE, "second module of the class", c.class_b);
}

/// Its length is the number of modules.
Hdf5Table columns_table(std::size_t modules) {
    return {"columns", "u16", H5T_NATIVE_UINT16, {modules}, max_modules};
}

/// Absent if the file has no geometric factors.
std::shared_ptr<const PairClasses> load_classes(hid_t h5, const config::Geometry& g) {
    if (!config::has_table(h5, columns_table(0))) return nullptr;
    auto c = std::make_shared<PairClasses>();
    config::read_table(h5, columns_table(0), c->columns);
    for_each_table(g, *c, [&](const Hdf5Table& table, hid_t, const char*, auto& values) {
        config::read_table(h5, table, values);
    });
    c->index();
    return c;
}

void save_classes(hid_t h5, const config::Geometry& g, const PairClasses& c) {
    auto columns = config::write_table(h5, columns_table(c.columns.size()), H5T_STD_U16LE, c.columns.data(),
                                       "columns of the module");
    config::require_written(columns.close());
    for_each_table(g, c, [&](const Hdf5Table& table, hid_t type, const char* what, const auto& values) {
        auto written = config::write_table(h5, table, type, values.data(), what);
        config::require_written(written.close());
    });
}

void check_values(const char* name, const std::vector<float>& values) {
    for (const float value : values) {
        if (std::isfinite(value) && value >= 0) continue;
        throw config::Error(std::string(name) + ": expected finite factors that are not negative, found " +
                            std::to_string(value));
    }
}

void check_rings(const config::Geometry& g, const Normalisation& n) {
    for (std::uint32_t a = 0; a < g.rings(); ++a) {
        for (std::uint32_t b = 0; b < a; ++b) {
            if (n.axial[a * g.rings() + b] == n.axial[b * g.rings() + a]) continue;
            throw config::Error("axial: expected the same factor for rings " + std::to_string(a) + ", " +
                                std::to_string(b) + " in either order");
        }
    }
}

void check(const config::Geometry& g, const Normalisation& n) {
    const Normalisation even = Normalisation::even(g);
    const auto check_table = [](const char* name, std::size_t expected, const std::vector<float>& found) {
        if (found.size() != expected) {
            throw config::Error(std::string(name) + ": expected " + std::to_string(expected) +
                                " factors, found " + std::to_string(found.size()));
        }
        check_values(name, found);
    };
    check_table("efficiency", even.efficiency.size(), n.efficiency);
    check_table("transaxial", n.classes ? n.classes->transaxial_count() : even.transaxial.size(),
                n.transaxial);
    check_table("axial", n.classes ? n.classes->axial_count() : even.axial.size(), n.axial);
    const auto alive = [](float efficiency) { return efficiency > 0; };
    if (std::none_of(n.efficiency.begin(), n.efficiency.end(), alive))
        throw config::Error("efficiency: expected some above 0, found none");
    if (g.is_ring()) check_rings(g, n);
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
    Normalisation n;
    n.efficiency.assign(g.crystal_count(), 1);
    if (!g.is_ring()) return n;
    const std::size_t columns = g.crystals_per_module_y();
    n.transaxial.assign((g.modules_in_ring() / 2 + 1) * columns * columns, 1);
    n.axial.assign(std::size_t{g.rings()} * g.rings(), 1);
    return n;
}

Normalisation load(const std::filesystem::path& file, const config::Geometry& geometry) {
    Normalisation n;
    config::read_hdf5_file(file, [&](hid_t h5) {
        config::read_table(h5, efficiency_table(geometry), n.efficiency);
        if (!geometry.is_ring()) n.classes = load_classes(h5, geometry);
        if (const auto tables = factor_tables(geometry, n.classes.get())) {
            config::read_table(h5, tables->transaxial, n.transaxial);
            config::read_table(h5, tables->axial, n.axial);
        }
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
        auto efficiency = config::write_table(h5, efficiency_table(geometry), H5T_IEEE_F32LE,
                                              n.efficiency.data(), "detection efficiency, mean 1; 0: dead");
        config::require_written(efficiency.close());
        if (const auto tables = factor_tables(geometry, n.classes.get())) {
            auto transaxial =
                config::write_table(h5, tables->transaxial, H5T_IEEE_F32LE, n.transaxial.data(),
                                    n.classes ? "factor by class of modules and columns in the modules"
                                              : "factor by modules apart and columns in the modules");
            auto axial = config::write_table(
                h5, tables->axial, H5T_IEEE_F32LE, n.axial.data(),
                n.classes ? "factor by class of modules and rows in the modules" : "factor by pair of rings");
            config::require_written(transaxial.close() && axial.close());
        }
        if (n.classes) save_classes(h5, geometry, *n.classes);
        if (n.activity_factor) {
            config::write_attribute(h5, activity_factor_name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE,
                                    &*n.activity_factor);
        }
        config::write_texts(h5, n.origin);
    });
}

}  // namespace petacq::normalisation
