// The runs of a test: what is known of each, and its acquisitions one after the other.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/scanner/scanner.hpp"
#include "tools/petlm/nema/nema.hpp"
#include "tools/petlm/nema/slices.hpp"
#include "tools/petlm/reconstruction/corrections/run_randoms.hpp"
#include "tools/petlm/records/scanner_angle.hpp"
#include "tools/petlm/records/source.hpp"
#include "tools/petlm/records/tags.hpp"

namespace petacq::nema {

/// The activity of the source in a run.
struct RunActivity {
    std::optional<double> at_start_MBq;  // NOLINT(readability-identifier-naming)
    std::string nuclide;                 ///< "" unknown
    std::optional<double> half_life_s;   ///< none: taken as constant
    double branching_ratio = 1;

    /// Its mean over the recorded time; NaN if it is unknown.
    [[nodiscard]] double mean_MBq(
        const daemon::Coverage& coverage) const;  // NOLINT(readability-identifier-naming)
};
/// Positrons per decay by which the sensitivity is divided: 0.9060 for Na-22 and unknown nuclides, otherwise
/// its own.
double branching_of(const RunActivity& activity);

/// Not thread-safe.
class NemaRun {
  public:
    /// Throws petlm::UsageError for a target that holds no coincidences and for contradictory options, and
    /// as ExportSource does. `number`: which of the options'
    /// runs.
    NemaRun(const RunOptions& options, std::size_t number);

    [[nodiscard]] const petlm::ExportSource& source() const { return source_; }
    [[nodiscard]] const config::Scanner& scanner() const { return scanner_; }
    [[nodiscard]] const RunActivity& activity() const { return activity_; }
    [[nodiscard]] std::string name() const;
    /// What it covers.
    [[nodiscard]] const daemon::Coverage& coverage() const { return coverage_; }
    /// The part of it in an interval.
    [[nodiscard]] daemon::Coverage part(const petlm::Interval& interval) const;
    /// From the first to the last recorded time and record, ticks.
    [[nodiscard]] petlm::Interval whole() const;
    /// Recorded time.
    [[nodiscard]] double seconds_of(const petlm::Interval& interval) const;
    [[nodiscard]] double mean_MBq(
        const petlm::Interval& interval) const;  // NOLINT(readability-identifier-naming)
    /// What the report says of the run.
    [[nodiscard]] std::string sentence() const;

    /// Equal parts of the time from the start to the end of the records; a rest of less than half a part is
    /// left out.
    [[nodiscard]] std::vector<petlm::Interval> frames(double seconds) const;
    /// The time at each position of the bed, from the position tags of a channel. Throws petlm::BadInput when
    /// there are none.
    struct AtPosition {
        petlm::Interval interval;
        double bed_mm = 0;
    };
    [[nodiscard]] std::vector<AtPosition> positions(unsigned channel) const;

    /// Sorts the prompts of the intervals, which are ascending and do not overlap, and calls `use` for each
    /// interval, in order, also for one without prompts. One set of sinograms is in memory at a time.
    /// Delayeds of an interval are handed to `delayed` before.
    void for_each(const std::vector<petlm::Interval>& intervals, const SliceBins& bins,
                  const std::function<void(std::size_t, const Sinograms&)>& use,
                  const std::function<void(const gpu::Coincidence&)>& delayed = {}) const;

    /// By how many rows the scanner has moved its lines at a time; 0 if it does not turn.
    [[nodiscard]] std::uint32_t rows_at(std::uint64_t time, const SliceBins& bins) const;
    /// [rows] of the decays whose pairs were found, the share at which they had moved by so many; one share
    /// if it does not turn.
    [[nodiscard]] std::vector<double> shares_of_rows(const SliceBins& bins) const;

  private:
    petlm::ExportSource source_;
    daemon::Coverage coverage_;
    config::Scanner scanner_;
    std::optional<petlm::ScannerAngle> angle_;
    RunActivity activity_;
};

/// All runs of the options. Throws petlm::UsageError when their scanners or the rules of their records
/// differ, petlm::BadInput when the bed moved unless it may.
std::vector<std::unique_ptr<NemaRun>> runs_of(const RunOptions& options, bool bed_may_move = false);
/// The run without a source that is compared with `run`. Throws as runs_of() does.
std::unique_ptr<NemaRun> background_of(const std::filesystem::path& target, const RunOptions& options,
                                       const NemaRun& run);
/// What a report must name of a run: what it does not tell, and if nobody knows whether the bed moved.
void add_warnings(const NemaRun& run, std::vector<std::string>& warnings);

/// The randoms and the loss of an interval, from the seconds of its run (docs/design/randoms.md).
class IntervalSeconds {
  public:
    /// Throws petlm::BadInput when there are no seconds that can be used.
    IntervalSeconds(const NemaRun& run, const petlm::Interval& interval);

    /// To be expected among the prompts, of all pairs.
    [[nodiscard]] double randoms() const { return of_pairs_->total(); }
    /// By which counts have to be multiplied for the data of the boards that did not arrive; 1 if that is not
    /// known.
    [[nodiscard]] double loss_factor() const { return of_pairs_->loss().factor; }
    [[nodiscard]] std::string loss_sentence() const;
    /// [slice] which part of the randoms of the interval lies in the slice, no further than `radius_mm` from
    /// the axis. Of scanners with more than some millions of pairs, a sample of them is taken.
    [[nodiscard]] std::vector<double> shares(const SliceBins& bins, double radius_mm) const;

  private:
    std::uint32_t crystals_;
    std::unique_ptr<petlm::RunRandoms> of_pairs_;
};

}  // namespace petacq::nema
