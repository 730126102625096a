// Strict reading of a JSON file: bounded size and depth, valid UTF-8, no duplicate keys.
#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "config/error.hpp"

namespace petacq::config {

inline constexpr std::size_t max_json_bytes = std::size_t{4} << 20;
inline constexpr int max_json_depth = 32;

/// Throws Error naming the file and, where there is one, the line and column.
nlohmann::json read_json_file(const std::filesystem::path& file);
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
