// petlm nema: the tests of NEMA NU 4-2008, "Performance Measurements of Small Animal Positron Emission
// Tomographs". docs/how-to/nema.md has the procedures and the deviations from the standard.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tools/petlm/reconstruction/corrections/nuclide.hpp"

namespace petacq::nema {

/// What all tests of runs have in common.
struct RunOptions : corrections::NuclideOptions {
    std::vector<std::filesystem::path> runs;       ///< directories, or files of coincidences
    std::filesystem::path output;                  ///< directory
    bool force = false;                            ///< replace earlier results
    bool as_json = false;                          ///< prints what results.json holds
    std::optional<std::filesystem::path> scanner;  ///< instead of the one in run.json
    std::optional<double> depth_mm;                ///< mean depth of interaction in a crystal
    /// Instead of what run.json says: the activity at the start of each run, or one for all.
    std::vector<double> activity_MBq;  // NOLINT(readability-identifier-naming): the unit's spelling
};

struct SensitivityOptions : RunOptions {
    /// Of the tags that tell the position of the bed: a run has one acquisition for each position.
    std::optional<unsigned> position_channel;
    std::optional<std::filesystem::path> background;  ///< run without a source
};

enum class Phantom : std::uint8_t { mouse, rat, monkey };

/// For the scatter fraction and for count rates.
struct CountRateOptions : RunOptions {
    Phantom phantom = Phantom::mouse;
    std::optional<double> frame_s;                    ///< cut runs into frames of this length
    std::optional<std::filesystem::path> background;  ///< run without a source
};

struct ResolutionOptions : RunOptions {
    /// Lines of rings further apart are left out; none: all that the run has.
    std::optional<std::uint32_t> max_ring_difference;
};

struct ImageQualityOptions {
    std::vector<std::filesystem::path> images;  ///< .nii, or directories with an image.nii
    std::filesystem::path output;
    bool force = false;
    bool as_json = false;
    std::array<double, 3> middle_mm{};  ///< of the 50 mm of the phantom, in the image
};

/// Each returns an exit status, prints the results and writes them to the output. Throw petlm::UsageError,
/// petlm::BadInput, daemon::NotListMode, config::Error, std::system_error.
int sensitivity(const SensitivityOptions& options);
int scatter_fraction(const CountRateOptions& options);
int count_rate(const CountRateOptions& options);
int resolution(const ResolutionOptions& options);
int image_quality(const ImageQualityOptions& options);

}  // namespace petacq::nema
