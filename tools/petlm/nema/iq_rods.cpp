#include "tools/petlm/nema/iq_rods.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <numbers>
#include <unsupported/Eigen/NonLinearOptimization>
#include <unsupported/Eigen/NumericalDiff>

namespace petacq::nema {
namespace {

constexpr double fwhm_of_sigma = 2.354820045;
constexpr double reach = 6;  ///< standard deviations of the Gaussian that matter

/// blurred_disk() by distance.
class DiskProfile {
  public:
    DiskProfile(double diameter_mm, double sigma_mm)
        : step_((diameter_mm / 2 + reach * sigma_mm) / static_cast<double>(nodes - 1)) {
        for (std::size_t i = 0; i < nodes; ++i)
            values_[i] = blurred_disk(diameter_mm, sigma_mm, static_cast<double>(i) * step_);
    }
    [[nodiscard]] double at(double distance_mm) const {
        const double place = distance_mm / step_;
        const auto low = static_cast<std::size_t>(place);
        if (low + 1 >= nodes) return 0;
        const double part = place - static_cast<double>(low);
        return (1 - part) * values_[low] + part * values_[low + 1];
    }

  private:
    static constexpr std::size_t nodes = 200;
    double step_;
    std::array<double, nodes> values_{};
};

struct Voxel {
    std::size_t index = 0;  ///< in the plane
    double x = 0;
    double y = 0;
};

/// Those of the circles of the standard, twice as wide as the rods.
std::vector<Voxel> voxels_of(const Image& image, const IqPlace& place) {
    std::vector<Voxel> voxels;
    for (std::size_t i = 0; i < image.n[0] * image.n[1]; ++i) {
        const Voxel voxel{i, image.centre(0, i % image.n[0]), image.centre(1, i / image.n[0])};
        for (std::size_t rod = 0; rod < iq::rod_diameters.size(); ++rod) {
            const auto at = place.rod(rod);
            if (std::hypot(voxel.x - at[0], voxel.y - at[1]) > iq::rod_diameters[rod]) continue;
            voxels.push_back(voxel);
            break;
        }
    }
    return voxels;
}

Eigen::VectorXd values_at(const std::vector<Voxel>& voxels, const std::vector<double>& plane) {
    Eigen::VectorXd values(static_cast<Eigen::Index>(voxels.size()));
    for (std::size_t i = 0; i < voxels.size(); ++i)
        values[static_cast<Eigen::Index>(i)] = plane[voxels[i].index];
    return values;
}

/// What is left of the mean plane after the best heights of all rods and of the plastic between them.
/// Parameters: shift along x and y, turn, logarithm of the standard deviation.
class Residuals {
  public:
    using Scalar = double;
    using InputType = Eigen::VectorXd;
    using ValueType = Eigen::VectorXd;
    using JacobianType = Eigen::MatrixXd;
    static constexpr int InputsAtCompileTime = Eigen::Dynamic;
    static constexpr int ValuesAtCompileTime = Eigen::Dynamic;

    Residuals(const Image& image, const IqPlace& place, const std::vector<Voxel>& voxels,
              const std::vector<double>& plane)
        : voxel_mm_(std::max(image.voxel_mm[0], image.voxel_mm[1])),
          place_(place),
          voxels_(voxels),
          values_(values_at(voxels, plane)) {}

    [[nodiscard]] static int inputs() { return 4; }
    [[nodiscard]] int values() const { return static_cast<int>(voxels_.size()); }
    int operator()(const Eigen::VectorXd& parameters, Eigen::VectorXd& residuals) const {
        const Eigen::MatrixXd shapes = shapes_of(parameters);
        residuals = values_ - shapes * solve(shapes, values_);
        return 0;
    }
    /// A voxel blurs, too.
    [[nodiscard]] double sigma_mm(const Eigen::VectorXd& parameters) const {
        return std::hypot(std::exp(parameters[3]), voxel_mm_ / std::sqrt(12.0));
    }
    /// One column for the plastic and one for each rod.
    [[nodiscard]] Eigen::MatrixXd shapes_of(const Eigen::VectorXd& parameters) const {
        IqPlace place = place_;
        place.middle_mm[0] += parameters[0];
        place.middle_mm[1] += parameters[1];
        place.largest_deg += parameters[2];
        Eigen::MatrixXd shapes(values(), 1 + static_cast<Eigen::Index>(iq::rod_diameters.size()));
        shapes.col(0).setOnes();
        for (std::size_t rod = 0; rod < iq::rod_diameters.size(); ++rod) {
            const DiskProfile profile(iq::rod_diameters[rod], sigma_mm(parameters));
            const auto at = place.rod(rod);
            for (std::size_t i = 0; i < voxels_.size(); ++i) {
                shapes(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(rod) + 1) =
                    profile.at(std::hypot(voxels_[i].x - at[0], voxels_[i].y - at[1]));
            }
        }
        return shapes;
    }
    [[nodiscard]] static Eigen::VectorXd solve(const Eigen::MatrixXd& shapes, const Eigen::VectorXd& values) {
        return shapes.colPivHouseholderQr().solve(values);
    }
    [[nodiscard]] const Eigen::VectorXd& found() const { return values_; }

  private:
    double voxel_mm_;
    IqPlace place_;
    const std::vector<Voxel>& voxels_;
    Eigen::VectorXd values_;
};

}  // namespace

double blurred_disk(double diameter_mm, double sigma_mm, double distance_mm) {
    const double radius = diameter_mm / 2;
    const double from = std::max(-radius, distance_mm - reach * sigma_mm);
    const double to = std::min(radius, distance_mm + reach * sigma_mm);
    if (!(to > from)) return 0;
    // Chords of the disk: across them the integral of the Gaussian is known. Steps of the angle, since the
    // chords end with an infinite slope at the edge of the disk.
    constexpr int chords = 48;
    const double first = std::asin(from / radius);
    const double step = (std::asin(to / radius) - first) / chords;
    double sum = 0;
    for (int i = 0; i < chords; ++i) {
        const double angle = first + (i + 0.5) * step;
        const double half_chord = radius * std::cos(angle);
        const double away = (distance_mm - radius * std::sin(angle)) / sigma_mm;
        sum += half_chord * std::exp(-0.5 * away * away) *
               std::erf(half_chord / (sigma_mm * std::numbers::sqrt2));
    }
    return sum * step / (sigma_mm * std::sqrt(2 * std::numbers::pi));
}

std::optional<RodFit> fit_rods(const Image& image, const IqPlace& place) {
    constexpr double first_fwhm_mm = 1.5;
    constexpr double max_shift_mm = 2;
    constexpr double max_fwhm_mm = 6;
    const std::vector<Voxel> voxels = voxels_of(image, place);
    const Planes planes = planes_of(image, place.z_of(iq::rods_middle), iq::rods_length);
    constexpr std::size_t unknowns = 5 + iq::rod_diameters.size();
    if (voxels.size() <= unknowns) return std::nullopt;
    Residuals residuals(image, place, voxels, mean_plane(image, planes));
    Eigen::NumericalDiff<Residuals> differentiated(residuals, 1e-6);
    Eigen::LevenbergMarquardt<Eigen::NumericalDiff<Residuals>> search(differentiated);
    Eigen::VectorXd parameters(Residuals::inputs());
    parameters << 0, 0, 0, std::log(first_fwhm_mm / fwhm_of_sigma);
    search.minimize(parameters);

    RodFit fit;
    fit.fwhm_mm = fwhm_of_sigma * residuals.sigma_mm(parameters);
    fit.shift_mm = {parameters[0], parameters[1]};
    fit.turn_deg = parameters[2];
    const double largest_shift = std::hypot(parameters[0], parameters[1]) +
                                 iq::rods_at * std::abs(parameters[2]) * std::numbers::pi / 180;
    if (!(largest_shift < max_shift_mm && fit.fwhm_mm < max_fwhm_mm)) return std::nullopt;

    const Eigen::MatrixXd shapes = residuals.shapes_of(parameters);
    const auto heights_of = [&](const Eigen::VectorXd& values) {
        const Eigen::VectorXd solved = Residuals::solve(shapes, values);
        std::array<double, iq::rod_diameters.size()> heights{};
        for (std::size_t rod = 0; rod < heights.size(); ++rod) {
            heights[rod] =
                solved[0] + solved[static_cast<Eigen::Index>(rod) + 1] *
                                blurred_disk(iq::rod_diameters[rod], residuals.sigma_mm(parameters), 0);
        }
        return heights;
    };
    const auto of_mean = heights_of(residuals.found());
    std::array<double, iq::rod_diameters.size()> squares{};
    for (std::size_t z = planes.from; z < planes.to; ++z) {
        const auto of_plane = heights_of(values_at(voxels, mean_plane(image, {z, z + 1})));
        for (std::size_t rod = 0; rod < squares.size(); ++rod)
            squares[rod] += (of_plane[rod] - of_mean[rod]) * (of_plane[rod] - of_mean[rod]);
    }
    // Neighbouring planes share their noise, as far as the image is blurred.
    const auto count = static_cast<double>(planes.to - planes.from);
    const double independent = std::min(count, std::max(1.0, count * image.voxel_mm[2] / fit.fwhm_mm));
    for (std::size_t rod = 0; rod < squares.size(); ++rod) {
        fit.rods[rod].height = of_mean[rod];
        if (count > 1) fit.rods[rod].error = std::sqrt(squares[rod] / (count - 1) / independent);
    }
    return fit;
}

}  // namespace petacq::nema
