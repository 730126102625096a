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
#include "tools/petlm/records/source.hpp"

namespace petacq::petlm {

/// One pass over the seconds of all runs, run by run. One thread at a time.
class CoveredSeconds {
  public:
    /// All seconds of one file, each as a whole. Throws as SecondsReader does.
    explicit CoveredSeconds(const std::filesystem::path& file);
    /// Those of the runs of `source`, as far as `coverage`, all of its own or a part, goes. Null if they
    /// cannot be used; `why` gives the reason: it is not known what the file covers, a run or its seconds are
    /// not found, or the seconds were made by other rules than the records. Throws as SecondsReader does.
    static std::unique_ptr<CoveredSeconds> of(const ExportSource& source, const daemon::Coverage& coverage,
                                              std::string& why);

    /// Of the first run.
    [[nodiscard]] const std::vector<daemon::SecondField>& fields();
    /// Goes to the next second that the file covers in part. Throws std::invalid_argument for a file that is
    /// not complete.
    bool next();
    /// At the current second.
    [[nodiscard]] const daemon::SecondsReader& reader() const { return *reader_; }
    /// The number of its run, from 0.
    [[nodiscard]] std::size_t run() const { return run_; }
    /// The share of it that the file covers, of the time in which its run recorded.
    [[nodiscard]] double share() const { return share_; }

    /// After the last next(): the share of the time of the file for which there are seconds.
    [[nodiscard]] double known() const;

  private:
    struct Run {
        std::filesystem::path file;
        std::optional<daemon::Intervals> recorded;
        daemon::Intervals told;  ///< within which it has records in the file
    };
    CoveredSeconds() = default;
    bool open_next();

    std::vector<Run> runs_;
    std::optional<daemon::Intervals> covered_;  ///< absent: all
    double open_ = 1;                           ///< share of the intervals in which records were taken
    std::size_t next_run_ = 0;
    std::size_t run_ = 0;
    std::unique_ptr<daemon::SecondsReader> reader_;
    double share_ = 1;
    std::uint64_t told_ = 0;  ///< ticks of the intervals for which there were seconds
};

}  // namespace petacq::petlm
