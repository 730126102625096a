#include "daemon/run/operator_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "daemon/system/utc.hpp"

namespace petacq::daemon {

namespace {

using nlohmann::json;

constexpr double most_MBq = 1e6;  // NOLINT(readability-identifier-naming)
constexpr double max_bed_mm = 10'000;
constexpr std::size_t max_text_bytes = 256;
constexpr std::size_t max_keys = 32;
constexpr std::size_t max_name_bytes = 32;

[[noreturn]] void refuse(std::string_view name, std::string_view expected, const json& found) {
    constexpr std::size_t max_shown = 100;
    std::string shown = found.dump(-1, ' ', false, json::error_handler_t::replace);
    if (shown.size() > max_shown) shown = fmt::format("{} bytes", shown.size());
    throw std::invalid_argument(fmt::format("{}: expected {}, found {}", name, expected, shown));
}

const json* member(const json& said, const char* name) {
    const auto found = said.find(name);
    return found == said.end() || found->is_null() ? nullptr : &*found;
}

std::string text(const std::string& name, const json& value) {
    const auto* const found = value.get_ptr<const std::string*>();
    // Control characters would break lines and terminals; a NUL would end the text.
    const bool good = found != nullptr && !found->empty() && found->size() <= max_text_bytes &&
                      std::none_of(found->begin(), found->end(),
                                   [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
    if (!good) refuse(name, fmt::format("text of 1 to {} bytes on one line", max_text_bytes), value);
    return *found;
}

std::optional<double> number(const json& said, const char* name, double lowest, double highest,
                             std::string_view expected) {
    const json* const value = member(said, name);
    if (value == nullptr) return std::nullopt;
    const double found = value->is_number() ? value->get<double>() : std::nan("");
    // Not a number is in no range.
    if (!(found >= lowest && found <= highest)) refuse(name, expected, *value);
    return found;
}

/// A number that may be any: whether it is possible depends on the nuclide.
std::optional<double> any_number(const json& said, const char* name) {
    const double most = std::numeric_limits<double>::max();
    return number(said, name, -most, most, "a number");
}

std::optional<config::Nuclide> nuclide(const json& said) {
    const json* const value = member(said, "nuclide");
    const auto half_life_s = any_number(said, "half_life_s");
    const auto branching_ratio = any_number(said, "branching_ratio");
    if (value != nullptr)
        return config::declared_nuclide(text("nuclide", *value), half_life_s, branching_ratio);
    if (half_life_s || branching_ratio)
        throw std::invalid_argument("half_life_s, branching_ratio: need the nuclide that has them");
    return std::nullopt;
}

std::optional<std::chrono::system_clock::time_point> assay(const json& said) {
    const json* const value = member(said, "assay_utc");
    if (value == nullptr) return std::nullopt;
    std::optional<std::chrono::system_clock::time_point> time;
    if (value->is_string()) time = utc_time(value->get_ref<const std::string&>());
    if (!time) {
        refuse("assay_utc",
               "a time of ISO 8601 with Z or its distance from UTC, such as 2026-11-20T18:45:00Z or "
               "2026-11-20T19:45:00+01:00",
               *value);
    }
    return time;
}

std::map<std::string, std::string> keys(const json& said) {
    std::map<std::string, std::string> found;
    const json* const value = member(said, "keys");
    if (value == nullptr) return found;
    if (!value->is_object()) refuse("keys", "an object of names and texts", *value);
    if (value->size() > max_keys) {
        throw std::invalid_argument(
            fmt::format("keys: expected at most {}, found {}", max_keys, value->size()));
    }
    const auto lower = [](char c) { return c >= 'a' && c <= 'z'; };
    for (const auto& [name, content] : value->items()) {
        const bool good = !name.empty() && name.size() <= max_name_bytes && lower(name.front()) &&
                          std::all_of(name.begin(), name.end(),
                                      [&](char c) { return lower(c) || c == '_' || (c >= '0' && c <= '9'); });
        if (!good) {
            refuse("keys",
                   fmt::format("names of 1 to {} lower-case letters, digits and underscores, a letter first",
                               max_name_bytes),
                   name);
        }
        found[name] = text("keys." + name, content);
    }
    return found;
}

/// Absent if it is not known.
std::optional<double> activity_at(const OperatorData& data, std::chrono::system_clock::time_point start) {
    if (!data.nuclide || !data.activity_MBq || !data.assay) return std::nullopt;
    const std::chrono::duration<double> since = start - *data.assay;
    return *data.activity_MBq * std::exp2(-since.count() / data.nuclide->half_life_s);
}

/// Activity without nuclide and assay has no value at the start of the run; an assay is of an activity.
void check_source(const OperatorData& data, std::chrono::system_clock::time_point start) {
    const auto missing = [](const char* what, const char* why) {
        throw std::invalid_argument(fmt::format("{}: {}", what, why));
    };
    if (data.activity_MBq && !data.nuclide)
        missing("activity_MBq", "needs the nuclide, because it decays until the run starts");
    if (data.activity_MBq && !data.assay)
        missing("activity_MBq", "needs assay_utc, the time at which it was measured");
    if (data.assay && !data.activity_MBq)
        missing("assay_utc", "needs activity_MBq, which was measured at that time");
    if (const auto activity = activity_at(data, start); activity && !(*activity <= most_MBq)) {
        const std::string makes = std::isfinite(*activity)
                                      ? fmt::format("makes {:.3g} MBq", *activity)
                                      : "lies so far ahead that no number holds the activity";
        throw std::invalid_argument(
            fmt::format("assay_utc: {} at the start of the run, expected at most {:g} MBq", makes, most_MBq));
    }
}

}  // namespace

OperatorData operator_data(const json& said, std::chrono::system_clock::time_point start) {
    OperatorData data;
    if (!said.is_object()) return data;
    data.nuclide = nuclide(said);
    if (const json* const source = member(said, "nuclide_source")) {
        if (!data.nuclide) throw std::invalid_argument("nuclide_source: needs the nuclide that it is about");
        data.nuclide_source = text("nuclide_source", *source);
    }
    data.activity_MBq =
        number(said, "activity_MBq", 1e-9, most_MBq, fmt::format("a number from 1e-9 to {:g} MBq", most_MBq));
    data.assay = assay(said);
    data.bed_mm = number(said, "bed_mm", -max_bed_mm, max_bed_mm,
                         fmt::format("a number from {:g} to {:g} mm", -max_bed_mm, max_bed_mm));
    if (const json* const subject = member(said, "subject")) data.subject = text("subject", *subject);
    data.keys = keys(said);
    check_source(data, start);
    return data;
}

std::optional<StatedActivity> stated_activity(const OperatorData& data) {
    if (!data.nuclide) return std::nullopt;
    return StatedActivity{data.nuclide->name, data.nuclide->half_life_s, data.nuclide->branching_ratio,
                          data.activity_MBq, data.assay};
}

json to_json(const OperatorData& data, std::chrono::system_clock::time_point start) {
    json document;
    if (data.nuclide) {
        document["nuclide"] = data.nuclide->name;
        document["half_life_s"] = data.nuclide->half_life_s;
        document["branching_ratio"] = data.nuclide->branching_ratio;
    }
    if (data.nuclide_source) document["nuclide_source"] = *data.nuclide_source;
    if (const auto activity = activity_at(data, start)) document["activity_at_start_MBq"] = *activity;
    if (data.activity_MBq) document["activity_MBq"] = *data.activity_MBq;
    if (data.assay) document["assay_utc"] = utc_text(*data.assay);
    if (data.bed_mm) document["bed_mm"] = *data.bed_mm;
    if (data.subject) document["subject"] = *data.subject;
    if (!data.keys.empty()) document["keys"] = data.keys;
    return document;
}

}  // namespace petacq::daemon
