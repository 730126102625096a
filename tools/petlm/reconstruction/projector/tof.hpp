// The time of flight of a pair: bins of time differences, and how they weigh the places along a line.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "tools/petlm/reconstruction/projector/ray.hpp"

namespace petacq::image {

/// Time differences t(b) - t(a) of pairs of crystals a < b, in bins of whole ticks around 0. Positive: the
/// annihilation was closer to a (docs/reference/geometry.md).
struct TofBins {
    std::uint32_t ticks = 0;   ///< in a bin, odd; 0: the time of flight is not used
    std::uint32_t window = 0;  ///< the largest difference, ticks
    double tick_ps = 0;
    double fwhm_ps = 0;  ///< resolution of the difference

    /// Bins of about a third of the resolution.
    static TofBins of(double fwhm_ps, double tick_ps, std::uint32_t window);

    [[nodiscard]] bool used() const { return ticks != 0; }
    [[nodiscard]] std::int16_t bin(std::int64_t difference) const;
    /// The share of differences in the bin if all in the window are equally likely.
    [[nodiscard]] double share_of_window(std::int16_t bin) const;
    /// Distance along a line between two bins.
    [[nodiscard]] double bin_mm() const;
    [[nodiscard]] double sigma_mm() const;
    /// The chance that a pair from `distance` mm beside the middle of the bin is found in it: a Gaussian that
    /// ends at 3 sigma, integrated over the bin. For each place the chances of all bins add up to 1.
    [[nodiscard]] double chance(double distance) const;
    /// The same for a pair from anywhere between two distances.
    [[nodiscard]] double mean_chance(double from, double to) const;
};

/// chance() as a table; for device code. Without a table every place counts fully.
struct TofWeights {
    const float* nodes = nullptr;
    float nodes_per_mm = 0;
    double reach_mm = 0;  ///< beyond it the chance is 0
    double bin_mm = 0;

    PETACQ_HD float chance(float distance) const {
        const float place = (distance < 0 ? -distance : distance) * nodes_per_mm;
        const int below = static_cast<int>(place);
        if (below >= intervals) return 0;
        return nodes[below] + (place - static_cast<float>(below)) * (nodes[below + 1] - nodes[below]);
    }
    static constexpr int intervals = 1024;
};

/// The nodes of a table, and the rest of it; no nodes if the time of flight is not used.
struct TofTable {
    explicit TofTable(const TofBins& bins);
    /// Valid as long as `at`, a copy of the nodes.
    [[nodiscard]] TofWeights weights(const float* at) const;

    std::vector<float> nodes;
    double reach_mm = 0;
    double bin_mm = 0;
};

/// What a row is: a line, and for the time of flight the part of it that its bin can come from.
struct RowRay {
    Ray ray;
    float entry_mm;  ///< from the middle of the bin to where the ray begins

    PETACQ_HD static RowRay of(const Box& box, const Line& line, const TofWeights& tof, std::int16_t bin) {
        if (tof.nodes == nullptr) return {Ray(box, line.from, line.to), 0};
        double squares = 0;
        for (int axis = 0; axis < 3; ++axis) {
            const double along = static_cast<double>(line.to.x[axis]) - line.from.x[axis];
            squares += along * along;
        }
        const double length = std::sqrt(squares);
        const double middle = length / 2 - bin * tof.bin_mm;
        const Ray ray(box, line.from, line.to, (middle - tof.reach_mm) / length,
                      (middle + tof.reach_mm) / length);
        return {ray, static_cast<float>(ray.begin() - middle)};
    }
};

/// Calls use(index of the voxel, weight) along the line: mm in the voxel times the chance of the bin there.
template <class Use>
PETACQ_HD void walk_row(const Box& box, const Line& line, const TofWeights& tof, std::int16_t bin,
                        Use&& use) {
    const RowRay row = RowRay::of(box, line, tof, bin);
    if (tof.nodes == nullptr) {
        row.ray.walk(use);
        return;
    }
    row.ray.walk_places([&](std::uint32_t voxel, float mm, float middle) {
        use(voxel, mm * tof.chance(row.entry_mm + middle));
    });
}
/// The same along the lines of a pair, each with its share.
template <class Use>
PETACQ_HD void walk_row(const Box& box, const LinesOfPair& lines, const TofWeights& tof, std::int16_t bin,
                        Use&& use) {
    lines.each([&](const Line& line, float share) {
        walk_row(box, line, tof, bin, [&](std::uint32_t voxel, float weight) { use(voxel, share * weight); });
    });
}

}  // namespace petacq::image
