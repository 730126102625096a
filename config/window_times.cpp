#include "config/window_times.hpp"

#include <nlohmann/json.hpp>
#include <string>

#include "config/base/error.hpp"
#include "config/base/json_schema.hpp"
#include "config/base/ticks.hpp"
#include "config/configuration.hpp"
#include "config/scanner/scanner.hpp"

namespace petacq::config {

namespace {

using nlohmann::json;

bool given(const json& section, const std::string& key) {
    return section.contains(key) && !section.at(key).is_null();
}

struct Time {
    const char* section;
    const char* name;
    Rounding rounding;
    bool required;
};
constexpr Time times[] = {
    {"coincidence", "window", Rounding::down, true}, {"coincidence", "delay", Rounding::nearest, false},
    {"gammas", "before", Rounding::down, true},      {"gammas", "after", Rounding::down, true},
    {"gammas", "delay", Rounding::nearest, false},
};

/// NAME_ns becomes NAME_ticks.
void replace(json& section, const Time& time, double tick_ps) {
    const std::string ns = std::string(time.name) + "_ns";
    const std::string ticks = std::string(time.name) + "_ticks";
    const std::string path = "/" + std::string(time.section) + "/" + ns;
    if (!given(section, ns)) return;
    if (given(section, ticks))
        throw Error(path + ": expected either " + ns + " or " + ticks + ", found both");
    try {
        section[ticks] = ticks_of(section[ns].dump(), TimeUnit::ns, tick_ps, time.rounding);
    } catch (const Error& error) {
        throw Error(path + ": " + error.what());
    }
    section[ns] = nullptr;
}

}  // namespace

void replace_window_times(json& document) {
    bool any = false;
    for (const Time& time : times) {
        const json& section = document.at(time.section);
        if (section.is_null()) continue;
        const std::string name = time.name;
        const bool in_ns = given(section, name + "_ns");
        if (time.required && !in_ns && !given(section, name + "_ticks")) {
            const std::string path = std::string("/") + time.section + "/" + name;
            throw Error(path + "_ticks: missing; expected an integer from 0 to 2147483647, or " + name +
                        "_ns");
        }
        any = any || in_ns;
    }
    if (any) {
        const Scanner scanner = load_scanner(document.at("scanner").get<std::string>());
        for (const Time& time : times) {
            json& section = document.at(time.section);
            if (!section.is_null()) replace(section, time, scanner.tick_ps);
        }
        apply_schema(configuration_schema(), document);  // the ranges of the ticks
    }
    for (const Time& time : times) {
        json& section = document.at(time.section);
        if (!section.is_null()) section.erase(std::string(time.name) + "_ns");
    }
}

}  // namespace petacq::config
