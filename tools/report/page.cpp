#include "tools/report/page.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <cstddef>

#include "config/base/printable.hpp"

namespace petacq::report {
namespace {

constexpr std::string_view page_style = R"(
:root { color-scheme: light dark; --back: #fff; --text: #1f2933; --muted: #52606d; --line: #d5dbe1; --bad: #a51d1d; --curve: #1f5fa8; --other: #c2570c; }
@media (prefers-color-scheme: dark) {
  :root { --back: #171c22; --text: #e6eaee; --muted: #a3afba; --line: #323b45; --bad: #ff8f87; --curve: #6fb1f5; --other: #f2994a; }
}
body { margin: 0 auto; padding: 1rem; max-width: 82rem; background: var(--back); color: var(--text); font: 1rem/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
p { margin: .3rem 0; }
.muted, figcaption, caption { color: var(--muted); }
.bad { color: var(--bad); font-weight: 600; }
.verdict { margin: .5rem 0 1rem; padding: 0; list-style: none; }
p.verdict { font-size: 1.15rem; }
.pictures, .tables, .units { display: grid; gap: 1.5rem; align-items: start; }
.pictures { grid-template-columns: repeat(auto-fit, minmax(min(100%, 30rem), 1fr)); }
.tables { grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr)); }
.units { grid-template-columns: repeat(auto-fill, minmax(17rem, 1fr)); gap: 1rem; }
figure { margin: 0; }
figure h2 { margin: 0 0 .3rem; }
figure img, figure svg, figure canvas { display: block; width: 100%; height: auto; border: 1px solid var(--line); border-radius: 6px; box-sizing: border-box; }
figcaption { font-size: .9rem; margin-top: .3rem; }
table { border-collapse: collapse; font-size: .9rem; }
.tables table { width: 100%; }
caption { text-align: left; padding: .2rem 0; font-weight: 600; }
th, td { border-top: 1px solid var(--line); padding: .2rem .5rem; text-align: left; vertical-align: top; overflow-wrap: break-word; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; }
td:not(.number) { overflow-wrap: anywhere; min-width: 6em; }
th { font-weight: 400; color: var(--muted); overflow-wrap: normal; }
th[scope=col] { vertical-align: bottom; }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.first-page td.number { white-space: normal; }
.wide { overflow-x: auto; }
figure canvas { height: min(70vh, 48rem); touch-action: none; }
figure .dark { display: none; }
@media screen and (prefers-color-scheme: dark) {
  figure .light { display: none; }
  figure .dark { display: block; }
}
image { image-rendering: pixelated; }
.curve, .other { fill: none; stroke: var(--curve); stroke-width: 1; vector-effect: non-scaling-stroke; }
.other { stroke: var(--other); }
.axis { stroke: var(--line); vector-effect: non-scaling-stroke; }
svg text { fill: var(--muted); font-size: 11px; }
.tables > figure { min-width: 0; }
.tables > div > table { margin-bottom: 1rem; }
.tables p { font-size: .9rem; }
@page { size: A4; margin: 14mm; }
@media print {
  :root { color-scheme: light; --back: #fff; --text: #1f2933; --muted: #52606d; --line: #d5dbe1; --bad: #a51d1d; --curve: #1f5fa8; --other: #c2570c; }
  :root { font-size: 8.5pt; }
  body { padding: 0; max-width: none; }
  h2 { margin-top: 1rem; }
  .first-page { break-after: page; }
  .pictures, .tables { grid-template-columns: 1fr 1fr; gap: 5mm; }
  figure, svg, img, tr { break-inside: avoid; }
  figure img, figure svg { max-height: 220mm; }
  h1, h2, caption, thead { break-after: avoid; }
  tbody tr:nth-child(-n + 2) { break-before: avoid; }
  .wide { overflow: visible; }
  a { color: inherit; }
}
)";

std::string base64(std::string_view data) {
    std::string out((data.size() + 2) / 3 * 4 + 1, '\0');  // EVP_EncodeBlock ends with a zero
    const int length =
        EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                        reinterpret_cast<const unsigned char*>(data.data()), static_cast<int>(data.size()));
    out.resize(static_cast<std::size_t>(length));
    return out;
}

}  // namespace

std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : config::printable(text, "\n\t\r")) {
        const std::size_t special = std::string_view("&<>\"").find(c);
        if (special != std::string_view::npos) {
            out += std::array{"&amp;", "&lt;", "&gt;", "&quot;"}[special];
        } else {
            out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
        }
    }
    return out;
}

std::string html_of(const Page& page) {
    std::string out = fmt::format(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{0}</title>\n"
        "<style>{1}</style>\n</head>\n<body>\n<header>\n<h1>{0}</h1>\n",
        escaped(page.title), page_style);
    out += page.summary + "</header>\n<main>\n" + page.body + "</main>\n";
    if (!page.footer.empty()) out += "<footer><p class=\"muted\">" + escaped(page.footer) + "</p></footer>\n";
    return out + "</body>\n</html>\n";
}

std::string html_of(const Table& table) {
    std::string out = "<table>\n";
    if (!table.caption.empty()) out += "<caption>" + escaped(table.caption) + "</caption>\n";
    if (!table.columns.empty()) out += "<thead><tr>";  // printed on each page of a long table
    for (const std::string& name : table.columns)
        out += "<th scope=\"col\">" + escaped(name) + "</th>";
    if (!table.columns.empty()) out += "</tr></thead>\n";
    for (const auto& row : table.rows) {
        out += "<tr>";
        for (const Cell& cell : row) {
            const char* const look = cell.number && cell.bad ? " class=\"number bad\""
                                     : cell.number           ? " class=\"number\""
                                     : cell.bad              ? " class=\"bad\""
                                                             : "";
            out += &cell == row.data() ? fmt::format("<th scope=\"row\">{}</th>", escaped(cell.text))
                                       : fmt::format("<td{}>{}</td>", look, escaped(cell.text));
        }
        out += "</tr>\n";
    }
    return out + "</table>\n";
}

std::string wide_html_of(const Table& table, const std::string& name) {
    return fmt::format("<div class=\"wide\" tabindex=\"0\" role=\"group\" aria-label=\"{}\">{}</div>\n",
                       escaped(name), html_of(table));
}

std::string html_of(const Figure& figure) {
    std::string out = figure.id.empty() ? "<figure>" : fmt::format("<figure id=\"{}\">", figure.id);
    if (!figure.title.empty()) out += "\n<h2>" + escaped(figure.title) + "</h2>\n";
    out += figure.content;
    if (!figure.caption.empty()) out += "<figcaption>" + figure.caption + "</figcaption>";
    return out + "</figure>\n";
}

std::string data_uri(std::string_view type, std::string_view contents) {
    return fmt::format("data:{};base64,{}", type, base64(contents));
}

}  // namespace petacq::report
