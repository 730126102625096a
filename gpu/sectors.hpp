// Groups of modules, for sums over pairs of them.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "config/scanner/geometry.hpp"
#include "net/wire.hpp"

namespace petacq::gpu {

/// Sums over pairs of modules (BDMs) are kept by pair of sectors, so that they stay small with any number of
/// modules. A sector is a range of consecutive modules: a single one in a scanner of at most max_count
/// modules, else as many as make at most that many sectors, always a power of two. Only the last sector may
/// have fewer.
struct Sectors {
    static constexpr std::uint32_t max_count = 256;

    std::uint32_t shift = 0;  ///< a sector has 2^shift modules
    std::uint32_t bdm_count = 0;

    static Sectors of(const config::Geometry& geometry, std::uint32_t most = max_count) {
        const std::uint32_t modules = (geometry.bdm_count + most - 1) / most;
        return {static_cast<std::uint32_t>(std::bit_width(std::max(modules, 1U) - 1U)), geometry.bdm_count};
    }

    [[nodiscard]] std::uint32_t count() const { return (bdm_count + (1U << shift) - 1) >> shift; }
    [[nodiscard]] std::size_t pairs() const { return std::size_t{count()} * count(); }
    PETACQ_HD std::uint32_t of_module(std::uint32_t bdm) const { return bdm >> shift; }
    /// Where the pair of two modules counts: [sector of a * count() + sector of b].
    [[nodiscard]] std::size_t pair(std::uint32_t a, std::uint32_t b) const {
        return std::size_t{of_module(a)} * count() + of_module(b);
    }
    /// Modules in the sector of a module.
    [[nodiscard]] std::uint32_t modules_with(std::uint32_t bdm) const {
        const std::uint32_t first = of_module(bdm) << shift;
        return std::min(bdm_count - first, 1U << shift);
    }
    /// What two modules have of sums by pair of sectors, spread evenly over the modules of the sectors.
    [[nodiscard]] double share(const std::vector<std::uint32_t>& sums, std::uint32_t a,
                               std::uint32_t b) const {
        const double sum = sums[pair(a, b)];
        return shift == 0 ? sum : sum / (double{1} * modules_with(a) * modules_with(b));
    }
};

}  // namespace petacq::gpu
