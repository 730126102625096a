// Results as people read them: no more digits than the error leaves, names with blanks and units.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tools/petlm/results/report.hpp"

namespace petacq::results {

/// "1.2340 ± 0.0050": the error has two digits, the value as many decimals; five digits of a value without an
/// error, and all of a whole number. "unknown" for NaN.
std::string measured_text(double value, double error);

struct ShownTable {
    std::vector<std::string> columns;            ///< "activity (MBq)" of activity_MBq
    std::vector<std::vector<std::string>> rows;  ///< an error stands with its value
    std::vector<bool> numbers;                   ///< whether a column has numbers
};
ShownTable shown_table(const ResultTable& table);

/// Width of UTF-8 text in columns: one for each code point.
std::size_t columns_of(const std::string& text);

}  // namespace petacq::results
