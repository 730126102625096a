// Reads the images that petlm image writes.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

namespace petacq::test {

/// A NIfTI-1 file of 32-bit floats.
struct ImageFile {
    std::size_t n[3] = {};  // NOLINT(modernize-avoid-c-arrays)
    double voxel = 0;
    double origin[3] = {};  // NOLINT(modernize-avoid-c-arrays)
    std::vector<float> values;

    explicit ImageFile(const std::filesystem::path& file) {
        const std::string bytes = read_file(file);
        REQUIRE(bytes.size() > 352);
        for (std::size_t axis = 0; axis < 3; ++axis) {
            std::int16_t count = 0;
            float at = 0;
            std::memcpy(&count, bytes.data() + 42 + 2 * axis, sizeof count);
            std::memcpy(&at, bytes.data() + 292 + 16 * axis, sizeof at);
            n[axis] = static_cast<std::size_t>(count);
            origin[axis] = at;
        }
        float size = 0;
        std::memcpy(&size, bytes.data() + 80, sizeof size);
        voxel = size;
        values.resize(n[0] * n[1] * n[2]);
        REQUIRE(bytes.size() == 352 + 4 * values.size());
        std::memcpy(values.data(), bytes.data() + 352, 4 * values.size());
    }
    /// Calls use(value, x, y, z in mm).
    template <class Use>
    void each(Use use) const {
        for (std::size_t i = 0; i < values.size(); ++i) {
            const std::size_t x = i % n[0];
            const std::size_t y = i / n[0] % n[1];
            const std::size_t z = i / n[0] / n[1];
            use(values[i], origin[0] + voxel * static_cast<double>(x),
                origin[1] + voxel * static_cast<double>(y), origin[2] + voxel * static_cast<double>(z));
        }
    }
    /// Of the voxels whose middle is inside(x, y, z).
    template <class Inside>
    [[nodiscard]] double mean(Inside inside) const {
        double sum = 0;
        double count = 0;
        each([&](float value, double x, double y, double z) {
            if (!inside(x, y, z)) return;
            sum += value;
            ++count;
        });
        REQUIRE(count > 0);
        return sum / count;
    }
};

}  // namespace petacq::test
