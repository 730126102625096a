#include "tools/petlm/resort/search/settings.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "config/base/ticks.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/records/interval/in_seconds.hpp"

namespace petacq::petlm {
namespace {

/// The largest limit that a configuration may have.
constexpr double any_energy_keV = 1'000'000;  // NOLINT(readability-identifier-naming)

/// Sets the given limits. A limit that is not given is that of the saved singles.
void narrow(nlohmann::json& energy, const ResortOptions& options) {
    if (!options.lower_keV && !options.upper_keV) return;
    const bool filtered = energy.at("filter").get<bool>();
    const double lowest = filtered ? energy.at("lower_keV").get<double>() : 0;
    const double highest = filtered ? energy.at("upper_keV").get<double>() : any_energy_keV;
    const double lower = options.lower_keV.value_or(lowest);
    const double upper = options.upper_keV.value_or(highest);
    const auto refuse = [&](const char* option, double found) {
        throw UsageError(fmt::format("{} {}: the run has saved singles from {} to {} keV", option, found,
                                     lowest, highest));
    };
    if (lower < lowest) refuse("--lower-kev", lower);
    if (upper > highest) refuse("--upper-kev", upper);
    energy = {{"filter", true}, {"lower_keV", lower}, {"upper_keV", upper}};
}

}  // namespace

ResortOptions in_ticks(ResortOptions options, const nlohmann::json& run) {
    using config::Rounding;
    if (!options.window_ns && !options.delay_ns && !options.input.in_seconds.any()) return options;
    const double tick_ps = tick_ps_of(run.at("scanner"), options.input.runs.front());
    const auto ticks = [&](const char* option, const std::string& ns, Rounding rounding) {
        return option_ticks(option, ns, config::TimeUnit::ns, tick_ps, rounding);
    };
    if (options.window_ns) {
        const std::uint64_t window = ticks("--window-ns", *options.window_ns, Rounding::down);
        if (window > INT32_MAX) {
            throw UsageError(fmt::format("--window-ns {}: {} ticks; expected at most {}", *options.window_ns,
                                         window, INT32_MAX));
        }
        options.window_ticks = static_cast<std::uint32_t>(window);
    }
    if (options.delay_ns) options.delay_ticks = ticks("--delay-ns", *options.delay_ns, Rounding::nearest);
    set_ticks(options.input.in_seconds, tick_ps, options.input.from, options.input.to);
    return options;
}

config::Configuration resort_configuration(const nlohmann::json& run, const ResortOptions& options,
                                           std::uint32_t slice_singles) {
    nlohmann::json document = run.at("configuration");
    nlohmann::json& coincidence = document["coincidence"];
    const auto set = [](nlohmann::json& object, const char* key, const auto& value) {
        if (value) object[key] = *value;
    };
    set(coincidence, "window_ticks", options.window_ticks);
    set(coincidence, "window_mode", options.window_mode);
    set(coincidence, "multiples_policy", options.multiples_policy);
    set(coincidence, "max_multiplicity", options.max_multiplicity);
    set(coincidence, "min_module_difference", options.min_module_difference);
    set(coincidence, "max_ring_difference", options.max_ring_difference);
    set(coincidence, "delay_ticks", options.delay_ticks);
    set(coincidence, "delayeds", options.delayeds);
    if (options.no_delay) coincidence.erase("delay_ticks");
    narrow(document.at("energy"), options);
    document["pipeline"]["backend"] = options.backend;
    document["pipeline"].erase("devices");  // those of the host of the run
    document["pipeline"]["threads"] = 1;
    document["pipeline"]["slice_frames"] = slice_singles;
    document["pipeline"]["max_pending_singles"] = std::uint64_t{16} * slice_singles;
    document["spectra"] = {{"enabled", false}};  // those of frames: singles have none
    document["gammas"] = nullptr;                // resort finds pairs alone
    document["listmode"]["write_singles"] = false;
    document["listmode"]["write_coincidences"] = true;  // of a run of singles alone, too
    return config::configuration_from_json(document, "/");
}

}  // namespace petacq::petlm
