#include "daemon/sinogram/back_projection.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace petacq::sinogram {
namespace {

constexpr double pi = std::numbers::pi;

/// [distance in bins] of the band-limited ramp, equation 61 of chapter 3, times the width of a bin.
std::vector<double> ramp(std::size_t count, double width_mm) {
    std::vector<double> kernel(count);
    for (std::size_t n = 0; n < count; ++n) {
        const auto distance = static_cast<double>(n);
        if (n == 0) kernel[n] = 1 / (4 * width_mm);
        if (n % 2 == 1) kernel[n] = -1 / (pi * pi * distance * distance * width_mm);
    }
    return kernel;
}

}  // namespace

std::vector<double> back_project(const Projections& projections, const Patch& patch) {
    const std::size_t radial = projections.radial;
    const std::vector<double> kernel = ramp(radial, projections.width_mm);
    const double half = 0.5 * static_cast<double>(patch.size - 1) * patch.step_mm;
    const double first[2] = {std::cos(patch.angle),
                             std::sin(patch.angle)};  // NOLINT(modernize-avoid-c-arrays)
    const double second[2] = {-std::sin(patch.angle),
                              std::cos(patch.angle)};  // NOLINT(modernize-avoid-c-arrays)
    std::vector<double> image(patch.size * patch.size);
    std::vector<double> filtered(radial);
    for (std::size_t row = 0; row < projections.angles; ++row) {
        const double phi = (static_cast<double>(row) + 0.5) * pi / static_cast<double>(projections.angles);
        const double c = std::cos(phi);
        const double s = std::sin(phi);
        const double middle =
            (patch.x * c + patch.y * s + projections.radius_mm()) / projections.width_mm - 0.5;
        const double reach = half * std::numbers::sqrt2 / projections.width_mm + 2;
        const auto column = [&](double place) {
            return static_cast<std::size_t>(std::clamp(place, 0.0, static_cast<double>(radial)));
        };
        const std::size_t from = column(std::floor(middle - reach));
        const std::size_t to = column(std::ceil(middle + reach));
        std::fill(filtered.begin(), filtered.end(), 0.0);
        const double* const values = projections.values.data() + row * radial;
        for (std::size_t in = 0; in < radial; ++in) {
            if (values[in] == 0) continue;
            for (std::size_t out = from; out < to; ++out)
                filtered[out] += values[in] * kernel[in > out ? in - out : out - in];
        }
        const double along_first = (first[0] * c + first[1] * s) * patch.step_mm / projections.width_mm;
        const double along_second = (second[0] * c + second[1] * s) * patch.step_mm / projections.width_mm;
        const double centre = 0.5 * static_cast<double>(patch.size - 1);
        for (std::size_t j = 0; j < patch.size; ++j) {
            const double of_row = middle + (static_cast<double>(j) - centre) * along_second;
            for (std::size_t i = 0; i < patch.size; ++i) {
                const double place = of_row + (static_cast<double>(i) - centre) * along_first;
                if (place < 0 || place >= static_cast<double>(radial - 1)) continue;
                const auto low = static_cast<std::size_t>(place);
                const double part = place - static_cast<double>(low);
                image[j * patch.size + i] += (1 - part) * filtered[low] + part * filtered[low + 1];
            }
        }
    }
    for (double& value : image)
        value *= pi / static_cast<double>(projections.angles);
    return image;
}

Projections normalised(std::size_t angles, std::size_t radial, double width_mm,
                       std::span<const double> counts, std::span<const double> lines) {
    Projections p{angles, radial, width_mm, std::vector<double>(angles * radial)};
    for (std::size_t row = 0; row < angles; ++row) {
        std::size_t last = radial;  // the last bin with lines
        for (std::size_t column = 0; column < radial; ++column) {
            const std::size_t i = row * radial + column;
            if (!(lines[i] > 0)) continue;
            p.values[i] = counts[i] / lines[i];
            for (std::size_t gap = last + 1; gap < column; ++gap) {
                const double part = static_cast<double>(gap - last) / static_cast<double>(column - last);
                p.values[row * radial + gap] =
                    (1 - part) * p.values[row * radial + last] + part * p.values[i];
            }
            last = column;
        }
    }
    return p;
}

}  // namespace petacq::sinogram
