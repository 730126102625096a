// The runs of a test: what is known of each, and its acquisitions one after the other.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/scanner.hpp"
#include "tools/petlm/corrections/run_randoms.hpp"
#include "tools/petlm/nema/nema.hpp"
#include "tools/petlm/nema/slices.hpp"
#include "tools/petlm/records/source.hpp"
#include "tools/petlm/records/tags.hpp"

namespace petacq::nema {

/// The activity of the source in a run.
struct Activity {
    std::optional<double> at_start_MBq;  // NOLINT(readability-identifier-naming)
    std::string nuclide;                 ///< "" unknown
    std::optional<double> half_life_s;   ///< none: taken as constant

    /// Its mean over an interval, seconds from the start of the run; NaN if it is unknown.
    [[nodiscard]] double mean_MBq(double from_s, double to_s) const;  // NOLINT(readability-identifier-naming)
};
/// Positrons per decay by which clause 5 divides: 0.9060 for Na-22 and unknown nuclides, otherwise that of
/// config/nuclides.hpp.
double branching_of(const Activity& activity);

/// Not thread-safe.
class Run {
  public:
    /// Throws petlm::UsageError for a target that holds no coincidences and for contradictory options,
    /// petlm::BadInput for one without prompts, and as ExportSource does. `number`: which of the options'
    /// runs.
    Run(const RunOptions& options, std::size_t number);

    [[nodiscard]] const petlm::ExportSource& source() const { return source_; }
    [[nodiscard]] const config::Scanner& scanner() const { return scanner_; }
    [[nodiscard]] const Activity& activity() const { return activity_; }
    [[nodiscard]] std::string name() const;
    /// From the start of the run to its end, ticks, with the last record.
    [[nodiscard]] petlm::Interval whole() const { return {source_.time_origin(), source_.time_end() + 1}; }
    [[nodiscard]] double seconds_of(const petlm::Interval& interval) const;
    [[nodiscard]] double mean_MBq(
        const petlm::Interval& interval) const;  // NOLINT(readability-identifier-naming)
    /// What the report says of the run.
    [[nodiscard]] std::string sentence() const;

    /// Equal parts of the run; a rest of less than half a part is left out.
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
    void for_each(const std::vector<petlm::Interval>& intervals, const SliceBins& bins,
                  const std::function<void(std::size_t, const Sinograms&)>& use) const;

  private:
    petlm::ExportSource source_;
    config::Scanner scanner_;
    Activity activity_;
};

/// All runs of the options. Throws petlm::UsageError when they are not of one scanner.
std::vector<std::unique_ptr<Run>> runs_of(const RunOptions& options);
/// Throws petlm::UsageError when the directory has results already and they are not to be replaced.
void check_output(const std::filesystem::path& directory, bool force);

/// The randoms to be expected in the seconds of a run. docs/explanation/randoms.md
class RandomsOverTime {
  public:
    /// Throws petlm::BadInput when the run has no seconds that can be used.
    explicit RandomsOverTime(const Run& run);

    /// Of all pairs; a second that lies in the interval in part counts in part.
    [[nodiscard]] double in(const petlm::Interval& interval) const;
    /// [slice] which part of the randoms of the whole run lies in the slice, no further than `radius_mm` from
    /// the axis. Of scanners with more than some millions of pairs, a sample of them is taken.
    [[nodiscard]] std::vector<double> shares(const SliceBins& bins, double radius_mm) const;

  private:
    struct Second {
        petlm::Interval ticks;
        double randoms;
    };
    std::uint32_t crystals_;
    std::unique_ptr<petlm::RunRandoms> of_pairs_;
    std::vector<Second> seconds_;
};

}  // namespace petacq::nema
