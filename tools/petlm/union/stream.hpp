// The runs of the hosts that heard one stream.
#pragma once

#include <compare>
#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "daemon/coverage/coverage.hpp"
#include "tools/petlm/union/heard_run.hpp"
#include "tools/petlm/union/union.hpp"

namespace petacq::petlm {

/// One thread at a time.
class HeardStream {
  public:
    /// Opens the runs; with `follow`, those that are there. Throws UsageError if one is named twice, or they
    /// are not of one stream: another scanner, calibration, clock, energy window, sources, rules or name; and
    /// if one is still written and `follow` is not set.
    explicit HeardStream(const UnionOptions& options);

    /// Takes what has been written since, and opens runs that have come. A run NAME-2 beside a run NAME that
    /// has ended continues it if it began while another host recorded: then a host has come back. So does
    /// NAME-3, and so on. Throws as the constructor does.
    void look();
    /// Of those that are there, in an order that does not depend on when they came: those that are named, and
    /// then those that continue them.
    [[nodiscard]] std::span<HeardRun* const> runs() const { return pointers_; }
    /// A run is there, and none of those that are there is written any more.
    [[nodiscard]] bool ended() const;
    /// The run that began first, as far as it is known: the result has its name and its time of day.
    [[nodiscard]] const HeardRun& first() const;
    /// All that the runs cover. Once they have ended.
    [[nodiscard]] daemon::Coverage coverage() const;
    /// What speaks against one stream though nothing forbids it: times of day that differ. Empty: nothing.
    [[nodiscard]] std::string doubt() const;

  private:
    /// The number of the run that is named, and after all of these those that continue it.
    struct RunOrder {
        bool continues = false;
        std::size_t named = 0;
        unsigned number = 1;
        auto operator<=>(const RunOrder&) const = default;
    };
    void open(const std::filesystem::path& directory, RunOrder place);
    void open_continued(std::size_t named);
    [[nodiscard]] bool is_open(const std::filesystem::path& directory) const;
    [[nodiscard]] bool continues(const std::filesystem::path& directory, const HeardRun& before) const;
    void check(const HeardRun& run) const;

    const UnionOptions& options_;
    std::map<RunOrder, std::unique_ptr<HeardRun>> runs_;
    std::vector<HeardRun*> pointers_;  ///< in the same order
};

}  // namespace petacq::petlm
