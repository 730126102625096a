// Records for the list-mode tests.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "gpu/base/records.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/files.hpp"
#include "tests/support/temporary_directory.hpp"

namespace petacq::test {

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

inline gpu::RecordVector<gpu::Coincidence> pairs(std::uint64_t count, std::uint64_t first = 0) {
    gpu::RecordVector<gpu::Coincidence> out;
    for (std::uint64_t i = 0; i < count; ++i)
        out.push_back(pair_number(first + i));
    return out;
}

inline bool same(const gpu::Coincidence& a, const gpu::Coincidence& b) {
    return a.time == b.time && a.dt == b.dt && a.crystal_a == b.crystal_a && a.crystal_b == b.crystal_b &&
           a.energy_a == b.energy_a && a.energy_b == b.energy_b && a.kind == b.kind;
}

inline bool same(const gpu::RecordVector<gpu::Coincidence>& a, const gpu::RecordVector<gpu::Coincidence>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const auto& x, const auto& y) { return same(x, y); });
}

}  // namespace petacq::test
