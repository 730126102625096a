#include "tools/petlm/nema/iq_phantom.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tools/petlm/base/status.hpp"

namespace petacq::nema {
namespace {

constexpr double degree = std::numbers::pi / 180;
constexpr double between_rods = 72;
constexpr double uniform_diameter = 22.5;
constexpr double uniform_length = 10;
constexpr double cold_diameter = 4;
constexpr double cold_length = 7.5;

}  // namespace

Planes planes_of(const Image& image, double middle, double length) {
    Planes planes;
    constexpr double rounding = 1e-6;
    while (planes.from < image.n[2] && image.centre(2, planes.from) < middle - length / 2 - rounding)
        ++planes.from;
    planes.to = planes.from;
    while (planes.to < image.n[2] && image.centre(2, planes.to) <= middle + length / 2 + rounding)
        ++planes.to;
    if (planes.from == planes.to)
        throw petlm::BadInput(
            "the image has no planes where the phantom should be; --offset-mm tells where it lies");
    return planes;
}

std::vector<double> mean_plane(const Image& image, const Planes& planes) {
    const std::size_t in_plane = image.n[0] * image.n[1];
    std::vector<double> mean(in_plane);
    for (std::size_t z = planes.from; z < planes.to; ++z) {
        for (std::size_t i = 0; i < in_plane; ++i)
            mean[i] += image.values[z * in_plane + i] / static_cast<double>(planes.to - planes.from);
    }
    return mean;
}

namespace {

/// Calls use(index in the plane) for voxels with their middle in a circle.
template <class Use>
void in_circle(const Image& image, const std::array<double, 2>& middle, double diameter, const Use& use) {
    for (std::size_t y = 0; y < image.n[1]; ++y) {
        for (std::size_t x = 0; x < image.n[0]; ++x) {
            if (std::hypot(image.centre(0, x) - middle[0], image.centre(1, y) - middle[1]) <= diameter / 2)
                use(y * image.n[0] + x);
        }
    }
}

VoxelStatistics statistics_of(const std::vector<double>& values) {
    VoxelStatistics s;
    s.voxels = values.size();
    if (values.empty())
        throw petlm::BadInput("a region of the phantom holds no voxel: the voxels are too large");
    double sum = 0;
    for (const double value : values)
        sum += value;
    s.mean = sum / static_cast<double>(values.size());
    double squares = 0;
    for (const double value : values)
        squares += (value - s.mean) * (value - s.mean);
    s.deviation = values.size() < 2 ? 0 : std::sqrt(squares / static_cast<double>(values.size() - 1));
    s.least = *std::min_element(values.begin(), values.end());
    s.most = *std::max_element(values.begin(), values.end());
    return s;
}

VoxelStatistics in_cylinder(const Image& image, const std::array<double, 2>& middle, double diameter,
                            const Planes& planes) {
    std::vector<double> values;
    for (std::size_t z = planes.from; z < planes.to; ++z)
        in_circle(image, middle, diameter,
                  [&](std::size_t i) { values.push_back(image.values[z * image.n[0] * image.n[1] + i]); });
    return statistics_of(values);
}

/// How much brighter the rods would be than the rest of the plane.
double contrast(const Image& image, const std::vector<double>& plane, const IqPlace& place) {
    constexpr double within = 12.5;
    double inside = 0;
    double outside = 0;
    double in_count = 0;
    double out_count = 0;
    in_circle(image, {place.middle_mm[0], place.middle_mm[1]}, 2 * within, [&](std::size_t i) {
        const double x = image.centre(0, i % image.n[0]);
        const double y = image.centre(1, i / image.n[0]);
        bool in_rod = false;
        for (std::size_t rod = 0; rod < iq::rod_diameters.size() && !in_rod; ++rod)
            in_rod = std::hypot(x - place.rod(rod)[0], y - place.rod(rod)[1]) <= iq::rod_diameters[rod] / 2;
        (in_rod ? inside : outside) += plane[i];
        (in_rod ? in_count : out_count) += 1;
    });
    return in_count > 0 && out_count > 0 ? inside / in_count - outside / out_count : 0;
}

}  // namespace

std::array<double, 2> IqPlace::rod(std::size_t number) const {
    const auto steps = static_cast<double>(iq::rod_diameters.size() - 1 - number);
    const double angle = (largest_deg + towards_smaller * between_rods * steps) * degree;
    return {middle_mm[0] + iq::rods_at * std::cos(angle), middle_mm[1] + iq::rods_at * std::sin(angle)};
}

std::array<double, 2> IqPlace::cold(std::size_t number) const {
    const double angle = (cold_deg + 180.0 * static_cast<double>(number)) * degree;
    return {middle_mm[0] + iq::cold_at * std::cos(angle), middle_mm[1] + iq::cold_at * std::sin(angle)};
}

Image image_of(nifti::Volume volume) {
    Image image;
    for (std::size_t axis = 0; axis < 3; ++axis) {
        image.n[axis] = volume.n[axis];
        image.voxel_mm[axis] = volume.step[axis][axis];
        image.origin_mm[axis] = volume.first[axis];
        for (std::size_t other = 0; other < 3; ++other) {
            const bool straight =
                other == axis ? volume.step[axis][axis] > 0
                              : std::abs(volume.step[axis][other]) < 1e-3 * std::abs(volume.step[axis][axis]);
            if (!straight) {
                throw petlm::BadInput(
                    "the axes of its voxels are turned or mirrored; expected those of the scanner");
            }
        }
    }
    image.values = std::move(volume.values);
    return image;
}

IqPlace find_phantom(const Image& image, const std::array<double, 3>& middle_mm) {
    constexpr double step_deg = 2;
    IqPlace best;
    double best_contrast = 0;
    for (const int towards : {1, -1}) {
        IqPlace place;
        place.middle_mm = middle_mm;
        place.rods_towards = towards;
        const auto plane = mean_plane(image, planes_of(image, place.z_of(iq::rods_middle), iq::rods_length));
        for (const int direction : {1, -1}) {
            place.towards_smaller = direction;
            for (place.largest_deg = 0; place.largest_deg < 360; place.largest_deg += step_deg) {
                const double found = contrast(image, plane, place);
                if (found <= best_contrast) continue;
                best_contrast = found;
                best = place;
            }
        }
    }
    const auto uniform = in_cylinder(image, {middle_mm[0], middle_mm[1]}, uniform_diameter,
                                     planes_of(image, best.z_of(iq::uniform_middle), uniform_length));
    constexpr double min_contrast = 0.1;  // of the uniform region
    if (!(best_contrast > min_contrast * uniform.mean && uniform.mean > 0))
        throw petlm::BadInput(
            "no rods of the image quality phantom were found; --offset-mm tells where its middle lies");
    const auto planes = planes_of(image, best.z_of(iq::cold_middle), cold_length);
    const auto coldness = [&](const IqPlace& place) {
        return in_cylinder(image, place.cold(0), cold_diameter, planes).mean +
               in_cylinder(image, place.cold(1), cold_diameter, planes).mean;
    };
    IqPlace place = best;
    double coldest = INFINITY;
    for (place.cold_deg = 0; place.cold_deg < 180; place.cold_deg += step_deg) {
        const double found = coldness(place);
        if (found >= coldest) continue;
        coldest = found;
        best.cold_deg = place.cold_deg;
    }
    return best;
}

IqValues values_of(const Image& image, const IqPlace& place) {
    IqValues values;
    values.uniform = in_cylinder(image, {place.middle_mm[0], place.middle_mm[1]}, uniform_diameter,
                                 planes_of(image, place.z_of(iq::uniform_middle), uniform_length));
    const double noise = values.uniform.percent();
    const auto planes = planes_of(image, place.z_of(iq::rods_middle), iq::rods_length);
    const auto plane = mean_plane(image, planes);
    for (std::size_t number = 0; number < iq::rod_diameters.size(); ++number) {
        std::size_t largest = SIZE_MAX;
        in_circle(image, place.rod(number), 2 * iq::rod_diameters[number], [&](std::size_t i) {
            if (largest == SIZE_MAX || plane[i] > plane[largest]) largest = i;
        });
        if (largest == SIZE_MAX) throw petlm::BadInput("a rod holds no voxel: the voxels are too large");
        std::vector<double> line;
        for (std::size_t z = planes.from; z < planes.to; ++z)
            line.push_back(image.values[z * plane.size() + largest]);
        const VoxelStatistics along = statistics_of(line);
        values.rods.push_back({iq::rod_diameters[number],
                               {image.centre(0, largest % image.n[0]), image.centre(1, largest / image.n[0])},
                               along.mean / values.uniform.mean,
                               std::hypot(along.percent(), noise)});
    }
    const auto cold_planes = planes_of(image, place.z_of(iq::cold_middle), cold_length);
    for (std::size_t number = 0; number < 2; ++number) {
        const VoxelStatistics inside = in_cylinder(image, place.cold(number), cold_diameter, cold_planes);
        values.cold.push_back({place.cold(number), inside.mean / values.uniform.mean,
                               inside.mean == 0 ? unknown : std::hypot(inside.percent(), noise)});
    }
    values.rods_plane = {image.n[1], image.n[0], plane};
    return values;
}

}  // namespace petacq::nema
