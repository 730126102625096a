#include "tools/petlm/lifetime/places.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "tools/nifti/nifti.hpp"
#include "tools/petlm/base/status.hpp"

namespace petacq::lifetime {

ActivityImage activity_of_image(const std::filesystem::path& image) {
    const auto file = std::filesystem::is_directory(image) ? image / "image.nii" : image;
    nifti::Volume volume = nifti::load(file);
    ActivityImage out{{volume.n, volume.step[0][0]}, std::move(volume.values)};
    const double close = 1e-3 * out.grid.voxel_mm;
    bool fits = out.grid.voxel_mm > 0;
    for (std::size_t axis = 0; axis < 3; ++axis) {
        for (std::size_t along = 0; along < 3; ++along) {
            const double expected = axis == along ? out.grid.voxel_mm : 0;
            fits = fits && std::abs(volume.step[axis][along] - expected) < close;
        }
        fits = fits && std::abs(volume.first[axis] - out.grid.centre(axis, 0)) < close;
    }
    if (!fits) {
        throw petlm::UsageError(file.string() +
                                ": expected cubic voxels around the origin, as petlm image writes them");
    }
    bool empty = true;
    for (float& value : out.values) {
        value = std::max(value, 0.0F);
        empty = empty && value == 0;
    }
    if (empty) throw petlm::UsageError(file.string() + ": expected an image with activity, found none");
    return out;
}

Places::Places(const image::Grid& grid, const std::vector<float>* image,
               const std::vector<frames::Region>& regions, const image::TofBins& tof, double min_share)
    : regions_(std::max<std::size_t>(regions.size(), 1)),
      activity_(image != nullptr ? *image : std::vector<float>(grid.voxels(), regions.empty() ? 1.0F : 0.0F)),
      tof_(tof),
      table_(tof),
      weights_(table_.weights(table_.nodes.empty() ? nullptr : table_.nodes.data())),
      box_(image::Box::of(grid)),
      min_share_(min_share),
      parts_(regions_) {
    if (regions.empty()) {
        in_regions_ = activity_;
        return;
    }
    in_regions_.assign(grid.voxels() * regions_, 0.0F);
    for (std::size_t r = 0; r < regions.size(); ++r) {
        for (const auto& [voxel, share] : regions[r].shares()) {
            in_regions_[voxel * regions_ + r] = image != nullptr ? (*image)[voxel] * share : share;
            if (image == nullptr) activity_[voxel] += share;
        }
    }
}

std::optional<PlaceInRegion> Places::find(const image::Line& line, std::int64_t difference) {
    const std::int16_t bin = tof_.used() ? tof_.bin(difference) : std::int16_t{0};
    const image::RowRay row = image::RowRay::of(box_, line, weights_, bin);
    std::fill(parts_.begin(), parts_.end(), LineShare{});
    double all = 0;
    row.ray.walk_places([&](std::uint32_t voxel, float mm, float middle) {
        const double chance = tof_.used() ? weights_.chance(row.entry_mm + middle) : 1;
        if (!(activity_[voxel] > 0)) return;
        all += activity_[voxel] * mm * chance;
        const float* const in_regions = &in_regions_[voxel * regions_];
        for (std::size_t r = 0; r < regions_; ++r) {
            const double weight = in_regions[r] * mm * chance;
            parts_[r].weight += weight;
            parts_[r].mm += weight * (row.ray.begin() + middle);
        }
    });
    const auto most =
        std::max_element(parts_.begin(), parts_.end(),
                         [](const LineShare& a, const LineShare& b) { return a.weight < b.weight; });
    if (!(most->weight > 0 && most->weight >= min_share_ * all)) return std::nullopt;
    return PlaceInRegion{static_cast<std::size_t>(most - parts_.begin()), most->mm / most->weight,
                         most->weight / all};
}

}  // namespace petacq::lifetime
