#include "tools/normalisation/pair_classes.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "config/base/error.hpp"
#include "tools/normalisation/symmetry.hpp"

namespace petacq::normalisation {

namespace {

constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

/// The columns, or rows, of a type of module, one layer after the other.
struct TypePlaces {
    std::vector<std::uint16_t> first;     ///< [layer]
    std::vector<std::uint16_t> mirrored;  ///< [place]

    template <class CountOf>
    TypePlaces(const config::ModuleType& type, CountOf count_of) {
        for (const config::CrystalLayer& layer : type.layers) {
            const std::size_t start = mirrored.size();
            const std::size_t count = count_of(layer);
            first.push_back(static_cast<std::uint16_t>(start));
            for (std::size_t i = 0; i < count; ++i)
                mirrored.push_back(static_cast<std::uint16_t>(start + count - 1 - i));
        }
    }
};

void place_crystals(const config::Arrangement& arrangement, PairClasses& out) {
    std::vector<TypePlaces> columns;
    std::vector<TypePlaces> rows;
    for (const config::ModuleType& type : arrangement.types()) {
        columns.emplace_back(type, [](const config::CrystalLayer& l) { return l.y.count(); });
        rows.emplace_back(type, [](const config::CrystalLayer& l) { return l.z.count(); });
    }
    for (const config::Module& m : arrangement.modules()) {
        out.columns.push_back(static_cast<std::uint16_t>(columns[m.type].mirrored.size()));
        out.rows.push_back(static_cast<std::uint16_t>(rows[m.type].mirrored.size()));
    }
    for (std::uint32_t crystal = 0; crystal < arrangement.crystal_count(); ++crystal) {
        const config::CrystalAddress at = arrangement.address(crystal);
        const std::uint32_t type = arrangement.modules()[at.module].type;
        const std::uint32_t column = columns[type].first[at.layer] + at.column;
        const std::uint32_t row = rows[type].first[at.layer] + at.row;
        out.module.push_back(at.module);
        out.column.push_back(static_cast<std::uint16_t>(column));
        out.mirrored_column.push_back(columns[type].mirrored[column]);
        out.row.push_back(static_cast<std::uint16_t>(row));
        out.mirrored_row.push_back(rows[type].mirrored[row]);
    }
}

/// Each symmetry takes the first pair of a class to another one, which then belongs to it.
void class_pairs(const std::vector<Symmetry>& symmetries, PairClasses& out) {
    const auto modules = static_cast<std::uint32_t>(out.columns.size());
    out.pair_class.assign(std::size_t{modules} * modules, none);
    out.pair_turn.assign(out.pair_class.size(), 0);
    const auto add = [&](std::uint32_t a, std::uint32_t b, std::uint8_t turn) {
        const std::size_t at = std::size_t{a} * modules + b;
        if (out.pair_class[at] != none) return;
        out.pair_class[at] = static_cast<std::uint32_t>(out.class_a.size() - 1);
        out.pair_turn[at] = turn;
    };
    for (std::uint32_t a = 0; a < modules; ++a) {
        for (std::uint32_t b = a; b < modules; ++b) {
            if (out.pair_class[std::size_t{a} * modules + b] != none) continue;
            out.class_a.push_back(a);
            out.class_b.push_back(b);
            for (const Symmetry& s : symmetries) {
                const auto turn = [](const ModuleImage& one, const ModuleImage& other) {
                    return (one.reversed_y ? PairClasses::a_columns : 0) |
                           (one.reversed_z ? PairClasses::a_rows : 0) |
                           (other.reversed_y ? PairClasses::b_columns : 0) |
                           (other.reversed_z ? PairClasses::b_rows : 0);
                };
                add(s[a].module, s[b].module, static_cast<std::uint8_t>(turn(s[a], s[b])));
                add(s[b].module, s[a].module,
                    static_cast<std::uint8_t>(turn(s[b], s[a]) | PairClasses::swapped));
            }
        }
    }
}

/// Sets of numbers that are the same, each named by its least.
class SameNumbers {
  public:
    explicit SameNumbers(std::size_t count) : first_(count) { std::iota(first_.begin(), first_.end(), 0U); }
    void join(std::size_t a, std::size_t b) {
        const std::uint32_t of_a = root(a);
        const std::uint32_t of_b = root(b);
        first_[std::max(of_a, of_b)] = std::min(of_a, of_b);
    }
    [[nodiscard]] std::vector<std::uint32_t> first() {
        for (std::size_t i = 0; i < first_.size(); ++i)
            first_[i] = root(i);
        return std::move(first_);
    }

  private:
    std::uint32_t root(std::size_t i) {
        auto at = static_cast<std::uint32_t>(i);
        while (first_[at] != at)
            at = first_[at] = first_[first_[at]];
        return at;
    }
    std::vector<std::uint32_t> first_;
};

/// A pair of modules that a symmetry maps on itself, perhaps in the other order.
struct OwnImage {
    bool swapped = false;
    bool reversed_a = false;
    bool reversed_b = false;
};

void join_places(const OwnImage& image, std::size_t start, const std::vector<std::uint16_t>& mirrored_a,
                 const std::vector<std::uint16_t>& mirrored_b, SameNumbers& same) {
    const std::size_t count_b = mirrored_b.size();
    for (std::size_t a = 0; a < mirrored_a.size(); ++a) {
        for (std::size_t b = 0; b < count_b; ++b) {
            const std::size_t to_a = image.reversed_a ? mirrored_a[a] : a;
            const std::size_t to_b = image.reversed_b ? mirrored_b[b] : b;
            // Swapped modules are of one type.
            same.join(start + a * count_b + b,
                      start + (image.swapped ? to_b * count_b + to_a : to_a * count_b + to_b));
        }
    }
}

void find_same(const config::Arrangement& arrangement, const std::vector<Symmetry>& symmetries,
               ScannerClasses& out) {
    const PairClasses& c = out.classes;
    SameNumbers columns(c.transaxial_count());
    SameNumbers rows(c.axial_count());
    std::vector<TypePlaces> columns_of;
    std::vector<TypePlaces> rows_of;
    for (const config::ModuleType& type : arrangement.types()) {
        columns_of.emplace_back(type, [](const config::CrystalLayer& l) { return l.y.count(); });
        rows_of.emplace_back(type, [](const config::CrystalLayer& l) { return l.z.count(); });
    }
    for (std::size_t k = 0; k < c.class_a.size(); ++k) {
        const std::uint32_t a = c.class_a[k];
        const std::uint32_t b = c.class_b[k];
        const std::uint32_t type_a = arrangement.modules()[a].type;
        const std::uint32_t type_b = arrangement.modules()[b].type;
        for (const Symmetry& s : symmetries) {
            for (const bool swapped : {false, true}) {
                const std::uint32_t to_a = swapped ? s[b].module : s[a].module;
                const std::uint32_t to_b = swapped ? s[a].module : s[b].module;
                if (to_a != a || to_b != b) continue;
                join_places({swapped, s[a].reversed_y, s[b].reversed_y}, c.transaxial_start[k],
                            columns_of[type_a].mirrored, columns_of[type_b].mirrored, columns);
                join_places({swapped, s[a].reversed_z, s[b].reversed_z}, c.axial_start[k],
                            rows_of[type_a].mirrored, rows_of[type_b].mirrored, rows);
            }
        }
    }
    out.same_transaxial = columns.first();
    out.same_axial = rows.first();
}

void require(bool good, const char* table, const std::string& expected) {
    if (!good) throw config::Error(std::string(table) + ": expected " + expected);
}

template <class T>
void require_below(const char* table, const std::vector<T>& values, std::size_t end) {
    for (const T value : values)
        require(value < end, table,
                "numbers below " + std::to_string(end) + ", found " + std::to_string(value));
}

}  // namespace

void PairClasses::index() {
    const std::size_t modules = columns.size();
    const std::size_t crystals = module.size();
    require(rows.size() == modules, "rows", "those of " + std::to_string(modules) + " modules");
    require(pair_class.size() == modules * modules && pair_turn.size() == modules * modules, "pair_class",
            "the pairs of " + std::to_string(modules) + " modules");
    require(class_b.size() == class_a.size() && !class_a.empty(), "class_b", "as many as in class_a");
    require_below("module", module, modules);
    require_below("class_a", class_a, modules);
    require_below("class_b", class_b, modules);
    require_below("pair_class", pair_class, class_a.size());
    require_below("pair_turn", pair_turn, 32);
    for (const auto* places : {&column, &mirrored_column, &row, &mirrored_row})
        require(places->size() == crystals, "column", "those of all crystals, as of rows");
    for (std::size_t i = 0; i < crystals; ++i) {
        const std::uint32_t m = module[i];
        require(column[i] < columns[m] && mirrored_column[i] < columns[m], "column",
                "less than the columns of the module");
        require(row[i] < rows[m] && mirrored_row[i] < rows[m], "row", "less than the rows of the module");
    }
    for (std::size_t a = 0; a < modules; ++a) {
        for (std::size_t b = 0; b < modules; ++b) {
            const std::size_t at = a * modules + b;
            require(pair_class[at] == pair_class[b * modules + a], "pair_class", "the same in either order");
            const bool is_swapped = (pair_turn[at] & swapped) != 0;
            const std::uint32_t like_a = is_swapped ? class_b[pair_class[at]] : class_a[pair_class[at]];
            const std::uint32_t like_b = is_swapped ? class_a[pair_class[at]] : class_b[pair_class[at]];
            require(columns[a] == columns[like_a] && rows[a] == rows[like_a] &&
                        columns[b] == columns[like_b] && rows[b] == rows[like_b],
                    "pair_class", "modules with as many columns and rows as those of their class");
        }
    }
    transaxial_start.assign(1, 0);
    axial_start.assign(1, 0);
    for (std::size_t k = 0; k < class_a.size(); ++k) {
        transaxial_start.push_back(transaxial_start.back() +
                                   std::size_t{columns[class_a[k]]} * columns[class_b[k]]);
        axial_start.push_back(axial_start.back() + std::size_t{rows[class_a[k]]} * rows[class_b[k]]);
    }
}

std::optional<ScannerClasses> classes_of(const config::Arrangement& arrangement) {
    ScannerClasses out;
    const std::vector<Symmetry> symmetries = symmetries_of(arrangement);
    if (symmetries.empty()) return std::nullopt;
    out.symmetries = symmetries.size();
    for (const Symmetry& s : symmetries) {
        for (const ModuleImage& image : s) {
            out.reverses_columns = out.reverses_columns || image.reversed_y;
            out.reverses_rows = out.reverses_rows || image.reversed_z;
        }
    }
    place_crystals(arrangement, out.classes);
    class_pairs(symmetries, out.classes);
    out.classes.index();
    if (out.classes.transaxial_count() > max_factors || out.classes.axial_count() > max_factors)
        return std::nullopt;
    find_same(arrangement, symmetries, out);
    return out;
}

}  // namespace petacq::normalisation
