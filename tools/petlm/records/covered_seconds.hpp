// The seconds of the runs from which the records of a file come, each with the share of it that the file
// covers: a cut, a phase or a merge has the seconds of its runs in part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/configuration.hpp"
#include "daemon/coverage/coverage.hpp"
#include "daemon/seconds/reader.hpp"

namespace petacq::petlm {

/// One pass over the seconds of all runs, run by run. One thread at a time.
class CoveredSeconds {
  public:
    /// All seconds of one file, each as a whole. Throws as SecondsReader does.
    explicit CoveredSeconds(const std::filesystem::path& file);
    /// Those of the runs of a file or run directory, as far as `coverage`, all of its own or a part, goes.
    /// Null if they cannot be used; `why` gives the reason: it is not known what the file covers, or a run or
    /// its seconds are not found. Throws as SecondsReader does.
    static std::unique_ptr<CoveredSeconds> of(const std::filesystem::path& target,
                                              const daemon::Coverage& coverage, std::string& why);

    /// Empty if the seconds were made by the rules of the records, else how these differ. What boards report
    /// of themselves depends on no rule; counts of pairs, and what follows from them, do.
    [[nodiscard]] const std::string& other_rules() const { return other_rules_; }

    /// Of all runs, each name once. Throws std::invalid_argument if runs mean different things by a name.
    [[nodiscard]] std::vector<daemon::SecondField> fields() const;
    /// Goes to the next second that the file covers in part. Throws std::invalid_argument for a file that is
    /// not complete.
    bool next();
    /// At the current second.
    [[nodiscard]] const daemon::SecondsReader& reader() const { return *reader_; }
    /// Of the current second or, before the first, of the first run.
    [[nodiscard]] const std::filesystem::path& file() const { return runs_[run_].file; }
    /// The number of its run, from 0.
    [[nodiscard]] std::size_t run() const { return run_; }
    /// The share of it that the file covers, of the time in which its run recorded.
    [[nodiscard]] double share() const { return share_; }

    /// After the last next(): the share of the time of the file for which there are seconds.
    [[nodiscard]] double known() const;

  private:
    struct CoveredRun {
        std::filesystem::path file;
        std::optional<daemon::Intervals> recorded;
        daemon::Intervals told;  ///< within which it has records in the file
    };
    CoveredSeconds() = default;
    bool open_next();

    std::string other_rules_;
    std::vector<CoveredRun> runs_;
    std::optional<daemon::Intervals> covered_;  ///< absent: all
    double open_ = 1;                           ///< share of the intervals in which records were taken
    std::size_t next_run_ = 0;
    std::size_t run_ = 0;
    std::unique_ptr<daemon::SecondsReader> reader_;
    double share_ = 1;
    std::uint64_t told_ = 0;  ///< ticks of the intervals for which there were seconds
};

/// Singles in the energy window in the time that `coverage` has; absent if the seconds of its runs do not
/// tell, or were made by other rules.
std::optional<double> singles_in(const std::filesystem::path& target, const daemon::Coverage& coverage);
/// Mean share of the data of the boards that arrived, over the modules and the covered time, by the coverage
/// or else by the seconds; absent if it is not known of all.
std::optional<double> live_share(const std::filesystem::path& target, const daemon::Coverage& coverage);
/// For people, if not all data are known to have arrived: "2 % of the data of the boards did not arrive".
/// Otherwise empty.
std::string data_that_lack(const std::filesystem::path& target, const daemon::Coverage& coverage);

}  // namespace petacq::petlm
