#include "tools/petlm/import/csv_columns.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>

#include "tools/petlm/base/status.hpp"
#include "tools/petlm/import/line_reader.hpp"

namespace petacq::petlm {
namespace {

enum class Quantity { time, energy, none };

struct CsvField {
    const char* name;
    Quantity quantity;
    std::optional<CsvColumn> CsvColumns::*column;
};

constexpr std::array<CsvField, 11> csv_fields = {{{"time", Quantity::time, &CsvColumns::time},
                                                  {"crystal", Quantity::none, &CsvColumns::crystal},
                                                  {"energy", Quantity::energy, &CsvColumns::energy},
                                                  {"time_a", Quantity::time, &CsvColumns::time},
                                                  {"time_b", Quantity::time, &CsvColumns::time_b},
                                                  {"dt", Quantity::time, &CsvColumns::dt},
                                                  {"crystal_a", Quantity::none, &CsvColumns::crystal_a},
                                                  {"crystal_b", Quantity::none, &CsvColumns::crystal_b},
                                                  {"energy_a", Quantity::energy, &CsvColumns::energy_a},
                                                  {"energy_b", Quantity::energy, &CsvColumns::energy_b},
                                                  {"kind", Quantity::none, &CsvColumns::pair_kind}}};

const std::map<std::string_view, std::optional<config::TimeUnit>> time_units = {
    {"ticks", std::nullopt},      {"ps", config::TimeUnit::ps}, {"ns", config::TimeUnit::ns},
    {"us", config::TimeUnit::us}, {"ms", config::TimeUnit::ms}, {"s", config::TimeUnit::s}};
const std::map<std::string_view, double> energy_units = {{"eV", 1e-3}, {"keV", 1}, {"MeV", 1e3}};

[[noreturn]] void refuse(const std::string& what) {
    throw UsageError("--columns: " + what);
}

const CsvField& field_named(std::string_view name) {
    for (const CsvField& field : csv_fields)
        if (name == field.name) return field;
    std::vector<std::string_view> names;
    for (const CsvField& field : csv_fields)
        names.emplace_back(field.name);
    refuse(fmt::format("field '{}': expected one of {}", name, fmt::join(names, ", ")));
}

/// Takes the unit from the end of the name of a column.
void take_unit(const CsvField& field, std::string_view& name, CsvColumn& column) {
    const std::size_t colon = name.rfind(':');
    if (colon == std::string_view::npos || field.quantity == Quantity::none) return;
    const std::string_view unit = name.substr(colon + 1);
    if (field.quantity == Quantity::time) {
        const auto found = time_units.find(unit);
        if (found == time_units.end())
            refuse(fmt::format("unit '{}' of {}: expected ticks, ps, ns, us, ms or s", unit, field.name));
        column.time = found->second;
    } else {
        const auto found = energy_units.find(unit);
        if (found == energy_units.end())
            refuse(fmt::format("unit '{}' of {}: expected eV, keV or MeV", unit, field.name));
        column.keV = found->second;
    }
    name = name.substr(0, colon);
}

CsvColumn column_of(const CsvField& field, std::string_view name, const std::vector<std::string_view>& names,
                    bool& numbered) {
    CsvColumn column;
    take_unit(field, name, column);
    if (name.starts_with('#')) {
        const auto number = number_from<std::size_t>(name.substr(1));
        if (!number || *number == 0 || *number > names.size()) {
            refuse(fmt::format("column {} of {}: expected #1 to #{}, the columns of the file", name,
                               field.name, names.size()));
        }
        numbered = true;
        column.at = *number - 1;
        return column;
    }
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
        refuse(fmt::format(
            "column '{}' of {}: expected one of {}, or #N for the N-th column of a file without names", name,
            field.name, fmt::join(names, ", ")));
    }
    if (std::find(found + 1, names.end(), name) != names.end()) {
        refuse(fmt::format("column '{}' of {}: the file has two of that name; expected different names", name,
                           field.name));
    }
    column.at = static_cast<std::size_t>(found - names.begin());
    return column;
}

void check(const CsvColumns& c) {
    const bool pairs = c.kind == daemon::RecordKind::coincidences;
    const bool mixed = pairs && (c.crystal || c.energy);
    if (mixed || (!pairs && (c.time_b || c.dt || c.energy_a || c.energy_b || c.pair_kind))) {
        refuse(
            "expected the fields of singles (time, crystal, energy) or those of pairs (time, time_b or dt, "
            "crystal_a, crystal_b, energy_a, energy_b, kind)");
    }
    if (!c.time) refuse("expected time=COLUMN");
    if (!pairs && !c.crystal) refuse("expected crystal=COLUMN, or crystal_a and crystal_b of pairs");
    if (pairs && !(c.crystal_a && c.crystal_b)) refuse("expected both crystal_a and crystal_b");
    if (pairs && c.energy_a.has_value() != c.energy_b.has_value())
        refuse("expected both energy_a and energy_b, or neither");
    if (c.dt && c.time_b) refuse("expected dt or time_b, found both");
}

}  // namespace

CsvColumns csv_columns(const std::string& declared, std::vector<std::string_view> names) {
    // numpy.savetxt writes its line of names as a comment.
    const bool comment = names.front().starts_with('#');
    if (comment) {
        names.front().remove_prefix(1);
        while (names.front().starts_with(' '))
            names.front().remove_prefix(1);
    }
    CsvColumns columns;
    std::size_t numbered = 0;
    std::size_t count = 0;
    std::string_view left = declared;
    while (true) {
        const std::string_view part = left.substr(0, left.find(','));
        const std::size_t equals = part.find('=');
        if (equals == std::string_view::npos)
            refuse(fmt::format("'{}': expected FIELD=COLUMN, or FIELD=COLUMN:UNIT", part));
        const CsvField& field = field_named(part.substr(0, equals));
        auto& column = columns.*field.column;
        if (column) refuse(fmt::format("{} twice; expected each field once", field.name));
        bool by_number = false;
        column = column_of(field, part.substr(equals + 1), names, by_number);
        numbered += by_number ? 1 : 0;
        ++count;
        if (part.size() == left.size()) break;
        left.remove_prefix(part.size() + 1);
    }
    if (numbered != 0 && numbered != count) refuse("expected names of all columns, or #N of all");
    columns.has_names = comment || numbered == 0;
    if (columns.crystal_a || columns.crystal_b) columns.kind = daemon::RecordKind::coincidences;
    check(columns);
    return columns;
}

}  // namespace petacq::petlm
