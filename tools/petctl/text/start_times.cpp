#include "tools/petctl/text/start_times.hpp"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <regex>
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

std::string refusal_in_seconds(const std::string& message, double tick_ps) {
    static const std::regex times("\\b(start_ticks|stop_ticks|[0-9]+)\\b( ticks\\b)?");
    if (message.find("start_ticks") == std::string::npos && message.find("stop_ticks") == std::string::npos)
        return message;
    std::string text;
    std::size_t end = 0;
    for (std::sregex_iterator found(message.begin(), message.end(), times), none; found != none; ++found) {
        text += message.substr(end, static_cast<std::size_t>(found->position()) - end);
        end = static_cast<std::size_t>(found->position() + found->length());
        const std::string word = (*found)[1];
        text += word == "start_ticks"  ? "--from-s"
                : word == "stop_ticks" ? "--to-s"
                                       : fmt::format("{:.12g} s", std::stod(word) * tick_ps * 1e-12);
    }
    return text + message.substr(end);
}

std::string gammas_note(const json& parameters, const json& status) {
    std::string note = config::prompt_gamma_note(parameters.value("nuclide", ""));
    if (!note.empty() && at(status, {"common", "gammas_lower_keV"}).is_null())
        note += " The gammas are not recorded: the configuration of the daemon has no section gammas.";
    return note;
}

}  // namespace petacq::petctl
