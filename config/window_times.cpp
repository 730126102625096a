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

/// In `coincidence`: NAME_ns becomes NAME_ticks.
void replace(json& coincidence, const std::string& name, double tick_ps, Rounding rounding) {
    const std::string ns = name + "_ns";
    const std::string ticks = name + "_ticks";
    if (!given(coincidence, ns)) return;
    if (given(coincidence, ticks)) {
        throw Error("/coincidence/" + ns + ": expected either " + ns + " or " + ticks + ", found both");
    }
    try {
        coincidence[ticks] = ticks_of(coincidence[ns].dump(), TimeUnit::ns, tick_ps, rounding);
    } catch (const Error& error) {
        throw Error("/coincidence/" + ns + ": " + error.what());
    }
    coincidence[ns] = nullptr;
}

}  // namespace

void replace_window_times(json& document) {
    json& coincidence = document.at("coincidence");
    if (!given(coincidence, "window_ns") && !given(coincidence, "window_ticks")) {
        throw Error(
            "/coincidence/window_ticks: missing; expected an integer from 0 to 2147483647, or window_ns");
    }
    if (given(coincidence, "window_ns") || given(coincidence, "delay_ns")) {
        const Scanner scanner = load_scanner(document.at("scanner").get<std::string>());
        replace(coincidence, "window", scanner.tick_ps, Rounding::down);
        replace(coincidence, "delay", scanner.tick_ps, Rounding::nearest);
        apply_schema(configuration_schema(), document);  // the ranges of the ticks
    }
    coincidence.erase("window_ns");
    coincidence.erase("delay_ns");
}

}  // namespace petacq::config
