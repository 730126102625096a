// How many random prompts each delayed of a run stands for.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "daemon/coverage/coverage.hpp"
#include "daemon/seconds/reader.hpp"

namespace petacq::petlm {

/// One pass over the seconds of runs, with the records of their list-mode. Not thread-safe.
class DelayedsWeight {
  public:
    /// The directories of the runs. `rules`: of the records; the seconds of other rules are not used.
    DelayedsWeight(const std::vector<std::filesystem::path>& runs, const daemon::RecordRules& rules);

    /// In the second that holds the time (ticks), or the last one before it. 1 before the first second, and
    /// for runs without seconds of these rules. REQUIRES: the times do not fall.
    [[nodiscard]] double at(std::uint64_t time);
    /// Why weights are not known, as far as the seconds have been read. Empty: all is well.
    [[nodiscard]] const std::string& trouble() const { return trouble_; }

  private:
    struct WeightedRun {
        std::unique_ptr<daemon::SecondsReader> reader;  ///< nullptr: there are no more
        const daemon::SecondField* field = nullptr;
    };
    void advance(WeightedRun& run);

    std::vector<WeightedRun> runs_;
    std::uint64_t latest_ = 0;  ///< start of the second whose weight it is
    double weight_ = 1;
    std::string trouble_;
};

}  // namespace petacq::petlm
