// Strict reading of JSON: bounded size and depth, valid UTF-8, no duplicate keys. People write configurations
// by hand, so comments (// to the end of the line, and /* */) are allowed.
// Every program reads JSON through this file. A reader that is not strict calls json_nested_deeper() before
// it parses: copying, printing and comparing JSON recurse, so a deeply nested document would exhaust the
// stack.
#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "config/base/error.hpp"

namespace petacq::config {

inline constexpr std::size_t max_json_bytes = std::size_t{4} << 20;
/// The limit for run.json and histograms.json, which grow with the scanner.
inline constexpr std::size_t max_run_json_bytes = std::size_t{64} << 20;
inline constexpr std::size_t max_json_depth = 32;

/// Whether brackets outside strings and comments are nested deeper than `levels`. Needs no memory.
bool json_nested_deeper(std::string_view text, std::size_t levels = max_json_depth);

/// Throws Error naming the file and, where there is one, the line and column.
nlohmann::json read_json_file(const std::filesystem::path& file, std::size_t max_bytes = max_json_bytes);
/// The same for text; the error does not name a file.
nlohmann::json parse_json(std::string_view text);

/// Calls f and prefixes an Error that it throws with the name of the file.
template <class F>
auto naming_file(const std::filesystem::path& file, F&& f) {
    try {
        return f();
    } catch (const IoError&) {
        throw;
    } catch (const Error& e) {
        throw Error(file.string() + ": " + e.what());
    }
}

}  // namespace petacq::config
