// How many random prompts each delayed of a run stands for.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "daemon/seconds/reader.hpp"

namespace petacq::petlm {

/// One pass over the seconds of a run, with the records of its list-mode. Not thread-safe.
class DelayedsWeight {
  public:
    /// `target`: run directory, or a file in one.
    explicit DelayedsWeight(const std::filesystem::path& target);

    /// In the second that holds the time (ticks), or the last one before it. 1 before the first second, and
    /// for a run without seconds. REQUIRES: the times do not fall.
    [[nodiscard]] double at(std::uint64_t time);
    /// Why weights are not known, as far as the seconds have been read. Empty: all is well.
    [[nodiscard]] const std::string& trouble() const { return trouble_; }

  private:
    void advance();

    std::unique_ptr<daemon::SecondsReader> reader_;  ///< nullptr: there are no more
    const daemon::SecondField* field_ = nullptr;
    double weight_ = 1;
    std::string trouble_;
};

}  // namespace petacq::petlm
