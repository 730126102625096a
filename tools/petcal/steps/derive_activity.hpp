// petcal derive activity: the activity factor of a normalisation from the image of a cylinder of known
// activity.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "config/scanner/scanner.hpp"

namespace petacq::petcal {

struct DeriveActivityOptions {
    std::filesystem::path normalisation;  ///< with which the image was made
    std::filesystem::path image;          ///< directory that petlm image wrote
    std::vector<double> cylinder;         ///< mm: x, y, z, radius, length; along the axis
    double concentration_kBq_ml = 0;      ///< at the time of the image; NOLINT(readability-identifier-naming)
    /// Relative standard error of the concentration, per cent; absent: not known.
    std::optional<double> concentration_error_percent;
    double margin_mm = 4;  ///< from the surface of the cylinder to the voxels that count
    /// The source neither attenuates nor scatters: the image need not be corrected for that.
    bool in_air = false;
    std::filesystem::path output;
};

struct DerivedActivity {
    std::uint64_t voxels = 0;
    double mean = 0;    ///< kBq/ml, of the image
    double spread = 0;  ///< standard deviation of the voxels, relative
    /// Means of the parts of the cylinder, relative to the whole: the halves in x, y and z, inner and outer.
    std::array<double, 8> parts{};
    double factor = 0;   ///< the next activity factor
    double applied = 1;  ///< that of the image
    /// Relative standard error of the factor: by the noise of the image, by what else image.json states, and
    /// by the concentration.
    double error = 0;
    std::string time_utc;  ///< of the activity in the image
};

/// Makes `normalisation` with the factor that gives the image the concentration. Throws config::Error when
/// the image was not made with the normalisation, was not corrected for attenuation and scatter, when the
/// cylinder reaches out of it or holds too few voxels, and when the image is not even in it.
DerivedActivity derive_activity(const config::Scanner& scanner, const DeriveActivityOptions& options);

nlohmann::json figures_json(const DerivedActivity& derived);
/// The same as lines of text.
std::string figures_text(const DerivedActivity& derived);

}  // namespace petacq::petcal
