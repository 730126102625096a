// Trues and scatter of the line source in its phantom of NEMA NU 4-2008.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "tools/petlm/nema/nema.hpp"
#include "tools/petlm/nema/runs.hpp"
#include "tools/petlm/nema/slices.hpp"
#include "tools/petlm/nema/standard.hpp"

namespace petacq::nema {

/// A cylinder of polyethylene with a line source parallel to its axis.
struct LinePhantom {
    const char* name;
    double diameter_mm;
    double length_mm;
    double line_at_mm;  ///< from the axis
    double line_length_mm;

    [[nodiscard]] double volume_ml() const;
};
const LinePhantom& phantom_of(Phantom phantom);

/// The prompts of a projection. Their background, randoms and scatter, are those outside of the strip of 14
/// mm around the line and those below a straight line between its edges: a sum of the bins with weights w.
struct StripCounts {
    double total = 0;
    double background = 0;  ///< sum of w * counts
    double squares = 0;     ///< sum of w * w * counts

    [[nodiscard]] double trues() const { return total - background; }
    [[nodiscard]] double variance_of_background() const { return squares; }
    [[nodiscard]] double variance_of_trues() const { return total - 2 * background + squares; }
    [[nodiscard]] double covariance() const { return background - squares; }
    StripCounts& operator+=(const StripCounts& other);
};
/// Of a projection whose middle bin (of an odd number) is at the line. Values at the edges of the strip are
/// interpolated between neighbouring bins; bins that an edge cuts count in part.
StripCounts strip_counts(std::span<const double> projection, double bin_mm);

/// The slices in which the phantom lies.
struct Slices {
    std::size_t from = 0;
    std::size_t to = 0;  ///< exclusive
};
Slices slices_of(const SliceBins& bins, const LinePhantom& phantom);

/// Of each of the slices. Bins further than 8 mm from the edge of the phantom are left out. The line is
/// where columns_of_source() finds it.
std::vector<StripCounts> strips_of(const SliceBins& bins, const Sinograms& sinograms,
                                   const LinePhantom& phantom, const Slices& slices);

struct Ratio {
    double value = unknown;
    double error = unknown;
};

/// An acquisition of the line source. Arrays are [slice], from Slices::from.
struct LineAcquisition {
    std::string run;
    double seconds = 0;
    double mean_MBq = unknown;  // NOLINT(readability-identifier-naming)
    std::vector<StripCounts> slices;
    std::vector<double> randoms;
    StripCounts sum;
    double randoms_sum = 0;
    double spurious_sum = 0;  ///< pairs with prompt gammas, expected in these slices near the phantom
    std::vector<double> spurious;
    /// From the delayeds near the phantom and their mean weight in the run; NaN: not recorded.
    Ratio randoms_of_delayeds;
    double loss_factor = 1;  ///< IntervalSeconds; not in the counts

    /// Below 1 % of the trues: fit for the scatter fraction.
    [[nodiscard]] bool few_randoms() const { return sum.trues() > 0 && randoms_sum < 0.01 * sum.trues(); }
};
struct LineMeasurement {
    const LinePhantom* phantom;
    SliceBins bins;
    Slices slices;
    std::vector<LineAcquisition> acquisitions;  ///< of all runs, in their order
    std::vector<double> intrinsic_per_s;        ///< [slice] prompts without a source; 0 if not measured
    double intrinsic_sum_per_s = 0;
};
/// The acquisitions with few randoms, added up.
struct LowActivity {
    std::vector<StripCounts> slices;
    StripCounts sum;
    double randoms = 0;
    std::vector<double> spurious;  ///< [slice]
    double spurious_sum = 0;
    double seconds = 0;
};
LowActivity low_activity_of(const LineMeasurement& measured);

/// Reads all runs. Throws as Run and IntervalSeconds do.
LineMeasurement measure(const CountRateOptions& options, Report& report);

/// What both tests of the line source do, and where they differ from the standard.
void describe(const CountRateOptions& options, const LineMeasurement& measured, Report& report);

/// (background - known) / (total - known), where `known` counts have no error.
Ratio background_share(const StripCounts& counts, double known);

}  // namespace petacq::nema
