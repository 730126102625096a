#include "tools/petlm/resort/search/settings.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "config/base/ticks.hpp"
#include "daemon/coverage/unknown.hpp"
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

bool asks_for_gammas(const ResortOptions& o) {
    return o.gamma_lower_keV || o.gamma_upper_keV || o.gamma_before_ticks || o.gamma_after_ticks ||
           o.gamma_policy || o.gamma_delay_ticks || o.no_gamma_delay;
}

/// `saved`: the configuration of the saved singles.
void check_saved(const nlohmann::json& gammas, const nlohmann::json& saved) {
    const nlohmann::json& energy = saved.at("energy");
    if (!energy.at("filter").get<bool>()) return;
    std::string windows;
    const auto inside = [&](const nlohmann::json& window) {
        const double lower = window.at("lower_keV").get<double>();
        const double upper = window.at("upper_keV").get<double>();
        windows += fmt::format("{}{} to {} keV", windows.empty() ? "" : " and ", lower, upper);
        return lower <= gammas.at("lower_keV").get<double>() && gammas.at("upper_keV").get<double>() <= upper;
    };
    const nlohmann::json of_run = saved.value("gammas", nlohmann::json());
    if (inside(energy) || (of_run.is_object() && inside(of_run))) return;
    throw UsageError(
        fmt::format("--gamma-lower-kev {}, --gamma-upper-kev {}: the run has saved singles from {}",
                    gammas.at("lower_keV").dump(), gammas.at("upper_keV").dump(), windows));
}

/// The section of the gammas, which a run without them need not have.
void set_gammas(nlohmann::json& document, const nlohmann::json& saved, const ResortOptions& options) {
    nlohmann::json gammas = document.value("gammas", nlohmann::json());
    if (options.no_gammas || (gammas.is_null() && !asks_for_gammas(options))) {
        document["gammas"] = nullptr;
        return;
    }
    const auto set = [&](const char* key, const char* option, const auto& value) {
        if (value) gammas[key] = *value;
        if (option != nullptr && !gammas.contains(key))
            throw UsageError(fmt::format("the run has no gammas: expected {}, too", option));
    };
    set("lower_keV", "--gamma-lower-kev", options.gamma_lower_keV);
    set("upper_keV", "--gamma-upper-kev", options.gamma_upper_keV);
    set("before_ticks", "--gamma-before-ticks or --gamma-before-ns", options.gamma_before_ticks);
    set("after_ticks", "--gamma-after-ticks or --gamma-after-ns", options.gamma_after_ticks);
    set("policy", nullptr, options.gamma_policy);
    set("delay_ticks", nullptr, options.gamma_delay_ticks);
    if (options.no_gamma_delay) gammas.erase("delay_ticks");
    check_saved(gammas, saved);
    document["gammas"] = gammas;
}

/// What a daemon must be told, and an imported run cannot know: no board sends to a search.
void complete(nlohmann::json& configuration) {
    for (const char* file : {"scanner", "calibration", "data_dir"})
        if (!configuration.contains(file)) configuration[file] = "unknown";
    if (!configuration.contains("receive")) {
        configuration["receive"] = {{"sockets", {{{"port", 1}}}}};
        configuration["sources"] = {{"accept_any", true}};
    }
}

/// Records without energies have 0: any window would leave out all, and of equal ones no single wins.
void check_energies_of(const std::filesystem::path& target, const nlohmann::json& run,
                       const config::Configuration& configuration) {
    if (!run.contains("imported")) return;
    if (daemon::tells(daemon::coverage_of_run(run), daemon::unknown_energies)) return;
    const auto refuse = [&](const std::string& asked, const char* expected) {
        throw UsageError(fmt::format("{}: the singles of {} do not tell {}; expected {}", asked,
                                     target.string(), daemon::unknown_energies, expected));
    };
    if (configuration.energy.filter) refuse("--lower-kev, --upper-kev", "no window of energies");
    using Policy = config::MultiplesPolicy;
    const Policy policy = configuration.coincidence.multiples_policy;
    if (policy == Policy::take_winner_of_goods || policy == Policy::take_winner_if_is_good ||
        policy == Policy::take_winner_if_all_are_goods) {
        refuse(fmt::format("--policy {}", config::name_of(policy)),
               "RemoveMultiples, TakeAllGoods or TakeIfOnlyOneGood, which ask for no energies");
    }
}

}  // namespace

ResortOptions in_ticks(ResortOptions options, const nlohmann::json& run) {
    using config::Rounding;
    if (!options.window_ns && !options.delay_ns && !options.gamma_before_ns && !options.gamma_after_ns &&
        !options.gamma_delay_ns && !options.input.in_seconds.any())
        return options;
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
    if (const auto& ns = options.gamma_before_ns)
        options.gamma_before_ticks = ticks("--gamma-before-ns", *ns, Rounding::down);
    if (const auto& ns = options.gamma_after_ns)
        options.gamma_after_ticks = ticks("--gamma-after-ns", *ns, Rounding::down);
    if (const auto& ns = options.gamma_delay_ns)
        options.gamma_delay_ticks = ticks("--gamma-delay-ns", *ns, Rounding::nearest);
    set_ticks(options.input.in_seconds, tick_ps, options.input.from, options.input.to);
    return options;
}

config::Configuration resort_configuration(const nlohmann::json& run, const ResortOptions& options,
                                           std::uint32_t slice_singles) {
    nlohmann::json document = run.at("configuration");
    if (run.contains("imported")) complete(document);
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
    if (!coincidence.contains("window_ticks") && !coincidence.contains("window_ns"))
        throw UsageError("the run has no coincidence window: expected --window-ticks or --window-ns");
    narrow(document.at("energy"), options);
    set_gammas(document, run.at("configuration"), options);
    document["pipeline"]["backend"] = options.backend;
    document["pipeline"].erase("devices");  // those of the host of the run
    document["pipeline"]["threads"] = 1;
    document["pipeline"]["slice_frames"] = slice_singles;
    document["pipeline"]["max_pending_singles"] = std::uint64_t{16} * slice_singles;
    document["spectra"] = {{"enabled", false}};  // those of frames: singles have none
    document["listmode"]["write_singles"] = false;
    document["listmode"]["write_coincidences"] = true;  // of a run of singles alone, too
    config::Configuration configuration = config::configuration_from_json(document, "/");
    check_energies_of(options.input.runs.front(), run, configuration);
    return configuration;
}

void check_energies(const Inputs& inputs, const config::Configuration& configuration) {
    for (std::size_t i = 0; i < inputs.runs.size(); ++i)
        check_energies_of(inputs.runs[i], inputs.documents[i], configuration);
}

}  // namespace petacq::petlm
