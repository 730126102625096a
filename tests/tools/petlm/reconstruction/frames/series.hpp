// Series of images as files, and curves of regions.
#pragma once

#include <cstring>
#include <map>
#include <sstream>

#include "tests/tools/petlm/reconstruction/scans.hpp"

namespace petacq::test {

/// The normalisation n.h5 of the scanner.
inline void flood(const Scans& scans) {
    scans.acquire("flood", "--cylinder 0,0,0,10,20,0.6 --duration-s 10 --seed 40 --scatter 0");
    scans.normalise("flood");
}

/// A 4D NIfTI file, by the offsets of nifti1.h.
struct Series {
    std::string bytes;
    std::size_t volume = 1;  ///< bytes of one

    explicit Series(const std::filesystem::path& file) : bytes(read_file(file)) {
        REQUIRE(number<std::int16_t>(40) == 4);
        for (std::size_t axis = 1; axis <= 3; ++axis)
            volume *= static_cast<std::size_t>(number<std::int16_t>(40 + 2 * axis));
        volume *= sizeof(float);
        REQUIRE(bytes.size() == 352 + volume * frames());
    }
    template <class T>
    [[nodiscard]] T number(std::size_t offset) const {
        T value;
        std::memcpy(&value, bytes.data() + offset, sizeof value);
        return value;
    }
    [[nodiscard]] std::size_t frames() const { return static_cast<std::size_t>(number<std::int16_t>(48)); }
    [[nodiscard]] std::string frame(std::size_t i) const { return bytes.substr(352 + i * volume, volume); }
};

inline std::string values_of(const std::filesystem::path& image) {
    return read_file(image).substr(352);
}

/// The rows of curves.csv, by region.
inline std::map<std::string, std::vector<std::vector<std::string>>> curves(
    const std::filesystem::path& file) {
    std::map<std::string, std::vector<std::vector<std::string>>> out;
    std::istringstream in(read_file(file));
    std::string line;
    std::getline(in, line);
    while (std::getline(in, line)) {
        std::vector<std::string> cells;
        std::istringstream row(line);
        for (std::string cell; std::getline(row, cell, ',');)
            cells.push_back(cell);
        out[cells.at(0)].push_back(cells);
    }
    return out;
}

}  // namespace petacq::test
