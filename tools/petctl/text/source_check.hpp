// What is easily forgotten or mistyped about the source of a run.
#pragma once

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace petacq::petctl {

/// Of the parameters of `start`: replaces the assay "now" by the time `now`. Throws std::invalid_argument, in
/// the words of the options, for a value without another that it needs. Values are left to the daemon.
void complete_source(nlohmann::json& parameters, std::chrono::system_clock::time_point now);
/// Sentences about what is allowed and probably not meant.
std::vector<std::string> source_doubts(const nlohmann::json& parameters,
                                       std::chrono::system_clock::time_point now);

}  // namespace petacq::petctl
