#include "tools/petlm/export/petsird/efficiencies.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numbers>

#include "tools/petlm/export/petsird/pair_groups.hpp"

namespace petacq::petsird {
namespace {

/// In the one table of a file without factors of pairs, whose numbers are all 1.
constexpr std::size_t most_ones = std::size_t{1} << 25U;

/// A table of efficiencies by detection bins of two modules.
using Table = std::vector<float>;

/// Writes the efficiencies of one file.
class EfficiencyWriter {
  public:
    EfficiencyWriter(Coded& out, const EfficiencySource& source, const Bins& bins, Version version)
        : out_(out), source_(source), bins_(bins), old_(version == Version::v0_9_1) {
        if (source.normalised != nullptr) {
            relative_ = source.normalised->file();
            std::fill(relative_.efficiency.begin(), relative_.efficiency.end(), 1.0F);
            of_normalisation_ = count_numbers() <= most_pair_efficiencies;
        }
        std::size_t modules = 0;
        std::size_t all_bins = 0;
        for (const ModuleType& type : bins.types) {
            modules += type.modules();
            all_bins += type.elements() * bins.energies();
        }
        const bool few = source.scanner.is_ring() || modules * modules <= most_ones;
        has_groups_ = of_normalisation_ || (few && all_bins * all_bins <= most_ones);
    }

    void write(std::vector<std::string>& not_held) {
        say_what_is_missing(not_held);
        const bool normalised = source_.normalised != nullptr;
        double calibration = 1;
        if (normalised && source_.normalised->file().activity_factor)
            calibration = 1 / *source_.normalised->file().activity_factor;
        out_.text(method()).f32(calibration);
        const bool of_bins = !old_ || normalised || bins_.gamma_energy;
        if (old_) out_.flag(of_bins);
        if (of_bins) put_bins();
        // The functions of 0.12 fail where a table is left out.
        const bool may_be_left_out =
            old_ && source_.scanner.is_ring() && source_.min_module_difference == 0 && !normalised;
        if (!has_groups_ || may_be_left_out) {
            out_.number(0).number(0);
            return;
        }
        if (old_) out_.flag(true);
        for_all_types([&](std::size_t a, std::size_t b) { put_groups(groups(a, b), a == b); });
        if (old_) out_.flag(true);
        for_all_types([&](std::size_t a, std::size_t b) { put_tables(a, b); });
    }

  private:
    [[nodiscard]] PairGroups groups(std::size_t a, std::size_t b) const {
        return of_normalisation_ ? alike_pairs(source_, bins_.types[a], bins_.types[b])
                                 : good_pairs(source_, bins_.types[a], bins_.types[b]);
    }
    [[nodiscard]] std::size_t count_numbers() const {
        std::size_t numbers = 0;
        for (std::size_t a = 0; a < bins_.types.size(); ++a) {
            for (std::size_t b = 0; b <= a; ++b) {
                const std::size_t each = bins_.types[a].elements() * bins_.types[b].elements() *
                                         bins_.energies() * bins_.energies();
                numbers += alike_pairs(source_, bins_.types[a], bins_.types[b]).first_pair.size() * each;
                if (numbers > most_pair_efficiencies) return numbers;
            }
        }
        return numbers;
    }
    void say_what_is_missing(std::vector<std::string>& not_held) const {
        if (source_.normalised != nullptr && !of_normalisation_) {
            not_held.push_back(fmt::format(
                "efficiencies by pairs of modules (solid angle, transaxial and axial factors): all 1; "
                "they need more than {} numbers",
                most_pair_efficiencies));
        }
        if (has_groups_) return;
        std::size_t largest = 0;
        for (const ModuleType& type : bins_.types)
            largest = std::max(largest, type.elements() * bins_.energies());
        const std::string which = source_.scanner.is_ring()
                                      ? fmt::format("min_module_difference {}", source_.min_module_difference)
                                      : "which modules pair";
        not_held.push_back(
            fmt::format("{}, and all that the function get_detection_efficiency of the package needs: a "
                        "module has {} bins",
                        which, largest));
    }
    /// Names the corrections that are in the efficiencies, and those that are not.
    [[nodiscard]] std::string method() const {
        if (source_.normalised == nullptr) return "none: all equal";
        const normalisation::Normalisation& file = source_.normalised->file();
        const std::string calibrated =
            file.activity_factor ? fmt::format("calibration: activity factor {:.6g}", *file.activity_factor)
                                 : "calibration: none";
        const std::string of_pairs = "transaxial and axial factors, solid angle";
        return fmt::format(
            "normalisation: {} (SHA-256 {}); {}; not in them: {}attenuation, scatter, randoms, dead time, "
            "decay",
            of_normalisation_ ? "efficiencies of crystals, " + of_pairs : "efficiencies of crystals",
            file.sha256, calibrated, of_normalisation_ ? "" : of_pairs + ", ");
    }
    /// Of every detection bin; 0 for energies that photons of pairs do not have.
    void put_bins() {
        out_.number(bins_.type_count());
        for (const ModuleType& type : bins_.types) {
            out_.number(type.crystals.size() * bins_.energies());
            for (const std::uint32_t crystal : type.crystals) {
                const float efficiency =
                    source_.normalised == nullptr ? 1.0F : source_.normalised->file().efficiency[crystal];
                for (std::uint32_t energy = 0; energy < bins_.energies(); ++energy)
                    out_.f32(energy - bins_.pair_energies.first < bins_.pair_energies.count ? efficiency : 0);
            }
        }
    }
    /// A value for each pair of types: of which the first is not the lower one, in 0.9.1 of all.
    template <class Put>
    void for_all_types(const Put& put) {
        const std::size_t types = bins_.types.size();
        out_.number(types);
        for (std::size_t a = 0; a < types; ++a) {
            const std::size_t row = old_ ? types : a + 1;
            out_.number(row);
            for (std::size_t b = 0; b < row; ++b)
                put(a, b);
        }
    }
    void put_groups(const PairGroups& groups, bool same_type) {
        const std::size_t rows = groups.group.size() / groups.columns;
        out_.number(rows);
        if (old_) out_.number(groups.columns);
        for (std::size_t row = 0; row < rows; ++row) {
            const std::size_t columns = old_ || !same_type ? groups.columns : row + 1;
            if (!old_) out_.number(columns);
            for (std::size_t column = 0; column < columns; ++column)
                out_.integer(groups.group[row * groups.columns + column]);
        }
    }
    void put_tables(std::size_t a, std::size_t b) {
        const std::size_t rows = bins_.types[a].elements() * bins_.energies();
        const std::size_t columns = bins_.types[b].elements() * bins_.energies();
        const PairGroups of = groups(a, b);
        const std::size_t count = of_normalisation_ ? of.first_pair.size() : 1;
        out_.number(count);
        for (std::size_t group = 0; group < count; ++group) {
            const Table table =
                of_normalisation_ ? table_of(a, b, of.first_pair[group]) : Table(rows * columns, 1.0F);
            out_.number(rows);
            if (old_) out_.number(columns);
            for (std::size_t row = 0; row < rows; ++row) {
                if (!old_) out_.number(columns);
                out_.f32s(std::span(table).subspan(row * columns, columns));
            }
            if (old_) {
                out_.number(group);
            } else {
                out_.integer(static_cast<std::int64_t>(group));
            }
        }
    }
    /// For the integral of positrons per mm^3 over mm.
    [[nodiscard]] Table table_of(std::size_t of_a, std::size_t of_b, std::size_t pair) const {
        const ModuleType& a = bins_.types[of_a];
        const ModuleType& b = bins_.types[of_b];
        const std::uint32_t energies = bins_.energies();
        const double scale = source_.normalised->face_squared() / (2 * std::numbers::pi);
        const std::size_t columns = b.elements() * energies;
        Table table(a.elements() * energies * columns);
        for (std::size_t i = 0; i < a.elements(); ++i) {
            for (std::size_t j = 0; j < b.elements(); ++j) {
                const std::uint32_t crystal_a = a.crystal(pair / b.modules(), i);
                const std::uint32_t crystal_b = b.crystal(pair % b.modules(), j);
                if (crystal_a == crystal_b) continue;
                const double value =
                    source_.normalised->solid_angle(crystal_a, crystal_b, scale) *
                    normalisation::factor_of(source_.scanner.geometry, relative_, crystal_a, crystal_b);
                for (std::size_t row = i * energies; row < (i + 1) * energies; ++row)
                    std::fill_n(table.begin() + static_cast<std::ptrdiff_t>(row * columns + j * energies),
                                energies, static_cast<float>(value));
            }
        }
        return table;
    }

    Coded& out_;
    const EfficiencySource& source_;
    const Bins& bins_;
    bool old_;
    normalisation::Normalisation relative_;  ///< without the efficiencies of crystals
    bool of_normalisation_ = false;          ///< the groups have its factors; otherwise all are 1
    bool has_groups_ = false;
};

}  // namespace

void put_efficiencies(Coded& out, const EfficiencySource& source, const Bins& bins, Version version,
                      std::vector<std::string>& not_held) {
    EfficiencyWriter(out, source, bins, version).write(not_held);
}

}  // namespace petacq::petsird
