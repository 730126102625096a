// JSON values as text for people. A value that is missing, null or of another type becomes "-".
#pragma once

#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "config/base/printable.hpp"

namespace petacq::petctl {

/// The value at the end of a path of keys; null if a key of the path is missing.
const nlohmann::json& at(const nlohmann::json& document, std::initializer_list<const char*> path);

using config::printable;

/// Strings unchanged, integers in groups of three digits, booleans as yes or no.
std::string text_of(const nlohmann::json& value);
/// "1,234 prompts", "1 prompt"
std::string counted(const nlohmann::json& value, std::string_view one, std::string_view several);
/// 5234567 and "B/s": "5.235 MB/s".
std::string scaled(const nlohmann::json& value, std::string_view unit);
/// 0.0123: "1.23 %".
std::string percent(const nlohmann::json& value);
/// `format` is an fmt format for a double.
std::string with_unit(const nlohmann::json& value, const char* format, std::string_view unit);
/// Seconds: "12.3 s", "5 min 02 s", "3 h 20 min", "4 d 01 h".
std::string duration(const nlohmann::json& seconds);
/// Writes the document to the standard output, for programs: indented, with nothing that a terminal acts
/// upon.
void print_json(const nlohmann::json& document);
/// "closed", "NOT CLOSED".
std::string closed(const nlohmann::json& value);

}  // namespace petacq::petctl
