// How uncertain the mean of an image is, and by what.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace petacq::image {

/// A cause of error.
struct ErrorShare {
    const char* name;  ///< "counting", "normalisation", ...
    /// Standard error of the mean of the image divided by it; absent: not known.
    std::optional<double> relative;
    std::string text;
};

/// What the errors follow from.
struct ErrorCauses {
    double prompts = 0;  ///< of the pairs that are used
    double share = 1;    ///< of all pairs that are used (PairCounts::share())
    double randoms = 0;  ///< expected among all prompts
    /// Delayeds from which these were estimated; 0: from the singles.
    double delayeds = 0;
    double scatter = 0;                   ///< expected among all prompts
    std::optional<double> scatter_error;  ///< relative, of the scatter; absent: not known
    bool normalised = false;
    std::optional<double> efficiency_error;  ///< relative standard error of that of one crystal
    double crystals = 0;                     ///< that are alive
    bool calibrated = false;
    std::optional<double> activity_error;  ///< relative, of the activity factor
    double dead_time = 1;                  ///< largest factor of a pair of modules
};

/// Relative error of the expected randoms of a run from its singles: the largest difference from the truth of
/// the simulator (docs/design/randoms.md).
inline constexpr double error_of_expected_randoms = 0.01;

/// Those of two parts of an image together; of errors that both have, the larger.
ErrorCauses together(const ErrorCauses& a, const ErrorCauses& b);

/// The errors of counting, normalisation, scatter, randoms, dead time and calibration factor. Each is that of
/// the mean of the whole image, to first order: of trues T = prompts - randoms - scatter, an error of s of
/// the scatter S is s S / T. Those of single voxels are larger (replicates show them).
std::vector<ErrorShare> error_budget(const ErrorCauses& causes);
/// The known shares together, added in quadrature.
double total_error(const std::vector<ErrorShare>& shares);

}  // namespace petacq::image
