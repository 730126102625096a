// petlm nema image-quality: the image quality of NEMA NU 4-2008.
#include <fmt/format.h>

#include "tools/petlm/base/status.hpp"
#include "tools/petlm/nema/iq_phantom.hpp"
#include "tools/petlm/nema/iq_rods.hpp"
#include "tools/petlm/nema/nema.hpp"
#include "tools/petlm/nema/runs.hpp"
#include "tools/petlm/nema/standard.hpp"

namespace petacq::nema {
namespace {

/// The file of an image: itself, or image.nii in a directory of petlm image.
std::filesystem::path image_file(const std::filesystem::path& target) {
    if (!std::filesystem::is_directory(target)) {
        if (target.extension() == ".plm") {
            throw petlm::UsageError(target.string() +
                                    ": list-mode; make an image of it first, with petlm image or "
                                    "another program");
        }
        return target;
    }
    auto file = target / "image.nii";
    if (std::filesystem::exists(file)) return file;
    if (std::filesystem::exists(target / "run.json")) {
        throw petlm::UsageError(target.string() +
                                ": a run; make an image of it first, with petlm image or another program");
    }
    throw petlm::UsageError(target.string() + ": expected a NIfTI file, or a directory with image.nii");
}

Chart map_of(const Image& image, const IqValues& values, std::size_t number) {
    Chart chart{fmt::format("rods-{}", number),
                fmt::format("Image {}: mean of the central 10 mm of the rods", number), "x (mm)", "y (mm)"};
    chart.map = values.rods_plane;
    const auto edge = [&](std::size_t axis, double at) {
        return image.origin_mm[axis] + (at - 0.5) * image.voxel_mm[axis];
    };
    chart.x_from = edge(0, 0);
    chart.x_to = edge(0, static_cast<double>(image.n[0]));
    chart.y_from = edge(1, 0);
    chart.y_to = edge(1, static_cast<double>(image.n[1]));
    chart.value_title = "value of the image";
    return chart;
}

void add(Report& report, ResultTable& uniformity, ResultTable& recovery, ResultTable& spill,
         const std::string& name, const IqValues& values, const std::optional<RodFit>& fit,
         bool with_figures) {
    const VoxelStatistics& u = values.uniform;
    uniformity.rows.push_back({name, u.mean, u.most, u.least, u.percent(), static_cast<double>(u.voxels)});
    for (std::size_t i = 0; i < values.rods.size(); ++i) {
        const auto& rod = values.rods[i];
        const RodFit::Rod fitted = fit ? fit->rods[i] : RodFit::Rod{};
        recovery.rows.push_back({name, rod.diameter_mm, rod.at_mm[0], rod.at_mm[1], rod.recovery, rod.percent,
                                 fitted.height / u.mean, fitted.error / u.mean});
        if (with_figures) {
            report.beside.push_back(
                {fmt::format("recovery_fitted_{}mm", rod.diameter_mm),
                 fmt::format("Recovery coefficient of the fit, rod of {} mm", rod.diameter_mm),
                 fitted.height / u.mean, fitted.error / u.mean, ""});
        }
    }
    for (const auto& cold : values.cold)
        spill.rows.push_back({name, cold.at_mm[0], cold.at_mm[1], cold.spill_over, cold.percent});
    if (!with_figures) return;
    report.beside.push_back(
        {"rods_fwhm_mm", "FWHM of the blur of the rods", fit ? fit->fwhm_mm : unknown, unknown, "mm"});
    report.figures.push_back({"uniformity_percent_std", "Uniform region, %STD", u.percent(), unknown, "%"});
    for (const auto& rod : values.rods) {
        report.figures.push_back({fmt::format("recovery_{}mm", rod.diameter_mm),
                                  fmt::format("Recovery coefficient, rod of {} mm", rod.diameter_mm),
                                  rod.recovery, rod.recovery * rod.percent / 100, ""});
    }
    for (std::size_t i = 0; i < values.cold.size(); ++i) {
        const auto& cold = values.cold[i];
        report.figures.push_back({fmt::format("spill_over_{}", i + 1),
                                  fmt::format("Spill-over ratio, cold chamber at ({:.3g}, {:.3g}) mm",
                                              cold.at_mm[0], cold.at_mm[1]),
                                  cold.spill_over, cold.spill_over * cold.percent / 100, ""});
    }
}

}  // namespace

int image_quality(const ImageQualityOptions& options) {
    results::check_output(options.output, options.force);
    Report report{"image-quality", "Image quality", standard};
    ResultTable uniformity{"uniformity",
                           "Uniformity: 22.5 mm in diameter, 10 mm long",
                           {"image", "mean", "maximum", "minimum", "percent_std", "voxels"},
                           {}};
    ResultTable recovery{"recovery",
                         "Recovery coefficients",
                         {"image", "diameter_mm", "x_mm", "y_mm", "recovery", "percent_std",
                          "recovery_fitted", "recovery_fitted_error"},
                         {}};
    ResultTable spill{
        "spill-over", "Spill-over ratios", {"image", "x_mm", "y_mm", "spill_over", "percent_std"}, {}};
    Chart chart{"recovery", "Recovery coefficients", "diameter of the rod (mm)", "recovery coefficient"};
    constexpr std::size_t max_curves = 4;
    for (std::size_t i = 0; i < options.images.size(); ++i) {
        const auto file = image_file(options.images[i]);
        const std::string name = options.images[i].string();
        const nifti::Volume volume = nifti::load(file);
        const auto found = [&] {
            try {
                Image image = image_of(volume);
                const IqPlace place = find_phantom(image, options.middle_mm);
                return std::tuple(place, values_of(image, place), fit_rods(image, place), std::move(image));
            } catch (const petlm::BadInput& error) {
                throw petlm::BadInput(name + ": " + error.what());
            }
        }();
        const auto& [place, values, fit, image] = found;
        report.inputs.push_back(
            fmt::format("{}: {} x {} x {} voxels of {:.4g} x {:.4g} x {:.4g} mm. Found in it: the rods at {} "
                        "z, that of 5 mm at {:.0f} degrees around +z, the smaller "
                        "ones {} of it, the cold chambers at {:.0f} and {:.0f} degrees.",
                        name, image.n[0], image.n[1], image.n[2], image.voxel_mm[0], image.voxel_mm[1],
                        image.voxel_mm[2], place.rods_towards > 0 ? "high" : "low", place.largest_deg,
                        place.towards_smaller > 0 ? "counter-clockwise" : "clockwise", place.cold_deg,
                        place.cold_deg + 180));
        if (!fit) {
            report.warnings.push_back(
                name +
                ": the rods could not be fitted where they were found; --offset-mm tells where "
                "the middle of the phantom lies.");
        }
        add(report, uniformity, recovery, spill, name, values, fit, options.images.size() == 1);
        if (i < max_curves) {
            Chart::Curve curve{
                options.images.size() == 1 ? "recovery" : fmt::format("image {}", i + 1), {}, {}};
            for (const auto& rod : values.rods) {
                curve.x.push_back(rod.diameter_mm);
                curve.y.push_back(rod.recovery);
            }
            chart.curves.push_back(std::move(curve));
            if (fit && options.images.size() == 1) {
                chart.curves.push_back({"of the fit", chart.curves.front().x, {}});
                for (const RodFit::Rod& rod : fit->rods)
                    chart.curves.back().y.push_back(rod.height / values.uniform.mean);
            }
            report.charts.push_back(map_of(image, values, i + 1));
        }
    }
    report.procedure = {
        "Uniformity: mean, maximum, minimum and %STD in a cylinder of 22.5 mm diameter and 10 mm length in "
        "the middle of the uniform region.",
        "Recovery: the planes of the central 10 mm of the rods are averaged. In a circle of twice the "
        "diameter of the rod the largest voxel is taken; the mean along "
        "the axis at that place, over these planes, divided by the mean of the uniform region, is the "
        "recovery coefficient. "
        "%STD_RC = sqrt(%STD of that line squared + %STD of the uniform region squared).",
        "Beside the standard, which the noise of the largest voxel makes larger: blurred disks of the known "
        "diameters "
        "and places are fitted to the same planes, in the same circles, with one Gaussian for all rods, a "
        "height for "
        "each and a common value between them. recovery_fitted is the height of the fit in the middle of a "
        "rod, "
        "divided by the mean of the uniform region; its error comes from the spread between planes.",
        "Spill-over: the mean in a cylinder of 4 mm diameter and 7.5 mm length in the middle of each cold "
        "chamber, divided by the mean of the uniform region. "
        "%STD_SOR likewise."};
    report.deviations = {
        "The orientation of the phantom is found in the image; its axis is taken to be parallel to z, its "
        "middle at --offset-mm. Which cold chamber is air and "
        "which is water follows from its place.",
        "A voxel belongs to a region if its middle lies in it."};
    report.tables = {std::move(recovery), std::move(uniformity), std::move(spill)};
    report.charts.insert(report.charts.begin(), std::move(chart));
    results::publish(report, options.output, options.force, options.as_json);
    return petlm::ok;
}

}  // namespace petacq::nema
