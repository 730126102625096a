// The first page of the report of petlm plot.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "config/base/decimals.hpp"
#include "daemon/run/ledger.hpp"
#include "tools/petlm/export/recorded_time.hpp"
#include "tools/petlm/plot/pictures.hpp"
#include "tools/report/page.hpp"

namespace petacq::petlm {
namespace {

using nlohmann::json;
using Rows = TextRows;

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

/// "1,000,100 = 1,000,000 accepted + 100 duplicate": the counts of the identity that are not 0.
std::string sum_of_terms(const json& run, const std::vector<daemon::LedgerTerm>& terms,
                         const char* without = "") {
    std::string text;
    for (const daemon::LedgerTerm& term : terms) {
        const json::json_pointer at(fmt::format("/ledger/{}/{}", term.section, term.name));
        if (std::strcmp(term.name, without) == 0 || !run.contains(at)) continue;
        const json& count = run.at(at);
        if (!count.is_number_unsigned() || count == 0) continue;
        text +=
            fmt::format("{}{} {}", text.empty() ? "" : " + ", grouped(count.get<std::uint64_t>()), term.name);
    }
    std::replace(text.begin(), text.end(), '_', ' ');
    return text;
}

/// All datagrams, once: as the ledger has them.
Rows datagram_rows(const json& run) {
    const json::json_pointer received("/ledger/datagrams/received");
    const json::json_pointer lost("/ledger/datagrams/lost");
    if (!run.is_object() || !run.contains(received) || !run.at(received).is_number_unsigned()) return {};
    std::string text = grouped(run.at(received).get<std::uint64_t>());
    for (const daemon::LedgerIdentity& identity : daemon::ledger_identities()) {
        const auto is_received = [](const daemon::LedgerTerm& term) {
            return std::strcmp(term.section, "datagrams") == 0 && std::strcmp(term.name, "received") == 0;
        };
        if (std::none_of(identity.left.begin(), identity.left.end(), is_received)) continue;
        const std::string left = sum_of_terms(run, identity.left, "received");
        const std::string right = sum_of_terms(run, identity.right);
        text += (left.empty() ? "" : " + " + left) + (right.empty() ? "" : " = " + right);
    }
    Rows rows = {{"datagrams received", text}};
    if (run.contains(lost) && run.at(lost).is_number_integer())
        rows.emplace_back("datagrams lost", daemon::grouped(run.at(lost).dump()));
    return rows;
}

/// A value with the digits that its error leaves: one of the error, two where it begins with 1.
std::string with_error(double value, double error, const char* unit) {
    const double size = std::floor(std::log10(error));
    const bool begins_with_1 = error < 2 * std::pow(10, size);
    const int decimals = std::clamp(static_cast<int>(-size) + (begins_with_1 ? 1 : 0), 0, 6);
    return fmt::format("{:.{}f} \u00b1 {:.{}f} {}", config::without_minus_zero(value, decimals), decimals,
                       error, decimals, unit);
}

/// "; BDMs 11.2 to 12.9 %"
template <class ValueOf>
std::string range_of(const Resolutions& r, const char* unit, int decimals, const ValueOf& value_of) {
    double low = std::nan("");
    double high = std::nan("");
    for (const auto& module : r.modules) {
        if (!module) continue;
        low = std::fmin(low, value_of(*module));  // NaN: the other one
        high = std::fmax(high, value_of(*module));
    }
    return std::isnan(low) ? ""
                           : fmt::format("; BDMs {:.{}f} to {:.{}f} {}", low, decimals, high, decimals, unit);
}

std::string resolution_of(const PictureData& data) {
    Rows rows;
    std::string how;
    const auto add = [&](const char* name, const Resolutions& r, const char* unit, int decimals,
                         const auto& value_of) {
        how += fmt::format("{}{}: {}.", how.empty() ? "" : " ", name, r.from);
        if (!r.whole) {
            rows.emplace_back(name, "unknown");
            return;
        }
        const double value = value_of(*r.whole);
        rows.emplace_back(std::string(name) + ", FWHM",
                          with_error(value, r.whole->error * value / r.whole->fwhm, unit) +
                              range_of(r, unit, decimals, value_of));
    };
    add("Energy at 511 keV", data.energy, "%", 1,
        [](const Peak& peak) { return 100 * peak.fwhm / peak.place; });
    if (data.energy.whole)
        rows.emplace_back("photopeak", fmt::format("{:.1f} keV", data.energy.whole->place));
    add("Time of a pair", data.time, "ps", 0, [](const Peak& peak) { return peak.fwhm; });
    return table_of("Resolution", rows, false) + "<p class=\"muted\">" + report::escaped(how) + "</p>\n";
}

Rows measured_rows(const json& run, const json& description, const PictureData& data) {
    Rows rows;
    for (const auto& [name, value] : coverage_rows(data.coverage)) {
        if (name == "start of the run" || name == "activity at the start") rows.emplace_back(name, value);
    }
    rows.emplace_back("recorded time", daemon::duration_text(data.coverage.seconds()));
    for (auto& row : operator_rows(run, description))
        rows.push_back(std::move(row));
    rows.emplace_back("scanner", data.scanner.name);
    return rows;
}

std::string findings_of(const PictureData& data) {
    if (!data.detector || data.detector->count() == 0) return "";
    constexpr std::size_t most = 6;
    const std::vector<std::string> all = data.detector->lines();
    std::string out = "<h2>Findings</h2>\n<ul>\n";
    for (std::size_t i = 0; i < std::min(all.size(), most); ++i)
        out += "<li class=\"bad\">" + report::escaped(all[i]) + "</li>\n";
    if (all.size() > most)
        out += fmt::format("<li>{} more, in the section Detector</li>\n", all.size() - most);
    return out + "</ul>\n";
}

}  // namespace

std::string summary_of(const json& description, const json& run, const PictureData& data,
                       const std::vector<Picture>& pictures) {
    Rows counts = count_rows(data);
    for (auto& row : datagram_rows(run))
        counts.push_back(std::move(row));
    std::string out = "<section class=\"first-page\">\n" + findings_of(data) +
                      "<div class=\"tables\">\n<div>\n" +
                      table_of("What was measured", measured_rows(run, description, data), false) +
                      table_of("Counts and rates", counts, true) + resolution_of(data) + "</div>\n";
    const auto image = std::find_if(pictures.begin(), pictures.end(),
                                    [](const Picture& picture) { return picture.name == "image"; });
    if (image != pictures.end()) out += figure_of(*image);
    out += "</div>\n";
    if (!data.image)
        out += "<p class=\"muted\">There is no image: " + report::escaped(data.why_no_image) + ".</p>\n";
    return out + "</section>\n";
}

}  // namespace petacq::petlm
