#include "tools/petctl/text/start_times.hpp"

#include <nlohmann/json.hpp>
#include <string>

#include "config/base/error.hpp"
#include "config/base/ticks.hpp"
#include "config/nuclides/nuclides.hpp"
#include "tools/petctl/text/values.hpp"

namespace petacq::petctl {

using nlohmann::json;

namespace {

void replace(json& parameters, const char* seconds, const char* ticks, const char* option, double tick_ps) {
    if (!parameters.contains(seconds)) return;
    try {
        parameters[ticks] =
            config::ticks_of(parameters[seconds], config::TimeUnit::s, tick_ps, config::Rounding::up);
    } catch (const config::Error& error) {
        throw config::Error(std::string(option) + ": " + error.what());
    }
    parameters.erase(seconds);
}

}  // namespace

bool in_seconds(const json& parameters) {
    return parameters.contains("start_s") || parameters.contains("stop_s");
}

std::string start_text(const json& parameters) {
    if (parameters.contains("start_s")) return parameters["start_s"].get<std::string>() + " s";
    if (parameters.contains("start_ticks")) return parameters["start_ticks"].dump() + " ticks";
    return "";
}

void replace_seconds(json& parameters, double tick_ps) {
    replace(parameters, "start_s", "start_ticks", "--from-s", tick_ps);
    replace(parameters, "stop_s", "stop_ticks", "--to-s", tick_ps);
}

std::string gammas_note(const json& parameters, const json& status) {
    std::string note = config::prompt_gamma_note(parameters.value("nuclide", ""));
    if (!note.empty() && at(status, {"common", "gammas_lower_keV"}).is_null())
        note += " The gammas are not recorded: the configuration of the daemon has no section gammas.";
    return note;
}

}  // namespace petacq::petctl
