// petlm image: a quick look at what was in the scanner.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "config/scanner/scanner.hpp"
#include "tools/petlm/reconstruction/corrections/line_factors.hpp"
#include "tools/petlm/reconstruction/corrections/nuclide.hpp"
#include "tools/petlm/reconstruction/projector/grid.hpp"
#include "tools/petlm/records/output.hpp"

namespace petacq::petlm {

struct ImageOptions : corrections::NuclideOptions {
    std::filesystem::path target;                  ///< file or run directory
    std::filesystem::path output;                  ///< directory
    bool force = false;                            ///< replace an earlier image
    bool as_json = false;                          ///< print what was written as JSON
    std::optional<std::filesystem::path> scanner;  ///< instead of the one in run.json
    std::optional<double> depth_mm;                ///< mean depth of interaction in a crystal
    std::optional<double> voxel_mm;
    std::optional<std::uint32_t> size;  ///< voxels across
    std::optional<double> fov_mm;       ///< width across
    std::uint32_t iterations = 3;
    std::uint32_t subsets = 8;
    std::string tof = "auto";            ///< auto, off, or the resolution in ps
    std::optional<double> psf_mm;        ///< FWHM of the blur that the model has
    std::optional<double> smooth_mm;     ///< FWHM of a Gaussian applied at the end
    std::optional<double> max;           ///< value that the pictures show black
    corrections::LineOptions lines;      ///< normalisation and attenuation
    std::optional<std::string> scatter;  ///< simulation or none; by default simulation if there is an object
    std::string bed = "combine";         ///< if it moved in steps; or ignore
    std::string backend = "auto";        ///< auto, cpu or cuda
    std::uint32_t threads = 0;           ///< 0: one per core
    std::optional<double> max_memory_gb;
    /// Images of the same records drawn anew, whose spread is the error of counting; 0: none.
    std::uint32_t replicates = 0;
    bool no_cache = false;  ///< compute the sensitivity, and do not keep it
};
/// Makes an image of the coincidences: NIfTI, image.json about its values and, if the program was built with
/// cairo, PNG pictures. Without normalisation and attenuation it is for viewing, not for quantification.
/// Returns an exit status. Throws UsageError, BadInput, daemon::NotListMode, config::Error,
/// std::system_error, std::runtime_error when the GPU fails.
int image(const ImageOptions& options);

/// Prints what was made, of petlm image and petlm frames: the messages, a line each, and the file to see; or
/// with `as_json` the facts, "messages", and the files. `lacks_pictures`: for want of cairo.
void print_images(nlohmann::json facts, const std::vector<std::string>& messages,
                  const std::filesystem::path& see, const Outputs& outputs, bool lacks_pictures,
                  bool as_json);

}  // namespace petacq::petlm

namespace petacq::image {

/// No grid is longer or wider.
inline constexpr std::uint32_t max_voxels = 1024;

/// The grid of an image. By default it covers the whole bore and the whole length of the crystals, with
/// voxels as wide as the smaller crystal pitch, or wider, so that there are at most 256 along each axis.
/// Throws UsageError for invalid options.
Grid choose_grid(const config::Scanner& scanner, const petlm::ImageOptions& options);

}  // namespace petacq::image
