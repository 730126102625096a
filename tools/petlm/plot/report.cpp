// The report of petlm plot.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "config/scanner/arrangement.hpp"
#include "daemon/system/utc.hpp"
#include "tools/petlm/export/recorded_time.hpp"
#include "tools/petlm/plot/pictures.hpp"
#include "tools/petlm/plot/verdict.hpp"
#include "tools/petlm/records/run.hpp"
#include "tools/petlm/records/union/union_text.hpp"
#include "tools/report/canvas.hpp"
#include "tools/report/page.hpp"

namespace petacq::petlm {
namespace {

using nlohmann::json;
using Rows = TextRows;

using report::escaped;

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
    add("because", known("/stop_reason"));
    add("state", known("/state"));
    add("scanner", data.scanner.name);
    const config::Geometry& geometry = data.scanner.geometry;
    add("crystals", geometry.is_ring()
                        ? fmt::format("{} in {} rings", grouped(geometry.crystal_count()), geometry.rings())
                        : fmt::format("{} in {} modules", grouped(geometry.crystal_count()),
                                      grouped(data.scanner.arrangement->modules().size())));
    add("tick", fmt::format("{} ps", data.scanner.tick_ps));
    const json::json_pointer singles("/configuration/listmode/write_singles");
    if (run.is_object() && run.contains(singles) && run.at(singles) == false)
        add("singles", "not written: the coincidences cannot be found again with other settings");
    add("computed by", known("/backend"));
    add("petacqd", known("/version"));
    add("calibration (SHA-256)", data.coverage.origin.calibration_sha256);
    for (auto& row : union_lines(run))
        rows.push_back(std::move(row));
    return rows;
}

/// When operators noted something, from the start of the time axis, and what.
Rows mark_rows(const PictureData& data) {
    Rows rows;
    const double begin_s = data.seconds(data.bins.times.begin);
    for (const daemon::Mark& mark : data.marks) {
        std::string when = daemon::utc_text(mark.time);
        if (mark.ticks) when += fmt::format(" ({:.1f} s)", data.seconds(*mark.ticks) - begin_s);
        rows.emplace_back(std::move(when), text_of(mark.text));
    }
    return rows;
}

std::string findings(const DetectorFindings& detector) {
    constexpr std::size_t most = 100;
    const std::vector<std::string> all = detector.lines();
    if (all.empty()) return "<p>No fault was found.</p>\n";
    std::string out = "<ul>\n";
    for (std::size_t i = 0; i < std::min(all.size(), most); ++i)
        out += fmt::format("<li class=\"bad\">{}</li>\n", escaped(all[i]));
    out += "</ul>\n";
    if (all.size() > most) out += fmt::format("<p class=\"bad\">There are {} more.</p>\n", all.size() - most);
    return out;
}

/// What the watch over the detector compares.
std::string modules(const DetectorFindings& detector) {
    std::vector<std::pair<const char*, const daemon::ModuleTable*>> times{{"start", &detector.start},
                                                                          {"run", &detector.run}};
    if (!detector.reference.empty()) times.emplace_back("reference", &detector.reference);
    report::Table table{"BDMs", {"BDM"}, {}};
    for (const char* what : {"mean dt, ns", "photopeak, keV", "prompts per single, %"}) {
        for (const auto& time : times)
            table.columns.push_back(fmt::format("{}, {}", what, time.first));
    }
    for (std::size_t bdm = 0; bdm < detector.run.size(); ++bdm) {
        std::vector<report::Cell> row{{std::to_string(bdm)}};
        const auto add = [&](auto value, double factor, int digits) {
            for (const auto& time : times) {
                const std::optional<double> number = value((*time.second)[bdm]);
                row.push_back({number ? fmt::format("{:.{}f}", *number * factor, digits) : "", true});
            }
        };
        using daemon::ModuleSums;
        add([](const ModuleSums& m) { return m.mean_dt(); }, detector.tick_ns, 3);
        add([](const ModuleSums& m) { return m.photopeak_keV(); }, 1, 1);
        add([](const ModuleSums& m) { return m.prompts_per_single(); }, 100, 2);
        table.rows.push_back(std::move(row));
    }
    return report::wide_html_of(table, "BDMs") +
           "<p class=\"muted\">Mean dt: time of the other single of a prompt less that of "
           "the one in the BDM. Mean dt and prompts per single are without the random coincidences to be "
           "expected. Start: up to ten seconds after the first one" +
           (detector.reference.empty() ? ""
                                       : "; reference: the start of " + escaped(detector.reference_name)) +
           ".</p>\n";
}

std::string detector_section(const DetectorFindings& detector) {
    std::string out = "<h2>Detector</h2>\n";
    if (!detector.trouble.empty()) out += "<p class=\"bad\">" + escaped(detector.trouble) + "</p>\n";
    return detector.run.empty() ? out : out + findings(detector) + modules(detector);
}

std::string verdict(const std::vector<Judgement>& judgements) {
    if (judgements.empty()) return "";
    std::string out = "<ul class=\"verdict\">\n";
    for (const Judgement& one : judgements) {
        out += fmt::format("<li{}>{} {}</li>\n", one.good ? "" : " class=\"bad\"",
                           one.good ? "\u2713" : "\u2715", escaped(one.text));
    }
    return out + "</ul>\n";
}

std::string ledger(const json& run) {
    const auto found = run.is_object() ? run.find("ledger") : run.end();
    if (found == run.end() || !found->is_object())
        return "<p class=\"muted\">There is no ledger of this run.</p>\n";
    std::string out;
    if (const auto closed = found->find("closed"); closed == found->end()) {
        out =
            "<p class=\"muted\">This is the ledger of a part of a run: nobody can tell whether it "
            "closes.</p>\n";
    } else {
        out = *closed == true ? "<p>The ledger is closed: every identity holds.</p>\n"
                              : "<p class=\"bad\">The ledger is not closed.</p>\n";
    }
    out += "<div class=\"tables\">\n";
    for (const char* section : {"datagrams", "frames", "singles", "pairs", "saved_singles"}) {
        if (!found->contains(section) || !(*found)[section].is_object()) continue;
        Rows rows;
        for (const auto& [name, value] : (*found)[section].items()) {
            rows.emplace_back(
                name, value.is_number_unsigned() ? grouped(value.get<std::uint64_t>()) : text_of(value));
        }
        out += table_of(section, rows, true);
    }
    return out + "</div>\n";
}

}  // namespace

std::string text_of(const json& value) {
    if (value.is_null()) return "";
    // The result is UTF-8, whatever the file contains.
    const std::string dumped = json_line(value);
    return value.is_string() ? json::parse(dumped).get<std::string>() : dumped;
}

std::string text_at(const json& object, const char* pointer) {
    const json::json_pointer at(pointer);
    return object.is_object() && object.contains(at) ? text_of(object[at]) : "";
}

std::string figure_of(const Picture& picture) {
    // The style of the page shows one of them; browsers do not choose another <source> for paper.
    std::string both;
    for (const auto& [name, theme] :
         {std::pair("light", report::light_theme()), std::pair("dark", report::dark_theme())}) {
        both += fmt::format(
            "<img class=\"{}\" width=\"{}\" height=\"{:.0f}\" alt=\"{}\" src=\"{}\">\n", name, picture_width,
            picture.height, escaped(picture.alt),
            report::data_uri("image/svg+xml", report::svg_of(picture.draw, picture.height, theme)));
    }
    return report::html_of(report::Figure{both, escaped(picture.caption), picture.title, picture.name});
}

std::string table_of(const std::string& caption, const Rows& rows, bool numbers) {
    if (rows.empty()) return "";
    report::Table shown{caption, {}, {}};
    for (const auto& [name, value] : rows)
        shown.rows.push_back({{name}, {value, numbers}});
    return report::html_of(shown);
}

std::string report_of(const std::string& target, const json& description, const json& run,
                      const PictureData& data, const std::vector<Picture>& pictures) {
    const std::string id = text_at(description, "/run_id");
    const std::string note = text_at(run, "/note");
    report::Page page{id.empty() ? target : id, note.empty() ? "" : "<p>" + escaped(note) + "</p>\n",
                      summary_of(description, run, data, pictures), "petlm plot, of " + target};
    page.summary += verdict(verdict_of(run, data));
    page.body += "<h2>The run and its records</h2>\n<div class=\"tables\">\n" +
                 table_of("Run", run_rows(description, run, data), false) +
                 table_of("What the records cover", coverage_rows(data.coverage), false) +
                 table_of("Marks", mark_rows(data), false) +
                 "</div>\n<h2>Pictures</h2>\n<div class=\"pictures\">\n";
    for (const Picture& picture : pictures) {
        if (picture.name != "image") page.body += figure_of(picture);  // on the first page
    }
    page.body += "</div>\n";
    if (data.detector) page.body += detector_section(*data.detector);
    page.body += "<h2>Ledger</h2>\n" + ledger(run);
    return report::html_of(page);
}

}  // namespace petacq::petlm
