#include "tools/petctl/status_text.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

namespace petacq::petctl {

using nlohmann::json;

namespace {

const json absent;  // NOLINT(cert-err58-cpp): a null allocates nothing

/// The value at the end of a path of keys, or null wherever the path breaks off.
const json& at(const json& document, std::initializer_list<const char*> path) {
    const json* here = &document;
    for (const char* key : path) {
        if (!here->is_object()) return absent;
        const auto next = here->find(key);
        if (next == here->end()) return absent;
        here = &*next;
    }
    return *here;
}

std::string grouped(std::string digits) {
    const std::size_t first = digits.starts_with('-') ? 1 : 0;
    for (std::size_t i = digits.size(); i > first + 3; i -= 3)
        digits.insert(i - 3, ",");
    return digits;
}

std::string text_of(const json& value) {
    if (value.is_string()) return value.get_ref<const std::string&>().empty() ? "-" : printable(value);
    if (value.is_number_integer()) return grouped(value.dump());
    if (value.is_number()) return fmt::format("{:.6g}", value.get<double>());
    if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
    return "-";
}

/// 5234567 and "B/s": "5.235 MB/s".
std::string rate(const json& value, std::string_view unit) {
    if (!value.is_number()) return "-";
    auto number = value.get<double>();
    constexpr std::array prefixes{"", "k", "M", "G", "T"};
    std::size_t prefix = 0;
    while (std::abs(number) >= 1000 && prefix + 1 < prefixes.size()) {
        number /= 1000;
        ++prefix;
    }
    return fmt::format("{:.4g} {}{}", number, prefixes[prefix], unit);
}

std::string with_unit(const json& value, const char* format, std::string_view unit) {
    if (!value.is_number()) return "-";
    return fmt::format(fmt::runtime(format), value.get<double>()) + std::string(unit);
}

std::string age(const json& value) {
    if (!value.is_number() || value.get<double>() < 60) return with_unit(value, "{:.1f}", " s");
    const auto seconds = static_cast<long long>(std::min(value.get<double>(), 1e15));
    if (seconds < 3600) return fmt::format("{} min {:02} s", seconds / 60, seconds % 60);
    if (seconds < 86'400) return fmt::format("{} h {:02} min", seconds / 3600, seconds / 60 % 60);
    return fmt::format("{} d {:02} h", seconds / 86'400, seconds / 3600 % 24);
}

std::string closed(const json& value) {
    if (!value.is_boolean()) return "-";
    return value.get<bool>() ? "closed" : "NOT CLOSED";
}

std::string row(std::string_view label, std::string_view value) {
    return fmt::format("  {:<16}  {}\n", label, value);
}

/// Name and count of everything in one section of the ledger, names in front.
std::string ledger_section(const char* name, const json& counters) {
    std::string line = fmt::format("  {:<10}", name);
    if (!counters.is_object() || counters.empty()) return line + "  -\n";
    // Zeros are left out but for the first few words an operator looks for.
    constexpr std::array always{"received",      "lost",           "accepted", "decided",
                                "prompts_found", "delayeds_found", "written"};
    for (const auto& [key, value] : counters.items()) {
        const bool asked = std::find(always.begin(), always.end(), key) != always.end();
        const bool unknown = value.is_null() && asked;
        if (!unknown && (!value.is_number() || (!asked && value == 0))) continue;
        line += fmt::format("  {} {}", printable(key), text_of(value));
    }
    return line + "\n";
}

bool all_zero(const json& counters) {
    if (!counters.is_object()) return true;
    return std::all_of(counters.begin(), counters.end(), [](const json& value) { return value == 0; });
}

using Row = std::vector<std::string>;

/// Columns as wide as their widest cell; the first to the left, the others to the right.
std::string table(const std::vector<Row>& rows) {
    std::vector<std::size_t> widths(rows.front().size(), 0);
    for (const Row& cells : rows) {
        for (std::size_t i = 0; i < cells.size(); ++i)
            widths[i] = std::max(widths[i], cells[i].size());
    }
    std::string text;
    for (const Row& cells : rows) {
        text += " ";
        for (std::size_t i = 0; i < cells.size(); ++i) {
            text += i == 0 ? fmt::format(" {:<{}}", cells[i], widths[i])
                           : fmt::format("  {:>{}}", cells[i], widths[i]);
        }
        text += "\n";
    }
    return text;
}

std::string reasons_of(const json& health) {
    std::string text;
    if (const json& reasons = at(health, {"reasons"}); reasons.is_array()) {
        for (const json& reason : reasons)
            text += (text.empty() ? "" : "; ") + text_of(reason);
    }
    return text;
}

std::string run_section(const json& run) {
    if (!run.is_object()) return row("run", "-");
    std::string text = row("run", text_of(at(run, {"id"})));
    text += row("  started", text_of(at(run, {"start_utc"})));
    text += row("  duration", with_unit(at(run, {"duration_s"}), "{:.6g}", " s"));
    text += row("  note", text_of(at(run, {"note"})));
    return text;
}

std::string sources_section(const json& sources) {
    if (!sources.is_array() || sources.empty()) return "";
    std::vector<Row> rows{
        {"source", "address", "state", "frames", "datagrams", "lost", "skew us", "seen s ago"}};
    for (const json& source : sources) {
        rows.push_back({text_of(at(source, {"id"})), text_of(at(source, {"address"})),
                        text_of(at(source, {"state"})), text_of(at(source, {"frames"})),
                        text_of(at(source, {"datagrams"})), text_of(at(source, {"lost"})),
                        with_unit(at(source, {"skew_us"}), "{:.1f}", ""),
                        with_unit(at(source, {"last_seen_s"}), "{:.1f}", "")});
    }
    return "\nsources\n" + table(rows);
}

std::string modules_section(const json& modules) {
    if (!modules.is_array() || modules.empty()) return "";
    std::vector<Row> rows{{"bdm", "singles", "mean keV", "peak keV", "temp C"}};
    for (const json& module : modules) {
        rows.push_back({text_of(at(module, {"bdm"})), rate(at(module, {"singles_per_s"}), "/s"),
                        with_unit(at(module, {"mean_keV"}), "{:.1f}", ""),
                        with_unit(at(module, {"peak_keV"}), "{:.1f}", ""),
                        with_unit(at(module, {"temperature_C"}), "{:.1f}", "")});
    }
    return "\nmodules\n" + table(rows);
}

}  // namespace

std::string printable(std::string text) {
    for (char& c : text) {
        if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = '?';
    }
    return text;
}

std::string status_text(const json& status) {
    std::string text = fmt::format("petacqd {}\n", text_of(at(status, {"version"})));
    text += row("state", text_of(at(status, {"state"})));
    const std::string reasons = reasons_of(at(status, {"health"}));
    text += row("health", text_of(at(status, {"health", "state"})) + (reasons.empty() ? "" : ": " + reasons));
    text += row("uptime", age(at(status, {"uptime_s"})));
    text += row("back-end", text_of(at(status, {"backend"})));
    text += run_section(at(status, {"run"}));
    text += row("watermark", with_unit(at(status, {"watermark_s"}), "{:.3f}", " s"));

    const json& rates = at(status, {"rates"});
    text += "\nrates\n";
    text += row("datagrams", rate(at(rates, {"datagrams_per_s"}), "/s"));
    text += row("bytes", rate(at(rates, {"bytes_per_s"}), "B/s"));
    text += row("frames", rate(at(rates, {"frames_per_s"}), "/s"));
    text += row("singles", rate(at(rates, {"singles_per_s"}), "/s"));
    text += row("prompts", rate(at(rates, {"prompts_per_s"}), "/s"));
    text += row("delayeds", rate(at(rates, {"delayeds_per_s"}), "/s"));

    const json& ledger = at(status, {"ledger"});
    text += "\nledger: " + closed(at(ledger, {"closed"})) + "\n";
    for (const char* section : {"datagrams", "frames", "singles", "pairs"}) {
        text += ledger_section(section, at(ledger, {section}));
    }
    // Only where singles are saved.
    if (const json& saved = at(ledger, {"saved_singles"}); !all_zero(saved)) {
        text += ledger_section("saved_singles", saved);
    }
    text += sources_section(at(status, {"sources"}));
    text += modules_section(at(status, {"modules"}));
    return text;
}

std::string status_line(const json& status) {
    return fmt::format("{}  {}  run {}  up {}  frames {}  singles {}  prompts {}  delayeds {}  lost {}",
                       text_of(at(status, {"state"})), text_of(at(status, {"health", "state"})),
                       text_of(at(status, {"run", "id"})), age(at(status, {"uptime_s"})),
                       rate(at(status, {"rates", "frames_per_s"}), "/s"),
                       rate(at(status, {"rates", "singles_per_s"}), "/s"),
                       rate(at(status, {"rates", "prompts_per_s"}), "/s"),
                       rate(at(status, {"rates", "delayeds_per_s"}), "/s"),
                       text_of(at(status, {"ledger", "datagrams", "lost"})));
}

std::string stop_line(const json& result) {
    return fmt::format("run {} stopped: {} prompts, {} delayeds, ledger {}", text_of(at(result, {"run"})),
                       text_of(at(result, {"prompts"})), text_of(at(result, {"delayeds"})),
                       closed(at(result, {"ledger_closed"})));
}

std::vector<std::string> stop_problems(const json& result) {
    std::vector<std::string> problems;
    if (const json& failure = at(result, {"failure"}); !failure.is_null()) {
        problems.push_back("the run failed: " + text_of(failure));
    }
    if (at(result, {"ledger_closed"}) == false) {
        std::string problem = "the ledger does not close";
        if (const json& open = at(result, {"ledger", "open"}); open.is_array()) {
            for (const json& identity : open)
                problem += "; " + text_of(identity);
        }
        problems.push_back(problem);
    }
    return problems;
}

}  // namespace petacq::petctl
