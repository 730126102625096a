// Prints the answer of a command, as text or as a JSON document of the same facts, and its warnings and
// errors. On a terminal they have colours (colour.hpp).
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace petacq::config {

/// Prints text on standard output in that colour (colour::bad, ...; "": none). The colour does not go past
/// the last line break. Other escape sequences in the text have no effect.
void print_coloured(std::string_view text, const char* colour);
/// "PROGRAM: TEXT" on standard error, in the colour of warnings.
void print_warning(std::string_view program, std::string_view text);
/// The same in the colour of errors, for what ends a command.
void print_error(std::string_view program, std::string_view text);

/// Throws IoError if standard output cannot be written, unless its reader has gone away.
void flush_output();
/// Prints the text, which ends in a line break, or with `as_json` the facts and nothing else. Throws as
/// flush_output().
void print_answer(const nlohmann::json& facts, const std::string& text, bool as_json);

/// The answer of a command that writes files.
struct Written {
    nlohmann::json facts = nlohmann::json::object();
    std::string text;  ///< the facts for people
    std::vector<std::filesystem::path> files;
    std::vector<std::string> warnings;  ///< a sentence each
    /// Warnings that were printed when they were known, so that a later failure does not hide them.
    std::vector<std::string> printed{};
};
/// Prints the warnings on standard error, and then the answer as print_answer() does. The JSON document also
/// lists the files and all warnings, as "files" and "warnings".
void print_written(Written written, bool as_json, std::string_view program);

}  // namespace petacq::config
