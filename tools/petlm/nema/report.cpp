#include "tools/petlm/nema/report.hpp"

#include <fmt/format.h>

#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "tools/html/escaped.hpp"
#include "tools/petlm/nema/pictures.hpp"
#include "tools/petlm/records/output.hpp"

namespace petacq::nema {
namespace {

constexpr const char* standard = "NEMA NU 4-2008";

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

nlohmann::ordered_json json_of(const Table& table) {
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

std::string csv_of(const Table& table) {
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
std::string text_of(const Table& table) {
    std::vector<std::size_t> widths;
    for (const auto& name : table.columns)
        widths.push_back(name.size());
    for (const auto& row : table.rows) {
        for (std::size_t i = 0; i < row.size(); ++i)
            widths[i] = std::max(widths[i], text_of(row[i]).size());
    }
    std::string out = table.title + '\n';
    const auto line = [&](const auto& cells, const auto& text) {
        for (std::size_t i = 0; i < cells.size(); ++i)
            out += fmt::format("  {:>{}}", text(cells[i]), widths[i]);
        out += '\n';
    };
    line(table.columns, [](const std::string& name) { return name; });
    for (const auto& row : table.rows)
        line(row, [](const Cell& cell) { return text_of(cell); });
    return out;
}

std::string list_of(const char* title, const std::vector<std::string>& sentences) {
    if (sentences.empty()) return "";
    std::string out = fmt::format("<h2>{}</h2>\n<ul>\n", title);
    for (const auto& sentence : sentences)
        out += "<li>" + escaped(sentence) + "</li>\n";
    return out + "</ul>\n";
}

std::string html_of(const Table& table) {
    std::string out = "<h2>" + escaped(table.title) + "</h2>\n<table>\n<tr>";
    for (const auto& name : table.columns)
        out += "<th>" + escaped(name) + "</th>";
    out += "</tr>\n";
    for (const auto& row : table.rows) {
        out += "<tr>";
        for (const Cell& cell : row)
            out += "<td>" + escaped(text_of(cell)) + "</td>";
        out += "</tr>\n";
    }
    return out + "</table>\n<p><a href=\"" + table.name + ".csv\">" + table.name + ".csv</a></p>\n";
}

}  // namespace

std::string text_of(const Figure& figure) {
    std::string text = std::isnan(figure.value) ? "unknown" : fmt::format("{:.5g}", figure.value);
    if (!std::isnan(figure.error)) text += fmt::format(" ± {:.2g}", figure.error);
    return figure.unit.empty() ? text : text + ' ' + figure.unit;
}

nlohmann::ordered_json json_of(const Report& report) {
    nlohmann::ordered_json json = {{"standard", standard},
                                   {"test", report.command},
                                   {"clause", report.clause},
                                   {"inputs", report.inputs},
                                   {"figures", nlohmann::ordered_json::object()},
                                   {"tables", nlohmann::ordered_json::object()},
                                   {"procedure", report.procedure},
                                   {"deviations", report.deviations},
                                   {"warnings", report.warnings}};
    for (const Figure& figure : report.figures) {
        json["figures"][figure.key] = {
            {"value", json_of(figure.value)}, {"error", json_of(figure.error)}, {"unit", figure.unit}};
    }
    for (const Table& table : report.tables)
        json["tables"][table.name] = json_of(table);
    return json;
}

std::string html_of(const Report& report) {
    std::string out =
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>" + escaped(report.title) +
        "</title>\n<style>body{font:15px/1.5 sans-serif;max-width:62em;margin:2em auto;padding:0 "
        "1em;color:#1f2933}"
        "table{border-collapse:collapse;font-size:13px}td,th{border:1px solid #cbd2d9;padding:2px 8px;"
        "text-align:right}th{background:#f1f4f7}img{width:100%;max-width:560px}.w{color:#a3390b}</style></"
        "head>\n"
        "<body>\n<h1>" +
        escaped(report.title) + "</h1>\n<p>" + standard + ", clause " + escaped(report.clause) + ".</p>\n";
    for (const auto& warning : report.warnings)
        out += "<p class=\"w\">" + escaped(warning) + "</p>\n";
    if (!report.figures.empty()) {
        out += "<table>\n<tr><th>result</th><th>value</th></tr>\n";
        for (const Figure& figure : report.figures)
            out +=
                "<tr><td>" + escaped(figure.name) + "</td><td>" + escaped(text_of(figure)) + "</td></tr>\n";
        out += "</table>\n<p>Errors are one standard deviation of the counting statistics.</p>\n";
    }
    if (!no_pictures_reason()) {
        for (const Chart& chart : report.charts) {
            out += "<h2>" + escaped(chart.title) + "</h2>\n<img src=\"" + chart.name + ".png\" alt=\"" +
                   escaped(chart.title) + "\">\n";
        }
    }
    for (const Table& table : report.tables)
        out += html_of(table);
    out += list_of("Input", report.inputs) + list_of("Procedure", report.procedure) +
           list_of("Deviations from the standard", report.deviations);
    return out + "</body></html>\n";
}

void publish(const Report& report, const std::filesystem::path& directory, bool force) {
    const auto no_pictures = no_pictures_reason();
    petlm::Outputs outputs(force);
    outputs.make_directory(directory);
    outputs.claim(directory / "results.json");
    outputs.claim(directory / "report.html");
    for (const Table& table : report.tables)
        outputs.claim(directory / (table.name + ".csv"));
    for (const Chart& chart : report.charts)
        outputs.claim(directory / (chart.name + ".png"));

    petlm::write_text(directory / "results.json", json_of(report).dump(1) + '\n');
    petlm::write_text(directory / "report.html", html_of(report));
    for (const Table& table : report.tables)
        petlm::write_text(directory / (table.name + ".csv"), csv_of(table));
    if (!no_pictures) {
        for (const Chart& chart : report.charts)
            draw(chart, directory / (chart.name + ".png"));
    }
    outputs.commit();

    std::cout << report.title << " (" << standard << ", clause " << report.clause << ")\n";
    for (const Figure& figure : report.figures)
        std::cout << "  " << figure.name << ": " << text_of(figure) << '\n';
    if (!report.tables.empty()) std::cout << '\n' << text_of(report.tables.front());
    for (const auto& sentence : report.deviations)
        std::cout << "Deviation: " << sentence << '\n';
    for (const auto& sentence : report.warnings)
        std::cout << "Warning: " << sentence << '\n';
    if (no_pictures) std::cerr << "petlm: no PNG pictures: " << *no_pictures << '\n';
    std::cout << "See " << (directory / "report.html").string() << '\n';
}

}  // namespace petacq::nema
