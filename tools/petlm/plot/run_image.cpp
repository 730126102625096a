#include "tools/petlm/plot/run_image.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "config/base/constants.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/reconstruction/image/made_image.hpp"
#include "tools/petlm/reconstruction/image/positions.hpp"
#include "tools/petlm/reconstruction/image/setup.hpp"

namespace petacq::petlm {
namespace {

constexpr double most_voxels = 96;  // along an axis: a picture of it is no larger
/// Fewer make specks. What the scanner sees of each voxel takes the time, however few they are.
constexpr std::uint64_t least_prompts = 5000;

/// At least as wide as `petlm image` has them.
double voxel_of(const config::Scanner& scanner, const ImageOptions& options) {
    const image::Grid grid = image::choose_grid(scanner, options);
    return grid.voxel_mm * std::max(1.0, *std::max_element(grid.n.begin(), grid.n.end()) / most_voxels);
}

/// At the ends of the field of view few counts make a voxel bright: the brightest one is looked for where the
/// scanner sees at least a fifth of what it sees best.
std::size_t brightest_of(const std::vector<float>& values, const std::vector<float>& sensitivity) {
    const float least = *std::max_element(sensitivity.begin(), sensitivity.end()) / 5;
    std::size_t brightest = 0;
    float most = -1;
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (sensitivity[i] < least || values[i] <= most) continue;
        most = values[i];
        brightest = i;
    }
    return brightest;
}

/// Of the photons that were detected, by all voxels that are not faint. The blur of the image is not a part
/// of the source.
SeenSource source_of(const image::Grid& grid, const std::vector<float>& values,
                     const std::vector<float>& sensitivity, std::size_t brightest, double smooth_mm) {
    const float faint = values[brightest] / 10;
    double sum = 0;
    config::Vector3 mean{};
    std::vector<double> squares(6);
    std::size_t i = 0;
    for (std::size_t z = 0; z < grid.n[2]; ++z) {
        for (std::size_t y = 0; y < grid.n[1]; ++y) {
            for (std::size_t x = 0; x < grid.n[0]; ++x, ++i) {
                if (!(values[i] > faint)) continue;
                const double weight = static_cast<double>(values[i]) * sensitivity[i];
                const config::Vector3 at{grid.centre(0, x), grid.centre(1, y), grid.centre(2, z)};
                sum += weight;
                for (std::size_t axis = 0; axis < 3; ++axis) {
                    mean[axis] += weight * at[axis];
                    squares[axis] += weight * at[axis] * at[axis];
                }
                squares[3] += weight * at[0] * at[1];
                squares[4] += weight * at[0] * at[2];
                squares[5] += weight * at[1] * at[2];
            }
        }
    }
    SeenSource source;
    if (!(sum > 0)) return source;
    for (double& value : mean)
        value /= sum;
    const double sigma = smooth_mm / config::fwhm_per_sigma;
    const double blur = sigma * sigma + grid.voxel_mm * grid.voxel_mm / 12;
    for (std::size_t axis = 0; axis < 3; ++axis)
        source.spread[axis] = std::max(0.0, squares[axis] / sum - mean[axis] * mean[axis] - blur);
    source.spread[3] = squares[3] / sum - mean[0] * mean[1];
    source.spread[4] = squares[4] / sum - mean[0] * mean[2];
    source.spread[5] = squares[5] / sum - mean[1] * mean[2];
    source.centre = mean;
    return source;
}

RunImage made_of(ImageOptions& options) {
    {
        const ExportSource source(options.target);
        options.voxel_mm = voxel_of(source.scanner(options.scanner), options);
    }
    image::Setup setup(options);
    const image::Parts parts = image::parts_of(setup.source, setup.scanner.rotation, options.bed);
    const image::Part& part = parts.list.front();
    const image::PartLines lines(setup, part);
    image::ImageCounts counts(setup.scanner.geometry, setup.angles, setup.rule,
                              image::pair_capacity(setup.how.max_memory), setup.pool, setup.tof.bins);
    setup.source.for_each_block(
        setup.scanner.geometry.crystal_count(),
        [&](const daemon::ListModeReader& reader) { counts.add(reader.coincidences()); }, "reading");
    counts.finish();
    if (counts.prompts < least_prompts) {
        throw std::runtime_error(
            fmt::format("expected at least {} prompts, found {}", least_prompts, counts.prompts));
    }
    image::MadeImage made =
        image::make_image(setup, part, lines, counts, "image for the report", setup.how.max_memory);
    RunImage out;
    out.grid = setup.how.grid;
    out.values = std::move(made.look.em.image);
    const std::vector<float>& sensitivity = made.look.sensitivity;
    out.brightest = brightest_of(out.values, sensitivity);
    out.source = source_of(out.grid, out.values, sensitivity, out.brightest, setup.how.smooth_mm);
    out.sentences.push_back(fmt::format(
        "{} iterations of {} subsets, voxels of {:.3g} mm, smoothed by {:.3g} mm FWHM, without the "
        "time of flight.",
        options.iterations, options.subsets, out.grid.voxel_mm, setup.how.smooth_mm));
    out.sentences.push_back(made.report.warning());
    if (!parts.sentence.empty()) out.sentences.push_back(parts.sentence);
    return out;
}

}  // namespace

MaybeImage image_of_run(const std::filesystem::path& target,
                        const std::optional<std::filesystem::path>& scanner, std::optional<double> depth_mm) {
    ImageOptions options;
    options.target = target;
    options.scanner = scanner;
    options.depth_mm = depth_mm;
    options.tof = "off";
    options.bed = "ignore";
    try {
        return {made_of(options), ""};
    } catch (const BadInput&) {
        throw;
    } catch (const std::exception& error) {
        // The other pictures do not need it.
        return {std::nullopt, error.what()};
    }
}

}  // namespace petacq::petlm
