// Which pairs of crystals of a scanner of the long form have the same geometric factors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "config/scanner/arrangement.hpp"

namespace petacq::normalisation {

/// Pairs of modules that a symmetry of the scanner maps on each other, in either order, are a class. The
/// factors of a pair of crystals are those of its class of modules and of the places of the crystals in
/// these: by their columns (transaxial), and by their rows (axial). docs/reference/normalisation-format.md
/// has the formula; these are the tables of the file.
struct PairClasses {
    std::vector<std::uint32_t> module;           ///< [crystal]
    std::vector<std::uint16_t> column;           ///< [crystal] across its module, one layer after the other
    std::vector<std::uint16_t> mirrored_column;  ///< [crystal] if its module is reversed
    std::vector<std::uint16_t> row;              ///< [crystal] the same along the module
    std::vector<std::uint16_t> mirrored_row;
    std::vector<std::uint16_t> columns;     ///< [module] how many it has
    std::vector<std::uint16_t> rows;        ///< [module]
    std::vector<std::uint32_t> pair_class;  ///< [module of a][module of b]
    std::vector<std::uint8_t> pair_turn;    ///< [module of a][module of b] Turn: how it lies in its class
    std::vector<std::uint32_t> class_a;     ///< [class] two modules of which it has the columns and rows
    std::vector<std::uint32_t> class_b;

    enum Turn : std::uint8_t { swapped = 1, a_columns = 2, a_rows = 4, b_columns = 8, b_rows = 16 };

    /// [class] where its factors begin, and the end of all. Follow from the tables above: index() makes them.
    std::vector<std::size_t> transaxial_start;
    std::vector<std::size_t> axial_start;

    struct Entries {
        std::size_t transaxial;
        std::size_t axial;
    };
    /// Of the factors of a pair.
    [[nodiscard]] Entries entries(std::uint32_t a, std::uint32_t b) const {
        const std::size_t pair = std::size_t{module[a]} * columns.size() + module[b];
        const std::uint8_t turn = pair_turn[pair];
        std::size_t column_a = (turn & a_columns) != 0 ? mirrored_column[a] : column[a];
        std::size_t column_b = (turn & b_columns) != 0 ? mirrored_column[b] : column[b];
        std::size_t row_a = (turn & a_rows) != 0 ? mirrored_row[a] : row[a];
        std::size_t row_b = (turn & b_rows) != 0 ? mirrored_row[b] : row[b];
        if ((turn & swapped) != 0) {
            std::swap(column_a, column_b);
            std::swap(row_a, row_b);
        }
        const std::uint32_t of = pair_class[pair];
        return {transaxial_start[of] + column_a * columns[class_b[of]] + column_b,
                axial_start[of] + row_a * rows[class_b[of]] + row_b};
    }
    [[nodiscard]] std::size_t transaxial_count() const { return transaxial_start.back(); }
    [[nodiscard]] std::size_t axial_count() const { return axial_start.back(); }
    /// Fills the starts. Throws config::Error, naming the table, for tables that do not belong together.
    void index();
    bool operator==(const PairClasses&) const = default;
};

/// Those of a scanner, and which of their factors are the same since a symmetry maps a pair of modules on
/// itself.
struct ScannerClasses {
    PairClasses classes;
    std::size_t symmetries = 0;
    bool reverses_columns = false;  ///< whether any of them reverses a module
    bool reverses_rows = false;
    std::vector<std::uint32_t> same_transaxial;  ///< [entry] the first of those that are the same
    std::vector<std::uint32_t> same_axial;
};

/// Absent for more than max_modules (symmetry.hpp), and where there would be more than max_factors.
std::optional<ScannerClasses> classes_of(const config::Arrangement& arrangement);

inline constexpr std::size_t max_factors = std::size_t{1} << 25;

}  // namespace petacq::normalisation
