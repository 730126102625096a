// The coverage of a file of records: the detector times at which the file could hold a record, the rules by
// which its records were made, and the runs that they come from. Every program that writes a file of records
// states its coverage, and readers take these facts from nowhere else. docs/reference/coverage.md has its
// JSON form.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "config/configuration.hpp"
#include "config/nuclides/nuclides.hpp"
#include "config/scanner/scanner.hpp"
#include "daemon/coverage/intervals.hpp"

namespace petacq::daemon {

/// Where the time of the host and of the detector meet: at the start of the run. All other times follow from
/// it.
struct TimeAnchor {
    std::uint64_t ticks = 0;
    std::chrono::system_clock::time_point utc;
    bool operator==(const TimeAnchor&) const = default;
};

/// The source, as the operator stated it.
struct StatedActivity {
    std::string nuclide;
    double half_life_s = 0;
    double branching_ratio = 1;          ///< positrons per decay
    std::optional<double> activity_MBq;  // NOLINT(readability-identifier-naming): a unit
    std::optional<std::chrono::system_clock::time_point> assay;  ///< of the activity
    bool operator==(const StatedActivity&) const = default;
};

/// The rules by which the records of this file were made. Absent: none applied (singles have no window), or
/// they are not known (`unknown` of the coverage says so).
struct RecordRules {
    std::optional<config::Coincidence> coincidence;
    std::optional<config::Energy> energy;
    std::optional<config::Gammas> gammas{};  ///< of triples, and of singles that hold gammas
};

/// What differs, by the names of the configuration and with both values: "coincidence.window_ticks: 320 and
/// 640". Empty: nothing.
std::string difference_of(const RecordRules& a, const RecordRules& b);

/// Data of the boards that did not arrive. The seconds of the run have the share that did, by second and
/// module (`module_live`).
struct Loss {
    /// Mean share of the data of the boards that arrived, over the modules and the intervals; absent:
    /// unknown.
    std::optional<double> live;
    /// Whether the seconds of the run cover all intervals.
    bool seconds_complete = true;
    bool operator==(const Loss&) const = default;
};

/// A run whose records are in the file.
struct OriginRun {
    std::string run_id;
    /// Where the run was when the file was made. Its seconds and tags are looked for beside the file first.
    std::filesystem::path directory;
    /// Within which its records in the file lie; absent: all that the file covers, or not known.
    std::optional<Intervals> times{};
    bool operator==(const OriginRun&) const = default;
};

struct Origin {
    std::vector<OriginRun> runs;
    std::string calibration_sha256;  ///< "": unknown, or several
    std::string scanner_sha256;      ///< scanner_sha256(); "": unknown
    bool operator==(const Origin&) const = default;
};

/// Files that do not fit together. The message says why.
class CoverageError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// A value; the functions below make new ones of it.
struct Coverage {
    double tick_ps = 0;
    /// In which a record could have been in the file. Absent: not known yet (the run is in progress) or not
    /// any more (a run of 1.0 that was cut off).
    std::optional<Intervals> intervals;
    /// Recorded ticks, if a file of 1.0 gives their number but not their times within the intervals.
    std::optional<std::uint64_t> open_ticks;
    /// Absent: the time of day is not known.
    std::optional<TimeAnchor> anchor;
    std::optional<StatedActivity> activity;
    RecordRules rules;
    Loss loss;
    Origin origin;
    /// Facts that a file of 1.0 does not state, one phrase each: "the largest difference of rings".
    std::vector<std::string> unknown;

    /// Recorded time; 0 if it is not known.
    [[nodiscard]] std::uint64_t ticks() const;
    [[nodiscard]] double seconds() const { return static_cast<double>(ticks()) * tick_ps * 1e-12; }
    /// From the first to the last recorded time; {0, 0} if they are not known.
    [[nodiscard]] gpu::TickRange span() const { return intervals ? intervals->span() : gpu::TickRange{}; }
    /// The tick from which seconds are counted and to which decay is corrected: the start of the run or, if
    /// that is not known, the first recorded time. The same for all parts of a run.
    [[nodiscard]] std::uint64_t reference_ticks() const { return anchor ? anchor->ticks : span().start; }
    /// Seconds from the reference to a tick; negative before it.
    [[nodiscard]] double since_reference_s(std::uint64_t tick) const;
    /// Absent without an anchor, or if no clock holds it.
    [[nodiscard]] std::optional<std::chrono::system_clock::time_point> utc_of(std::uint64_t tick) const;
    /// The stated activity, decayed to a tick. Absent if nobody has stated one, or the time of day is not
    /// known.
    [[nodiscard]] std::optional<double> activity_MBq_at(  // NOLINT(readability-identifier-naming): a unit
        std::uint64_t tick) const;
    /// Activity at the reference divided by its mean over the recorded time; 1 if that is not known.
    [[nodiscard]] double decay_factor(double half_life_s) const;
};

/// The records with times in `times`: what `petlm cut` and `gate` make. The live share of the part is not
/// known.
Coverage part_of(Coverage whole, const Intervals& times);
/// The coverage of a recovered file: the seconds no longer cover all of it.
Coverage what_survived(Coverage whole, const Intervals& times);
/// The records of all: what `petlm merge` and a join make. Throws CoverageError if their ticks, rules,
/// scanners or calibrations differ, or if they overlap; with `same_time`, files of several hosts of one
/// scanner may, and it is not known which share of their data arrived.
Coverage united(std::span<const Coverage> files, bool same_time = false);
/// Records made anew by these rules from the same singles.
Coverage with_rules(Coverage of_singles, const config::Coincidence& coincidence,
                    const config::Energy& energy);

nlohmann::json to_json(const Coverage& coverage);
/// Writes it into run.json, with the members that follow from it: start and stop in ticks and UTC, and the
/// activity at the start.
void state_in(nlohmann::json& run, const Coverage& coverage);
/// Throws std::invalid_argument for what is no coverage.
Coverage coverage_from_json(const nlohmann::json& document);

/// That of an open file: its description has it or, in a file of version 1.0, says something about it, as
/// does run.json of its run (null: there is none). `whole_run`: the file is all that the run has of its kind.
Coverage coverage_of(const nlohmann::json& description, const nlohmann::json& run, bool whole_run);

/// That of a run by its run.json. Throws as coverage_from_json() does.
Coverage coverage_of_run(const nlohmann::json& run);

/// SHA-256 of what gives crystals and ticks their meaning: config::meaning_of_records().
std::string scanner_sha256(const config::Scanner& scanner);

}  // namespace petacq::daemon
