// The report of petlm plot.
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "tools/html/escaped.hpp"
#include "tools/petlm/export/recorded_time.hpp"
#include "tools/petlm/plot/pictures.hpp"
#include "tools/petlm/plot/verdict.hpp"
#include "tools/petlm/records/run.hpp"

namespace petacq::petlm {
namespace {

using nlohmann::json;
using Rows = TextRows;

constexpr std::string_view style = R"(
:root { color-scheme: light dark; --back: #fff; --text: #1f2933; --muted: #52606d; --line: #d5dbe1; --panel: #f5f7f9; --bad: #a51d1d; }
@media (prefers-color-scheme: dark) {
  :root { --back: #171c22; --text: #e6eaee; --muted: #a3afba; --line: #323b45; --panel: #1e252d; --bad: #ff8f87; }
}
body { margin: 0 auto; padding: 1rem; max-width: 82rem; background: var(--back); color: var(--text); font: 1rem/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
p { margin: .3rem 0; }
.muted, figcaption, caption { color: var(--muted); }
.bad { color: var(--bad); font-weight: 600; }
.verdict { list-style: none; margin: .5rem 0 1rem; padding: 0; }
.pictures { display: grid; gap: 1.5rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 30rem), 1fr)); align-items: start; }
figure { margin: 0; }
figure h2 { margin: 0 0 .3rem; }
figure img { display: block; width: 100%; height: auto; border: 1px solid var(--line); border-radius: 6px; box-sizing: border-box; }
figcaption { font-size: .9rem; margin-top: .3rem; }
.tables { display: grid; gap: 1.5rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr)); align-items: start; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
caption { text-align: left; padding: .2rem 0; font-weight: 600; }
th, td { border-top: 1px solid var(--line); padding: .2rem .4rem; text-align: left; vertical-align: top; overflow-wrap: anywhere; }
th { font-weight: 400; color: var(--muted); overflow-wrap: normal; }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.wide { overflow-x: auto; }
.wide th { vertical-align: bottom; }
@media print { .pictures { display: block; } figure { break-inside: avoid; margin-bottom: 1.5rem; } }
)";

std::string base64(std::string_view data) {
    std::string out((data.size() + 2) / 3 * 4 + 1, '\0');  // EVP_EncodeBlock ends with a zero
    const int length =
        EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                        reinterpret_cast<const unsigned char*>(data.data()), static_cast<int>(data.size()));
    out.resize(static_cast<std::size_t>(length));
    return out;
}

/// Empty for null.
std::string text_of(const json& value) {
    if (value.is_null()) return "";
    // The result is UTF-8, whatever the file contains.
    const std::string dumped = json_line(value);
    return value.is_string() ? json::parse(dumped).get<std::string>() : dumped;
}

/// A value of a JSON object as text; empty if it is missing or null.
std::string text_at(const json& object, const char* pointer) {
    const json::json_pointer at(pointer);
    return object.is_object() && object.contains(at) ? text_of(object[at]) : "";
}

void figure(OutputFile& out, const Picture& picture) {
    print(out, "<figure id=\"{}\">\n<h2>{}</h2>\n<picture>\n", picture.name, escaped(picture.title));
    print(out, "<source media=\"(prefers-color-scheme: dark)\" srcset=\"data:image/svg+xml;base64,{}\">\n",
          base64(svg_of(picture.draw, picture.height, dark_theme())));
    print(
        out,
        "<img width=\"{}\" height=\"{:.0f}\" alt=\"{}\" src=\"data:image/svg+xml;base64,{}\">\n</picture>\n",
        picture_width, picture.height, escaped(picture.alt),
        base64(svg_of(picture.draw, picture.height, light_theme())));
    print(out, "<figcaption>{}</figcaption>\n</figure>\n", escaped(picture.caption));
}

void table(OutputFile& out, const std::string& caption, const Rows& rows, bool numbers) {
    if (rows.empty()) return;
    print(out, "<table>\n<caption>{}</caption>\n", escaped(caption));
    for (const auto& [name, value] : rows) {
        print(out, "<tr><th scope=\"row\">{}</th><td{}>{}</td></tr>\n", escaped(name),
              numbers ? " class=\"number\"" : "", escaped(value));
    }
    out.text("</table>\n");
}

/// What the operator said at the start, from the first of the objects that has it.
Rows operator_rows(const json& run, const json& description) {
    Rows rows;
    json said = run.is_object() ? run.value("operator", json()) : json();
    if (!said.is_object() && description.is_object()) said = description.value("operator", json());
    const auto add = [&](const std::string& name, const json& object, const std::string& key,
                         const char* unit = "") {
        const json value = object.is_object() ? object.value(key, json()) : json();
        if (value.is_null()) return;
        rows.emplace_back(
            name, (value.is_number() ? fmt::format("{:.6g}", value.get<double>()) : text_of(value)) + unit);
    };
    add("nuclide", said, "nuclide");
    add("half-life", said, "half_life_s", " s");
    add("positrons per decay", said, "branching_ratio");
    add("activity at the assay", said, "activity_MBq", " MBq");
    add("time of the assay", said, "assay_utc");
    add("bed position", said, "bed_mm", " mm");
    add("subject", said, "subject");
    if (!said.is_object() || !said.contains("keys") || !said["keys"].is_object()) return rows;
    for (const auto& member : said["keys"].items())
        add(text_of(member.key()), said["keys"], member.key());
    return rows;
}

Rows run_rows(const json& description, const json& run, const PictureData& data) {
    Rows rows;
    const auto add = [&](const char* name, const std::string& value) {
        if (!value.empty()) rows.emplace_back(name, value);
    };
    const auto known = [&](const char* pointer) {
        const std::string text = text_at(run, pointer);
        return text.empty() ? text_at(description, pointer) : text;
    };
    add("run", known("/run_id"));
    add("note", known("/note"));
    for (auto& row : operator_rows(run, description))
        rows.push_back(std::move(row));
    add("because", known("/stop_reason"));
    add("state", known("/state"));
    add("scanner", data.scanner.name);
    add("crystals",
        fmt::format("{} in {} rings", grouped(data.scanner.geometry.crystal_count()), data.bins.rings));
    add("tick", fmt::format("{} ps", data.scanner.tick_ps));
    const json::json_pointer singles("/configuration/listmode/write_singles");
    if (run.is_object() && run.contains(singles) && run.at(singles) == false)
        add("singles", "not written: the coincidences cannot be found again with other settings");
    add("computed by", known("/backend"));
    add("petacqd", known("/version"));
    add("calibration (SHA-256)", data.coverage.origin.calibration_sha256);
    return rows;
}

/// Rounded to a whole number; numbers below 100 to three digits.
std::string rounded(double number) {
    const std::string sign = number < 0 ? "\u2212" : "";
    const double size = std::abs(number);
    if (size < 100) return sign + fmt::format("{:.3g}", size);
    if (!(size < 1e18)) return fmt::format("{:.4g}", number);
    return sign + grouped(static_cast<std::uint64_t>(std::llround(size)));
}

Rows count_rows(const PictureData& data) {
    const double seconds = data.coverage.seconds();
    const std::uint64_t prompts = data.pairs.prompts.pairs;
    const std::uint64_t delayeds = data.pairs.delayeds.pairs;
    const auto rate = [&](double counts) {
        return seconds > 0 ? " (" + rounded(counts / seconds) + "/s)" : std::string();
    };
    Rows rows = {{"prompts", grouped(prompts) + rate(static_cast<double>(prompts))}};
    std::optional<double> fraction;  // of randoms, by the first estimate that there is
    const auto estimate = [&](double randoms, double among) {
        if (!fraction && among > 0) fraction = randoms / among;
    };
    const auto add_randoms = [&](const char* name, const std::vector<double>& of_rows) {
        const double randoms = sum_of(of_rows);
        if (!std::isfinite(randoms)) return;
        rows.emplace_back(name, rounded(randoms) + rate(randoms));
        // Damaged seconds have fewer prompts than the list-mode.
        estimate(randoms, sum_of(data.seconds_rows->prompts));
    };
    if (data.seconds_rows) add_randoms("randoms, noise-free estimate", data.seconds_rows->randoms);
    if (data.delayeds()) {
        if (data.seconds_rows) add_randoms("randoms, weighted delayeds", data.seconds_rows->of_delayeds);
        rows.emplace_back("delayeds, as counted", grouped(delayeds) + rate(static_cast<double>(delayeds)));
        estimate(static_cast<double>(delayeds), static_cast<double>(prompts));
    }
    if (!fraction) return rows;
    const double trues = static_cast<double>(prompts) * (1 - *fraction);
    rows.emplace_back("prompts \u2212 randoms", rounded(trues) + rate(trues));
    rows.emplace_back("randoms fraction", fmt::format("{:.3g} %", 100 * *fraction));
    return rows;
}

void findings(OutputFile& out, const DetectorFindings& detector) {
    constexpr std::size_t most = 100;
    const auto& all = detector.findings;
    if (all.empty()) out.text("<p>No fault was found.</p>\n");
    if (!all.empty()) out.text("<ul>\n");
    for (std::size_t i = 0; i < std::min(all.size(), most); ++i) {
        print(out, "<li class=\"bad\">{} to {:.1f} s</li>\n", escaped(all[i].fault.text()), all[i].until_s);
    }
    if (!all.empty()) out.text("</ul>\n");
    if (all.size() > most) print(out, "<p class=\"bad\">There are {} more.</p>\n", all.size() - most);
}

/// A number in a column of a table of modules; empty if it is unknown.
void number_cell(OutputFile& out, std::optional<double> number, int digits) {
    print(out, "<td class=\"number\">{}</td>", number ? fmt::format("{:.{}f}", *number, digits) : "");
}

/// What the watch over the detector compares.
void modules(OutputFile& out, const DetectorFindings& detector) {
    if (detector.run.empty()) return;
    std::vector<std::pair<const char*, const daemon::ModuleTable*>> columns{{"start", &detector.start},
                                                                            {"run", &detector.run}};
    if (!detector.reference.empty()) columns.emplace_back("reference", &detector.reference);
    out.text("<div class=\"wide\"><table>\n<caption>Modules</caption>\n<tr><th scope=\"col\">module</th>");
    for (const char* what : {"mean dt, ns", "photopeak, keV", "prompts per single, %"}) {
        for (const auto& [when, table] : columns)
            print(out, "<th scope=\"col\">{}, {}</th>", what, when);
    }
    out.text("</tr>\n");
    for (std::size_t bdm = 0; bdm < detector.run.size(); ++bdm) {
        print(out, "<tr><th scope=\"row\">{}</th>", bdm);
        const auto cells = [&](auto value, double factor, int digits) {
            for (const auto& column : columns) {
                const std::optional<double> number = value((*column.second)[bdm]);
                number_cell(out, number ? std::optional(*number * factor) : std::nullopt, digits);
            }
        };
        using daemon::ModuleSums;
        cells([](const ModuleSums& m) { return m.mean_dt(); }, detector.tick_ns, 3);
        cells([](const ModuleSums& m) { return m.photopeak_keV(); }, 1, 1);
        cells([](const ModuleSums& m) { return m.prompts_per_single(); }, 100, 2);
        out.text("</tr>\n");
    }
    out.text(
        "</table></div>\n<p class=\"muted\">Mean dt: time of the other single of a prompt less that of "
        "the one in the module. Mean dt and prompts per single are without the random coincidences to be "
        "expected. Start: up to ten seconds after the first one");
    if (!detector.reference.empty())
        print(out, "; reference: the start of {}", escaped(detector.reference_name));
    out.text(".</p>\n");
}

void detector_section(OutputFile& out, const DetectorFindings& detector) {
    out.text("<h2>Detector</h2>\n");
    if (!detector.trouble.empty()) print(out, "<p class=\"bad\">{}</p>\n", escaped(detector.trouble));
    if (detector.run.empty()) return;
    findings(out, detector);
    modules(out, detector);
}

void verdict(OutputFile& out, const std::vector<Judgement>& judgements) {
    if (judgements.empty()) return;
    out.text("<ul class=\"verdict\">\n");
    for (const Judgement& one : judgements)
        print(out, "<li{}>{} {}</li>\n", one.good ? "" : " class=\"bad\"", one.good ? "\u2713" : "\u2715",
              escaped(one.text));
    out.text("</ul>\n");
}

void ledger(OutputFile& out, const json& run) {
    const auto found = run.is_object() ? run.find("ledger") : run.end();
    if (found == run.end() || !found->is_object()) {
        out.text("<p class=\"muted\">There is no ledger of this run.</p>\n");
        return;
    }
    if (const auto closed = found->find("closed"); closed != found->end()) {
        out.text(*closed == true ? "<p>The ledger is closed: every identity holds.</p>\n"
                                 : "<p class=\"bad\">The ledger is not closed.</p>\n");
    } else {
        out.text(
            "<p class=\"muted\">This is the ledger of a part of a run: nobody can tell whether it "
            "closes.</p>\n");
    }
    out.text("<div class=\"tables\">\n");
    for (const char* section : {"datagrams", "frames", "singles", "pairs", "saved_singles"}) {
        if (!found->contains(section) || !(*found)[section].is_object()) continue;
        Rows rows;
        for (const auto& [name, value] : (*found)[section].items()) {
            rows.emplace_back(
                name, value.is_number_unsigned() ? grouped(value.get<std::uint64_t>()) : text_of(value));
        }
        table(out, section, rows, true);
    }
    out.text("</div>\n");
}

}  // namespace

void write_report(const std::filesystem::path& file, const std::string& target, const json& description,
                  const json& run, const PictureData& data, const std::vector<Picture>& pictures) {
    OutputFile out(file);
    const std::string id = text_at(description, "/run_id");
    const std::string title = id.empty() ? target : id;
    print(out,
          "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
          "<title>{0}</title>\n<style>{1}</style>\n</head>\n<body>\n<header>\n<h1>{0}</h1>\n",
          escaped(title), style);
    const std::string note = text_at(run, "/note");
    if (!note.empty()) print(out, "<p>{}</p>\n", escaped(note));
    verdict(out, verdict_of(run, data));
    out.text("</header>\n<main>\n<div class=\"tables\">\n");
    table(out, "Run", run_rows(description, run, data), false);
    table(out, "What the records cover", coverage_rows(data.coverage), false);
    table(out, "Counts", count_rows(data), true);
    out.text("</div>\n<h2>Pictures</h2>\n<div class=\"pictures\">\n");
    for (const Picture& picture : pictures)
        figure(out, picture);
    out.text("</div>\n");
    if (data.detector) detector_section(out, *data.detector);
    out.text("<h2>Ledger</h2>\n");
    ledger(out, run);
    print(out, "</main>\n<footer><p class=\"muted\">petlm plot, of {}</p></footer>\n</body>\n</html>\n",
          escaped(target));
    out.close();
}

}  // namespace petacq::petlm
