// What the list-mode tests share: a directory of their own, records, waiting.
#pragma once

#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "gpu/types.hpp"
#include "tests/catch.hpp"

namespace petacq::test {

/// Matches text that holds `part`; the two versions of Catch2 name it differently.
inline auto contains(const std::string& part) {
#if __has_include(<catch2/catch_all.hpp>)
    return Catch::Matchers::ContainsSubstring(part);
#else
    return Catch::Matchers::Contains(part);
#endif
}

/// Gone with everything in it at the end of the test.
class TemporaryDirectory {
  public:
    TemporaryDirectory() {
        std::string name = (std::filesystem::temp_directory_path() / "petacq-listmode-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
        path_ = name;
    }
    ~TemporaryDirectory() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TemporaryDirectory(const TemporaryDirectory&) = delete;
    TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
    [[nodiscard]] std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
};

/// The i-th of a sequence in order; energies print the same in C++ and Python.
inline gpu::Coincidence pair_number(std::uint64_t i) {
    gpu::Coincidence pair;
    pair.time = 1000 + 10 * i;
    pair.dt = static_cast<std::uint32_t>(i % 7);
    pair.crystal_a = static_cast<std::uint32_t>(i * 31 % 5000);
    pair.crystal_b = static_cast<std::uint32_t>(i * 17 % 5000);
    pair.energy_a = 511.25F + static_cast<float>(i % 100);
    pair.energy_b = 400.5F + static_cast<float>(i % 50);
    pair.kind = i % 5 == 0 ? gpu::Kind::delayed : gpu::Kind::prompt;
    return pair;
}

inline std::vector<gpu::Coincidence> pairs(std::uint64_t count, std::uint64_t first = 0) {
    std::vector<gpu::Coincidence> out;
    for (std::uint64_t i = 0; i < count; ++i)
        out.push_back(pair_number(first + i));
    return out;
}

inline bool same(const gpu::Coincidence& a, const gpu::Coincidence& b) {
    return a.time == b.time && a.dt == b.dt && a.crystal_a == b.crystal_a && a.crystal_b == b.crystal_b &&
           a.energy_a == b.energy_a && a.energy_b == b.energy_b && a.kind == b.kind;
}

inline bool same(const std::vector<gpu::Coincidence>& a, const std::vector<gpu::Coincidence>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const auto& x, const auto& y) { return same(x, y); });
}

inline std::string contents_of(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

inline void put(const std::filesystem::path& path, const std::string& contents) {
    std::ofstream(path, std::ios::binary) << contents;
}

/// False when it has not become true within a generous time.
template <class Condition>
bool becomes_true(Condition condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!condition()) {
        if (std::chrono::steady_clock::now() > end) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
}

}  // namespace petacq::test
