// The columns of a table of other software.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/base/ticks.hpp"
#include "daemon/listmode/format.hpp"

namespace petacq::petlm {

/// Where a field of the records is in a line, and in what unit.
struct CsvColumn {
    std::size_t at = 0;
    std::optional<config::TimeUnit> time{};  ///< of times; absent: ticks
    double keV = 1;  // NOLINT(readability-identifier-naming): of energies, in one unit
};

/// What `--columns` says: FIELD=NAME[:UNIT],... NAME is that in the first line of the file, or #N for the
/// N-th column of a file without such a line.
struct CsvColumns {
    daemon::RecordKind kind = daemon::RecordKind::singles;
    bool has_names = true;  ///< the first line of the file has names
    // Of singles: time, crystal, energy. Of pairs: the rest.
    std::optional<CsvColumn> time;
    std::optional<CsvColumn> crystal;
    std::optional<CsvColumn> energy;
    std::optional<CsvColumn> time_b;
    std::optional<CsvColumn> dt;
    std::optional<CsvColumn> crystal_a;
    std::optional<CsvColumn> crystal_b;
    std::optional<CsvColumn> energy_a;
    std::optional<CsvColumn> energy_b;
    std::optional<CsvColumn> pair_kind;
};

/// `names`: the parts of the first line, which may begin with a "#". Throws UsageError.
CsvColumns csv_columns(const std::string& declared, std::vector<std::string_view> names);

}  // namespace petacq::petlm
