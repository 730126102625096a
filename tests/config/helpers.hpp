// What the tests of config/ share.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

#include "config/error.hpp"
#include "config/scanner.hpp"

namespace petacq::test {

/// A directory of its own that goes away with it.
class TempDir {
  public:
    TempDir() {
        std::string name = (std::filesystem::temp_directory_path() / "petacq-config-XXXXXX").string();
        if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
        path_ = name;
    }
    ~TempDir() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TempDir(const TempDir&) = delete;
    TempDir& operator=(const TempDir&) = delete;
    std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
};

inline void write_file(const std::filesystem::path& file, std::string_view content) {
    std::ofstream(file, std::ios::binary) << content;
}

inline std::string read_file(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

/// What f complains of; "" when it does not throw a config::Error.
template <class F>
std::string complaint(F&& f) {
    try {
        f();
    } catch (const config::Error& e) {
        return e.what();
    }
    return "";
}

/// "" when every part occurs in the text, else the text: so that a failing check shows it.
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

/// A handful of crystals, nothing equal to anything else.
inline config::Scanner tiny_scanner() {
    config::Scanner s;
    s.name = "tiny";
    s.tick_ps = 10;
    s.geometry = {3, {1, 2, 1}, {1, 1, 2}, {1, 3, 2}, 6, 2, 16};
    s.dimensions = {20, 1.5, 1.6, 10, 0.2, 0.3, 0.4};
    return s;
}

}  // namespace petacq::test
