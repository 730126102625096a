// Shared by the tests of config/.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "config/base/error.hpp"
#include "config/scanner/scanner.hpp"
#include "tests/support/files.hpp"
#include "tests/support/temporary_directory.hpp"

namespace petacq::test {

/// The message of the config::Error that f throws, or "".
template <class F>
std::string complaint(F&& f) {
    try {
        f();
    } catch (const config::Error& e) {
        return e.what();
    }
    return "";
}

/// "" if every part occurs in the text; otherwise the missing part and the text, so that a failing check
/// shows both.
inline std::string lacking(const std::string& text, std::initializer_list<std::string_view> parts) {
    for (const std::string_view part : parts) {
        if (text.find(part) == std::string::npos) return "no \"" + std::string(part) + "\" in: " + text;
    }
    return "";
}

inline std::filesystem::path example(const std::string& name) {
    return std::filesystem::path(PETACQ_SOURCE_DIR) / "config" / "examples" / name;
}

inline nlohmann::json json_of(const std::filesystem::path& file) {
    return nlohmann::json::parse(read_file(file));
}

/// Very few crystals, and different numbers in all dimensions.
inline config::Scanner tiny_scanner() {
    config::Scanner s;
    s.name = "tiny";
    s.tick_ps = 10;
    s.geometry = {3, {1, 2, 1}, {1, 1, 2}, {1, 3, 2}, 6, 2, 16};
    s.dimensions = {20, 1.5, 1.6, 10, 0.2, 0.3, 0.4};
    return s;
}

}  // namespace petacq::test
