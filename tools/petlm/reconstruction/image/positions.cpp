#include "tools/petlm/reconstruction/image/positions.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "tools/petlm/base/status.hpp"
#include "tools/petlm/reconstruction/image/image.hpp"

namespace petacq::image {

Parts parts_of(const petlm::ExportSource& source, const std::optional<config::Rotation>& rotation,
               const std::string& bed) {
    Parts out;
    const corrections::BedMovement movement = corrections::bed_movement(source, rotation);
    if (!movement.moved() || bed == "ignore") {
        out.list.push_back({source.coverage()});
        out.sentence = movement.moved()
                           ? movement.text() + ". That was ignored (--bed ignore): the image is smeared."
                           : movement.unknown_text();
        return out;
    }
    if (!movement.in_steps() || !source.coverage().intervals) {
        throw petlm::BadInput(
            fmt::format("{}: {}. An image needs a bed that is still, or that moves in steps and is still at "
                        "each position "
                        "for {} s or more; petlm cut takes out a part, --bed ignore makes a smeared image",
                        source.target().string(), movement.text(), corrections::BedMovement::still_s));
    }
    const auto [low, high] = std::minmax_element(movement.positions.begin(), movement.positions.end(),
                                                 [](const auto& a, const auto& b) { return a.mm < b.mm; });
    const double middle = (low->mm + high->mm) / 2;
    std::vector<std::string> list;
    for (const corrections::BedPosition& position : movement.positions) {
        daemon::Coverage coverage = daemon::part_of(source.coverage(), position.times);
        const double seconds = coverage.seconds();
        const double decays = seconds > 0 ? source.coverage().seconds() / seconds : 1;
        out.list.push_back({std::move(coverage), position.mm - middle, decays});
        list.push_back(fmt::format("{:.6g} mm ({:.6g} s)", position.mm, out.list.back().coverage.seconds()));
    }
    out.sentence = fmt::format(
        "{}. The images of its positions were combined into one: {}. In the image the bed is at {:.6g} mm.",
        movement.text(), fmt::join(list, ", "), middle);
    return out;
}

std::string at_position(const Part& part, const std::string& sentence) {
    return fmt::format("Bed at {:+.6g} mm from its middle: {}", part.bed_mm, sentence);
}

CombinedImage::CombinedImage(const Grid& of_part, const std::vector<Part>& parts)
    : of_part_(of_part), grid_(of_part) {
    double most = 0;
    for (const Part& part : parts)
        most = std::max(most, std::abs(part.bed_mm));
    // The same number on both sides: the planes of the grids agree where the bed is in the middle.
    grid_.n[2] += 2 * static_cast<std::uint32_t>(std::ceil(most / grid_.voxel_mm - 1e-6));
    if (grid_.n[2] > max_voxels) {
        throw petlm::UsageError(fmt::format(
            "--voxel-mm: voxels of {:g} mm make {} along all positions of the bed; expected at most {}",
            grid_.voxel_mm, grid_.n[2], max_voxels));
    }
    values_.resize(grid_.voxels());
    weights_.resize(grid_.voxels());
}

void CombinedImage::add(const Part& part, const std::vector<float>& image,
                        const std::vector<float>& deviation, const std::vector<float>& sensitivity,
                        double scale) {
    if (!(scale > 0)) return;
    constexpr double least = 0.02;  // as in EM, which leaves voxels below this share of the largest 0
    const float largest = sensitivity.empty() ? 0 : *std::max_element(sensitivity.begin(), sensitivity.end());
    const std::size_t plane = std::size_t{grid_.n[0]} * grid_.n[1];
    if (!deviation.empty()) squares_.resize(values_.size());
    std::vector<double> errors(plane);
    for (std::size_t z = 0; z < grid_.n[2]; ++z) {
        // Between two planes of the part.
        const double place = (grid_.centre(2, z) + part.bed_mm - of_part_.centre(2, 0)) / grid_.voxel_mm;
        const double below = std::floor(place + 1e-6);
        std::fill(errors.begin(), errors.end(), 0);
        for (int side = 0; side < 2; ++side) {
            const double at = below + side;
            const double share = 1 - std::abs(place - at);
            if (at < 0 || at >= of_part_.n[2] || share < 1e-6) continue;
            const std::size_t from = static_cast<std::size_t>(at) * plane;
            for (std::size_t i = 0; i < plane; ++i) {
                const float sensitive = sensitivity[from + i];
                if (sensitive <= least * largest) continue;
                const double weight = share * sensitive / scale;
                weights_[z * plane + i] += weight;
                values_[z * plane + i] += weight * image[from + i];
                // Neighbouring planes of one image err alike.
                if (!deviation.empty()) errors[i] += weight * deviation[from + i];
            }
        }
        for (std::size_t i = 0; i < plane && !deviation.empty(); ++i)
            squares_[z * plane + i] += errors[i] * errors[i];
    }
}

std::vector<float> CombinedImage::finish() const {
    std::vector<float> out(values_.size());
    for (std::size_t i = 0; i < out.size(); ++i)
        out[i] = weights_[i] > 0 ? static_cast<float>(values_[i] / weights_[i]) : 0;
    return out;
}

bool CombinedImage::sees_plane(std::uint32_t z) const {
    const auto plane = static_cast<std::ptrdiff_t>(std::size_t{grid_.n[0]} * grid_.n[1]);
    const auto from = weights_.begin() + z * plane;
    return std::any_of(from, from + plane, [](double weight) { return weight > 0; });
}

std::vector<float> CombinedImage::deviation() const {
    std::vector<float> out(squares_.size());
    for (std::size_t i = 0; i < out.size(); ++i)
        out[i] = weights_[i] > 0 ? static_cast<float>(std::sqrt(squares_[i]) / weights_[i]) : 0;
    return out;
}

}  // namespace petacq::image
