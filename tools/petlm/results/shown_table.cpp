#include "tools/petlm/results/shown_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "config/base/decimals.hpp"

namespace petacq::results {

namespace {

constexpr std::string_view error_suffix = "_error";

constexpr double most_exact = 1e15;  // whole numbers up to here are shown with all digits
constexpr int most_decimals = 6;

std::string plain_text(double value) {
    if (value == 0) return "0";  // also of -0
    const bool whole = std::abs(value) < most_exact && value == std::round(value);
    if (whole || (std::abs(value) >= 1e5 && std::abs(value) < most_exact))
        return fmt::format("{:.0f}", value);
    return fmt::format("{:.5g}", value);
}

/// With that many decimals, and without the sign of a zero.
std::string rounded_text(double value, int decimals) {
    return config::without_minus_zero(fmt::format("{:.{}f}", value, decimals));
}

/// "concentration (kBq/ml)" of concentration_kBq_per_ml
std::string shown_name(std::string name) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 9> units{{{"_kBq_per_ml", "kBq/ml"},
                                                                                  {"_per_s", "1/s"},
                                                                                  {"_keV", "keV"},
                                                                                  {"_MBq", "MBq"},
                                                                                  {"_mm", "mm"},
                                                                                  {"_ns", "ns"},
                                                                                  {"_ps", "ps"},
                                                                                  {"_percent", "%"},
                                                                                  {"_s", "s"}}};
    if (name == "percent_std") return "standard deviation (%)";
    if (name == "cps_per_Bq") return "sensitivity (cps/Bq)";
    std::string unit;
    for (const auto& [suffix, text] : units) {
        if (!name.ends_with(suffix)) continue;
        unit = fmt::format(" ({})", text);
        name.resize(name.size() - suffix.size());
        break;
    }
    std::replace(name.begin(), name.end(), '_', ' ');
    return name + unit;
}

bool belongs_to(const std::string& error, const std::string& column) {
    return error.size() == column.size() + error_suffix.size() && error.starts_with(column) &&
           error.ends_with(error_suffix);
}

}  // namespace

std::string measured_text(double value, double error) {
    if (std::isnan(value)) return "unknown";
    if (!std::isfinite(error) || !(error > 0)) {
        const std::string text = plain_text(value);
        return error == 0 ? text + " ± 0" : text;
    }
    const int decimals = std::max(0, 1 - static_cast<int>(std::floor(std::log10(error))));
    if (decimals > most_decimals) return fmt::format("{:.5g} ± {:.2g}", value, error);
    return rounded_text(value, decimals) + " ± " + rounded_text(error, decimals);
}

ShownTable shown_table(const ResultTable& table) {
    ShownTable shown;
    shown.rows.resize(table.rows.size());
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
        const bool has_error =
            i + 1 < table.columns.size() && belongs_to(table.columns[i + 1], table.columns[i]);
        shown.columns.push_back(shown_name(table.columns[i]));
        bool numbers = false;
        for (std::size_t r = 0; r < table.rows.size(); ++r) {
            const Cell& cell = table.rows[r][i];
            if (const auto* const text = std::get_if<std::string>(&cell)) {
                shown.rows[r].push_back(*text);
                continue;
            }
            numbers = true;
            const double value = std::get<double>(cell);
            const auto* const error = has_error ? std::get_if<double>(&table.rows[r][i + 1]) : nullptr;
            shown.rows[r].push_back(
                std::isnan(value) ? "" : measured_text(value, error != nullptr ? *error : unknown));
        }
        shown.numbers.push_back(numbers);
        if (has_error) ++i;
    }
    return shown;
}

std::size_t columns_of(const std::string& text) {
    return static_cast<std::size_t>(std::count_if(
        text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace petacq::results
