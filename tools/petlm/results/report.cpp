#include "tools/petlm/results/report.hpp"

#include <fmt/format.h>

#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "config/base/answer.hpp"
#include "config/base/colour.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/records/output.hpp"
#include "tools/petlm/results/pictures.hpp"
#include "tools/petlm/results/shown_table.hpp"
#include "tools/report/cairo.hpp"
#include "tools/report/page.hpp"

namespace petacq::results {
namespace {

constexpr const char* beside_title = "beside the standard";

std::string number(double value) {
    return std::isnan(value) ? "" : fmt::format("{:.6g}", value);
}

std::string text_of(const Cell& cell) {
    const auto* const text = std::get_if<std::string>(&cell);
    return text != nullptr ? *text : number(std::get<double>(cell));
}

/// NaN, which JSON does not have, is null.
nlohmann::ordered_json json_of(double value) {
    return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}

nlohmann::ordered_json json_of(const std::vector<Figure>& figures) {
    nlohmann::ordered_json json = nlohmann::ordered_json::object();
    for (const Figure& figure : figures) {
        json[figure.key] = {
            {"value", json_of(figure.value)}, {"error", json_of(figure.error)}, {"unit", figure.unit}};
    }
    return json;
}

nlohmann::ordered_json json_of(const ResultTable& table) {
    nlohmann::ordered_json json = {{"columns", table.columns}, {"rows", nlohmann::ordered_json::array()}};
    for (const auto& row : table.rows) {
        nlohmann::ordered_json cells = nlohmann::ordered_json::array();
        for (const Cell& cell : row) {
            const auto* const text = std::get_if<std::string>(&cell);
            cells.push_back(text != nullptr ? nlohmann::ordered_json(*text)
                                            : json_of(std::get<double>(cell)));
        }
        json["rows"].push_back(std::move(cells));
    }
    return json;
}

std::string quoted_for_csv(const std::string& text) {
    if (text.find_first_of(",\"\n") == std::string::npos) return text;
    std::string out = "\"";
    for (const char c : text)
        out += c == '"' ? std::string("\"\"") : std::string(1, c);
    return out + '"';
}

std::string csv_of(const ResultTable& table) {
    std::string out;
    const auto line = [&](const auto& cells, const auto& text) {
        for (std::size_t i = 0; i < cells.size(); ++i)
            out += (i == 0 ? "" : ",") + quoted_for_csv(text(cells[i]));
        out += '\n';
    };
    line(table.columns, [](const std::string& name) { return name; });
    for (const auto& row : table.rows)
        line(row, [](const Cell& cell) { return text_of(cell); });
    return out;
}

/// With columns as wide as their widest cell.
std::string text_of(const ResultTable& table) {
    const ShownTable shown = shown_table(table);
    std::vector<std::size_t> widths;
    for (const auto& name : shown.columns)
        widths.push_back(columns_of(name));
    for (const auto& row : shown.rows) {
        for (std::size_t i = 0; i < row.size(); ++i)
            widths[i] = std::max(widths[i], columns_of(row[i]));
    }
    std::string out = table.title + '\n';
    const auto line = [&](const std::vector<std::string>& cells) {
        for (std::size_t i = 0; i < cells.size(); ++i)
            out += "  " + std::string(widths[i] - columns_of(cells[i]), ' ') + cells[i];
        out += '\n';
    };
    line(shown.columns);
    for (const auto& row : shown.rows)
        line(row);
    return out;
}

std::string list_of(const char* title, const std::vector<std::string>& sentences) {
    if (sentences.empty()) return "";
    std::string out = fmt::format("<h2>{}</h2>\n<ul>\n", title);
    for (const auto& sentence : sentences)
        out += "<li>" + report::escaped(sentence) + "</li>\n";
    return out + "</ul>\n";
}

std::string html_of(const std::string& title, const std::vector<Figure>& figures) {
    report::Table shown{{}, {title, "value"}, {}};
    for (const Figure& figure : figures)
        shown.rows.push_back({{figure.name}, {text_of(figure), true}});
    return report::html_of(shown);
}

std::string html_of(const ResultTable& table) {
    const ShownTable texts = shown_table(table);
    report::Table shown{{}, texts.columns, {}};
    for (const auto& row : texts.rows) {
        auto& cells = shown.rows.emplace_back();
        for (std::size_t i = 0; i < row.size(); ++i)
            cells.push_back({row[i], texts.numbers[i]});
    }
    return fmt::format("<h2>{0}</h2>\n{1}<p><a href=\"{2}.csv\">{2}.csv</a></p>\n",
                       report::escaped(table.title), report::wide_html_of(shown, table.title), table.name);
}

}  // namespace

std::string text_of(const Figure& figure) {
    const std::string text = measured_text(figure.value, figure.error);
    return figure.unit.empty() ? text : text + ' ' + figure.unit;
}

nlohmann::ordered_json json_of(const Report& report) {
    nlohmann::ordered_json json;
    if (report.standard.empty()) {
        json["command"] = report.command;
    } else {
        json["standard"] = report.standard;
        json["test"] = report.command;
    }
    json["inputs"] = report.inputs;
    json["figures"] = json_of(report.figures);
    if (!report.standard.empty()) json["beside"] = json_of(report.beside);
    json["tables"] = nlohmann::ordered_json::object();
    json["procedure"] = report.procedure;
    if (!report.standard.empty()) json["deviations"] = report.deviations;
    json["warnings"] = report.warnings;
    for (const ResultTable& table : report.tables)
        json["tables"][table.name] = json_of(table);
    return json;
}

std::string html_of(const Report& found) {
    report::Page page{found.title, {}, {}};
    if (!found.standard.empty()) page.summary = fmt::format("<p>{}.</p>\n", found.standard);
    for (const auto& warning : found.warnings)
        page.summary += "<p class=\"bad\">" + report::escaped(warning) + "</p>\n";
    if (!found.figures.empty()) {
        page.summary += html_of("result", found.figures) +
                        "<p>Errors are one standard deviation of the counting statistics.</p>\n";
    }
    if (!found.beside.empty()) page.summary += html_of(beside_title, found.beside);
    if (report::with_cairo && !found.charts.empty()) {
        page.body += "<div class=\"pictures\">\n";
        for (const Chart& chart : found.charts) {
            page.body += report::html_of(report::Figure{
                fmt::format("<img src=\"{}.png\" alt=\"{}\">", chart.name, report::escaped(chart.title)),
                {},
                chart.title});
        }
        page.body += "</div>\n";
    }
    for (const ResultTable& table : found.tables)
        page.body += html_of(table);
    page.body += list_of("Input", found.inputs) + list_of("Procedure", found.procedure) +
                 list_of("Deviations from the standard", found.deviations);
    return report::html_of(page);
}

void check_output(const std::filesystem::path& directory, bool force) {
    if (force || !std::filesystem::exists(directory / "results.json")) return;
    throw petlm::UsageError((directory / "results.json").string() +
                            " exists; name another directory with --output or use --force");
}

void publish(const Report& report, const std::filesystem::path& directory, bool force, bool as_json) {
    petlm::Outputs outputs(force);
    outputs.make_directory(directory);
    outputs.claim(directory / "results.json");
    outputs.claim(directory / "report.html");
    for (const ResultTable& table : report.tables)
        outputs.claim(directory / (table.name + ".csv"));
    for (const Chart& chart : report.charts)
        outputs.claim(directory / (chart.name + ".png"));

    petlm::write_text(directory / "results.json", json_of(report).dump(1) + '\n');
    petlm::write_text(directory / "report.html", html_of(report));
    for (const ResultTable& table : report.tables)
        petlm::write_text(directory / (table.name + ".csv"), csv_of(table));
    if constexpr (report::with_cairo) {
        for (const Chart& chart : report.charts)
            petlm::write_text(directory / (chart.name + ".png"), png_of(chart));
    }
    outputs.commit();

    if (!report::with_cairo) config::print_warning("petlm", report::without_cairo);
    if (as_json) {
        std::cout << json_of(report).dump(1) << '\n';
        return;
    }
    const auto print = [](const std::vector<Figure>& figures) {
        for (const Figure& figure : figures)
            std::cout << "  " << figure.name << ": " << text_of(figure) << '\n';
    };
    std::cout << report.title << (report.standard.empty() ? "" : " (" + report.standard + ")") << '\n';
    print(report.figures);
    if (!report.beside.empty()) std::cout << "  " << beside_title << '\n';
    print(report.beside);
    if (!report.tables.empty()) std::cout << '\n' << text_of(report.tables.front());
    for (const auto& sentence : report.deviations)
        config::print_coloured("Deviation: " + sentence + '\n', config::colour::warning);
    for (const auto& sentence : report.warnings)
        config::print_coloured("Warning: " + sentence + '\n', config::colour::warning);
    std::cout << "See " << (directory / "report.html").string() << '\n';
}

}  // namespace petacq::results
