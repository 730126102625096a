// Of what the operator asks for with a start: its times in ticks, and what to say of its nuclide.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace petacq::petctl {

/// Whether the parameters of `start` have `start_s` or `stop_s`, which are strings with decimal numbers and
/// which the daemon does not know.
bool in_seconds(const nlohmann::json& parameters);
/// The start that is asked for, as the operator wrote it: "12.5 s", "800 ticks"; empty: at once.
std::string start_text(const nlohmann::json& parameters);
/// Replaces them by `start_ticks` and `stop_ticks`, the first tick at or after each. `tick_ps`: of the
/// status, above 0. Throws config::Error that names the option.
void replace_seconds(nlohmann::json& parameters, double tick_ps);
/// A refusal of the daemon, "start_ticks 5 has passed: ...", in the words of the options: "--from-s 5e-11 s
/// ...". Other messages stay as they are.
std::string refusal_in_seconds(const std::string& message, double tick_ps);
/// That the nuclide emits prompt gammas, and whether they are recorded, by the status of the daemon. Empty if
/// it emits none, or none is given.
std::string gammas_note(const nlohmann::json& parameters, const nlohmann::json& status);

}  // namespace petacq::petctl
