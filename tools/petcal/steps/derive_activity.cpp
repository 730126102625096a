#include "tools/petcal/steps/derive_activity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "config/base/error.hpp"
#include "config/base/json_file.hpp"
#include "config/calibration.hpp"
#include "config/moments.hpp"
#include "tools/nifti/nifti.hpp"
#include "tools/normalisation/normalisation.hpp"
#include "tools/petcal/results/results.hpp"

namespace petacq::petcal {

namespace {

using nlohmann::json;

constexpr std::uint64_t min_voxels = 200;
constexpr double max_uneven = 0.1;
constexpr std::array part_names{"-x", "+x", "-y", "+y", "-z", "+z", "inner", "outer"};

/// What petlm image says about its image.
struct AboutImage {
    double applied = 1;
    std::string time_utc;
    double error = 0;  ///< relative, of its mean, but for noise and the factor applied
};

/// The known ones together. The noise is measured in the image itself.
double error_of(const json& about) {
    double squares = 0;
    const json errors = about.is_object() ? about.value("errors", json::object()) : json::object();
    for (const auto& [name, error] : errors.items()) {
        if (name == "calibration" || name == "counting" || !error.is_object()) continue;
        const json relative = error.value("relative", json());
        if (relative.is_number()) squares += std::pow(relative.get<double>(), 2);
    }
    return std::sqrt(squares);
}

AboutImage about_image(const DeriveActivityOptions& o, const normalisation::Normalisation& n) {
    const auto file = o.image / "image.json";
    const json about = config::read_json_file(file, config::max_run_json_bytes);
    const auto value = [&about](const char* key) {
        return about.is_object() ? about.value(key, json()) : json();
    };
    const auto text = [&value](const char* key) {
        const json found = value(key);
        return found.is_string() ? found.get<std::string>() : "none";
    };
    const auto refuse = [&file](const char* key, const std::string& expected, const std::string& found) {
        throw config::Error(file.string() + ": " + key + ": expected " + expected + ", found " + found +
                            ": make the image with this normalisation");
    };
    if (text("normalisation_sha256") != n.sha256)
        refuse("normalisation_sha256", n.sha256, text("normalisation_sha256"));
    // Without a factor petlm image adds that the unit is not calibrated.
    constexpr std::string_view unit = "kBq/ml";
    if (text("unit").substr(0, unit.size()) != unit) refuse("unit", std::string(unit), text("unit"));
    for (const char* correction : {"attenuation", "scatter"}) {
        const json::json_pointer made(std::string("/corrections/") + correction + "/made");
        if (o.in_air || (about.contains(made) && about.at(made) == true)) continue;
        throw config::Error(fmt::format(
            "{}: expected an image that was corrected for {}, found one that was not: make it with "
            "--attenuation, or give --in-air if the source neither attenuates nor scatters",
            file.string(), correction));
    }
    const json stated = value("activity_factor");
    double applied = 1;
    if (!stated.is_null()) applied = stated.is_number() ? stated.get<double>() : 0;
    const double expected = n.activity_factor.value_or(1);
    if (!(std::abs(applied / expected - 1) < 1e-6))
        refuse("activity_factor", "that of the normalisation, " + fmt::format("{:g}", expected),
               stated.dump());
    return {applied, text("time_of_activity_utc"), error_of(about)};
}

void check(const DeriveActivityOptions& o, const nifti::Volume& image) {
    for (const double value : o.cylinder) {
        if (!std::isfinite(value)) throw config::Error("--cylinder: expected finite numbers");
    }
    if (!(o.concentration_kBq_ml > 0 && std::isfinite(o.concentration_kBq_ml)))
        throw config::Error("--concentration-kBq-ml: expected more than 0");
    if (o.concentration_error_percent &&
        !(*o.concentration_error_percent >= 0 && *o.concentration_error_percent <= 100))
        throw config::Error("--concentration-error-percent: expected 0 to 100");
    if (!(o.margin_mm >= 0)) throw config::Error("--margin-mm: expected 0 or more");
    const double radius = o.cylinder.at(3) - o.margin_mm;
    const double half_length = o.cylinder.at(4) / 2 - o.margin_mm;
    if (!(radius > 0) || !(half_length > 0))
        throw config::Error("--cylinder: expected a radius and half a length above the margin");
    for (std::size_t axis = 0; axis < 3; ++axis) {
        const double reach = axis == 2 ? half_length : radius;
        const double voxel = image.step[axis][axis];
        const double low = image.first[axis] - voxel / 2;
        const double high = low + voxel * static_cast<double>(image.n[axis]);
        if (o.cylinder[axis] - reach >= low && o.cylinder[axis] + reach <= high) continue;
        throw config::Error(
            fmt::format("--cylinder: reaches from {:g} to {:g} mm along {}; expected it inside the image, "
                        "{:g} to {:g} mm",
                        o.cylinder[axis] - reach, o.cylinder[axis] + reach, "xyz"[axis], low, high));
    }
}

/// The noise of the mean of voxels, whose own noise is common to those within a few millimetres: sums over
/// cubes, and products of those that touch with a face.
class BlockNoise {
  public:
    void add(const config::Vector3& at, double value) {
        Cube cube{};
        for (std::size_t axis = 0; axis < 3; ++axis)
            cube[axis] = static_cast<int>(std::floor(at[axis] / edge_mm));
        blocks_[cube].add(value);
    }
    /// Standard error of the mean of all.
    [[nodiscard]] double error(const config::Moments& all) const {
        double products = 0;
        double weights = 0;
        const auto add_pair = [&](const config::Moments& a, const config::Moments& b, double times) {
            products += times * (a.sum - a.n * all.mean()) * (b.sum - b.n * all.mean());
            weights += times * a.n * b.n;
        };
        for (const auto& [cube, block] : blocks_) {
            add_pair(block, block, 1);
            for (std::size_t axis = 0; axis < 3; ++axis) {
                Cube next = cube;
                ++next[axis];
                if (const auto other = blocks_.find(next); other != blocks_.end())
                    add_pair(block, other->second, 2);
            }
        }
        // The mean was taken from the same values.
        const double free = all.n * all.n - weights;
        return free > 0 ? std::sqrt(std::max(products, 0.0) / free) : INFINITY;
    }

  private:
    using Cube = std::array<int, 3>;
    static constexpr double edge_mm = 4;
    std::map<Cube, config::Moments> blocks_;
};

}  // namespace

DerivedActivity derive_activity(const config::Scanner& scanner, const DeriveActivityOptions& o) {
    normalisation::Normalisation n = normalisation::load(o.normalisation, scanner.geometry);
    const AboutImage about = about_image(o, n);
    const nifti::Volume image = nifti::load(o.image / "image.nii");
    check(o, image);
    const double radius = o.cylinder[3] - o.margin_mm;
    const double half_length = o.cylinder[4] / 2 - o.margin_mm;
    config::Moments all;
    BlockNoise noise;
    std::array<config::Moments, part_names.size()> parts;
    std::size_t index = 0;
    for (std::uint32_t k = 0; k < image.n[2]; ++k) {
        for (std::uint32_t j = 0; j < image.n[1]; ++j) {
            for (std::uint32_t i = 0; i < image.n[0]; ++i, ++index) {
                const config::Vector3 at = image.at(i, j, k);
                const double x = at[0] - o.cylinder[0];
                const double y = at[1] - o.cylinder[1];
                const double z = at[2] - o.cylinder[2];
                if (std::hypot(x, y) > radius || std::abs(z) > half_length) continue;
                const double value = image.values[index];
                all.add(value);
                noise.add({x, y, z}, value);
                parts[x < 0 ? 0 : 1].add(value);
                parts[y < 0 ? 2 : 3].add(value);
                parts[z < 0 ? 4 : 5].add(value);
                parts[std::hypot(x, y) < radius * std::sqrt(0.5) ? 6 : 7].add(value);
            }
        }
    }
    DerivedActivity out;
    out.voxels = static_cast<std::uint64_t>(all.n);
    if (out.voxels < min_voxels)
        throw config::Error(fmt::format(
            "{} voxels lie in the cylinder, {:g} mm from its surface; expected at least {}: smaller voxels, "
            "or a larger cylinder",
            out.voxels, o.margin_mm, min_voxels));
    out.mean = all.mean();
    if (!(out.mean > 0))
        throw config::Error(
            fmt::format("the image has a mean of {:g} in the cylinder; expected more than 0", out.mean));
    out.spread = all.spread() / out.mean;
    for (std::size_t part = 0; part < parts.size(); ++part) {
        out.parts[part] = parts[part].mean() / out.mean;
        if (std::abs(out.parts[part] - 1) <= max_uneven) continue;
        throw config::Error(fmt::format(
            "the image is not even in the cylinder: its {} part has {:.3f} of the mean; expected within "
            "{:.0f} %: check --cylinder, and that it is filled evenly",
            part_names[part], out.parts[part], 100 * max_uneven));
    }
    out.applied = about.applied;
    out.time_utc = about.time_utc;
    out.factor = about.applied * o.concentration_kBq_ml / out.mean;
    out.error =
        std::hypot(noise.error(all) / out.mean, about.error, o.concentration_error_percent.value_or(0) / 100);
    const auto made = made_by("petcal derive activity");
    n.activity_factor = out.factor;
    n.origin["activity_made_by"] = made.at("made_by");
    n.origin["activity_created_utc"] = made.at("created_utc");
    n.origin["activity_normalisation_sha256"] = n.sha256;
    n.origin["activity_image_sha256"] = config::sha256_of_file(o.image / "image.nii");
    n.origin["activity_source"] = fmt::format("cylinder {:g} mm", fmt::join(o.cylinder, ","));
    n.origin["activity_kBq_ml"] = fmt::format("{:g} at {}", o.concentration_kBq_ml, about.time_utc);
    n.origin["activity_error"] = fmt::format("{:.3g}", out.error);
    save(o.output, scanner.geometry, n);
    return out;
}

nlohmann::json figures_json(const DerivedActivity& d) {
    nlohmann::json parts = nlohmann::json::object();
    for (std::size_t part = 0; part < d.parts.size(); ++part)
        parts[part_names[part]] = d.parts[part];
    return {{"voxels", d.voxels},
            {"mean_kBq_ml", d.mean},
            {"time_of_activity_utc", d.time_utc},
            {"spread_percent", 100 * d.spread},
            {"parts", std::move(parts)},
            {"activity_factor", d.factor},
            {"activity_factor_error_percent", 100 * d.error},
            {"activity_factor_before", d.applied}};
}

std::string figures_text(const DerivedActivity& d) {
    std::string text = fmt::format("voxels              {}\n", d.voxels);
    text += fmt::format("mean of the image   {:.6g} kBq/ml at {}\n", d.mean, d.time_utc);
    text += fmt::format("spread of voxels    {:.2f} %\n", 100 * d.spread);
    text += "parts of the mean  ";
    for (std::size_t part = 0; part < d.parts.size(); ++part)
        text += fmt::format(" {} {:.3f}", part_names[part], d.parts[part]);
    return text + fmt::format("\nactivity factor     {:.6g} +- {:.2g} %, before {:.6g}\n", d.factor,
                              100 * d.error, d.applied);
}

}  // namespace petacq::petcal
