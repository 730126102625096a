// The time blocks of singles and dead time of a PETSIRD file: one of each for a second of the run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tools/petlm/export/petsird/other_blocks.hpp"

namespace petacq::petsird {

/// From the records by the second of a run: singles in windows alone and with others, and dead time by
/// module. Seconds are joined with a neighbour where whole milliseconds would change their rates. Not
/// thread-safe.
class SecondBlocks {
  public:
    /// `files`: the seconds of the run, in order; none: it has none. The references outlive this object.
    /// Throws as SecondsReader does, petlm::BadInput for seconds of another scanner.
    SecondBlocks(std::vector<std::filesystem::path> files, const config::Geometry& geometry, const Bins& bins,
                 const TimeBlocks& time, Version version);
    ~SecondBlocks();
    SecondBlocks(const SecondBlocks&) = delete;
    SecondBlocks& operator=(const SecondBlocks&) = delete;

    /// Whether there are blocks: the seconds cover all time blocks of events, as the format demands.
    [[nodiscard]] bool any() const { return covers_all_ && !spans_.empty(); }
    [[nodiscard]] const std::vector<std::string>& not_held() const { return not_held_; }
    /// Appends the blocks that begin before `ms` and were not taken yet, in the order of time.
    void take_before(std::uint64_t ms, std::vector<OtherBlock>& out);

  private:
    class Pass;
    /// Seconds that follow one another, as one interval.
    struct JoinedSeconds {
        std::uint64_t start = 0;  ///< ticks
        std::uint64_t end = 0;
        std::int64_t begin_ms = 0;
        std::int64_t end_ms = 0;
        std::uint64_t first = 0;  ///< number of the first second in the run
        std::uint64_t last = 0;
    };
    void look();
    void make_spans(const std::vector<JoinedSeconds>& seconds);
    [[nodiscard]] JoinedSeconds span_of(const JoinedSeconds& second, bool is_followed) const;
    [[nodiscard]] bool is_rounded(const JoinedSeconds& span) const;
    [[nodiscard]] bool cover_all() const;
    void add(const JoinedSeconds& span, std::vector<OtherBlock>& out);
    void put_alive(Coded& block, const std::vector<double>& blind, double ticks) const;
    void put_singles(Coded& block, const std::vector<std::uint64_t>& singles) const;

    std::vector<std::filesystem::path> files_;
    const Bins& bins_;
    const TimeBlocks& time_;
    Version version_;
    std::vector<std::uint16_t> module_of_;  ///< [crystal]
    std::size_t modules_;
    std::vector<JoinedSeconds> spans_;
    std::size_t next_ = 0;
    bool covers_all_ = false;
    bool has_dead_time_ = false;
    std::string alive_of_pairs_;  ///< the same in all blocks
    std::vector<std::string> not_held_;
    std::unique_ptr<Pass> pass_;
};

}  // namespace petacq::petsird
