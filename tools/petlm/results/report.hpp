// What a command measured, and how it is printed and written: the same for all commands that measure.
#pragma once

#include <cstddef>
#include <filesystem>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <variant>
#include <vector>

namespace petacq::results {

inline constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

/// A result. The error is one standard deviation from the statistics of the counts; NaN: unknown.
struct Figure {
    std::string key;   ///< in the JSON
    std::string name;  ///< for people
    double value = unknown;
    double error = unknown;
    std::string unit;
};

/// NaN is written as an empty cell.
using Cell = std::variant<double, std::string>;
struct ResultTable {
    std::string name;  ///< stem of the CSV file
    std::string title;
    std::vector<std::string>
        columns;  ///< with the unit at the end; one that ends in _error belongs to the one before
    std::vector<std::vector<Cell>> rows;
};

/// Curves, or a map.
struct Chart {
    struct Curve {
        std::string name;
        std::vector<double> x;  ///< ascending
        std::vector<double> y;
    };
    struct Map {
        std::size_t rows = 0;
        std::size_t columns = 0;
        std::vector<double> values;  ///< from the bottom to the top
    };
    std::string name;  ///< stem of the PNG file
    std::string title;
    std::string x_title;
    std::string y_title;
    std::vector<Curve> curves = {};  ///< at most 4
    Map map = {};                    ///< shown if it has rows
    double x_from = 0;               ///< of a map
    double x_to = 0;
    double y_from = 0;
    double y_to = 0;
    std::vector<double> marks = {};  ///< vertical lines
    std::string value_title = {};    ///< of a map
};

struct Report {
    std::string command;  ///< "sensitivity"
    std::string title;
    std::string standard = {};                 ///< by which it was measured; "": none
    std::vector<std::string> inputs = {};      ///< runs or images, and what is known of them
    std::vector<std::string> procedure = {};   ///< sentences
    std::vector<std::string> deviations = {};  ///< from the standard, sentences
    std::vector<std::string> warnings = {};    ///< sentences
    std::vector<Figure> figures = {};          ///< as the standard, if there is one, defines them
    std::vector<Figure> beside = {};  ///< of the same quantities, without a weakness of the standard's rule
    std::vector<ResultTable> tables = {};
    std::vector<Chart> charts = {};
};

/// Throws petlm::UsageError before anything is read, when the directory has results already and they are not
/// to be replaced.
void check_output(const std::filesystem::path& directory, bool force);

/// Prints figures, tables, deviations and warnings on standard output, or with `as_json` what results.json
/// holds, and writes to the directory: a CSV file for each table, results.json, report.html and, if the
/// program was built with cairo, a PNG file for each chart. Without cairo it says so. Throws UsageError for
/// existing files without `force`, std::system_error.
void publish(const Report& report, const std::filesystem::path& directory, bool force, bool as_json);

/// "1.2340 ± 0.0050 mm"
std::string text_of(const Figure& figure);
nlohmann::ordered_json json_of(const Report& report);
std::string html_of(const Report& found);

}  // namespace petacq::results
