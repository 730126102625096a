// What the tags of a run say about time: when a gate was open, and the cycles between triggers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "daemon/coverage/coverage.hpp"
#include "gpu/base/records.hpp"

namespace petacq::petlm {

/// Ticks.
struct Interval {
    std::uint64_t from = 0;         ///< inclusive
    std::uint64_t to = UINT64_MAX;  ///< exclusive
    bool operator==(const Interval&) const = default;
};

/// Whether a run directory has a file of tags, or files.
bool has_tags(const std::filesystem::path& run);
/// Whether the run had tags, by the ledger in its run.json.
bool wrote_tags(const std::filesystem::path& run);

/// The triggers and the gate tags of one channel, whatever source sent them, in order.
struct ChannelTags {
    unsigned channel = 0;
    std::vector<gpu::Tag> tags;
};
/// Those of all channels of a run that have any; empty when the run has no tags. Throws as RecordSource does.
std::vector<ChannelTags> tags_by_channel(const std::filesystem::path& run);

/// Which tags of a channel are taken.
enum class TagUse : std::uint8_t {
    cycles,     ///< triggers and gates
    positions,  ///< of the bed or the scanner
};

/// The tags of one channel, and the times in which they could have been.
struct TagsOverTime {
    std::vector<gpu::Tag> tags;
    daemon::Intervals times;
};
/// Those of the runs of which `target`, a run directory or a file, has records: one after the other, and
/// runs of the same time as one. Throws BadInput when there are none or a run is not found, and as
/// RecordSource does.
std::vector<TagsOverTime> tags_of(const std::filesystem::path& target, const daemon::Coverage& coverage,
                                  unsigned channel, TagUse use = TagUse::cycles);

/// The times at which the gate of a channel is open. A gate that its first tag closes was open before it.
/// Throws BadInput when no tag is that of a gate.
daemon::Intervals open_times(std::span<const TagsOverTime> tags);

/// Which cycles are used.
struct CycleLimits {
    std::uint64_t shortest = 1;  ///< ticks
    std::uint64_t longest = UINT64_MAX;
};

/// The cycles between successive triggers of a channel or, if it has none, between successive openings of its
/// gate. Cycles of another length than the limits allow, and those between triggers whose running numbers do
/// not follow each other, are rejected: a trigger between them may be missing.
class Cycles {
  public:
    Cycles(std::span<const gpu::Tag> tags, const CycleLimits& limits);
    /// No cycle begins in one run and ends in another.
    Cycles(std::span<const TagsOverTime> runs, const CycleLimits& limits);

    [[nodiscard]] const std::vector<gpu::TickRange>& accepted() const { return accepted_; }
    [[nodiscard]] std::uint64_t rejected() const { return rejected_; }
    /// Of the accepted ones, ticks.
    [[nodiscard]] double mean_period() const { return mean_; }
    /// Standard deviation.
    [[nodiscard]] double spread_of_period() const { return spread_; }

    /// The bin of a time in its cycle, of `bins` equal ones, (time - begin) * bins / length rounded down;
    /// none outside the accepted cycles.
    [[nodiscard]] std::optional<std::uint32_t> bin_of(std::uint64_t time, std::uint32_t bins) const;
    /// The times that bin_of() puts in this bin.
    [[nodiscard]] daemon::Intervals times_of(std::uint32_t bin, std::uint32_t bins) const;
    /// [bin] the ticks that fall in it, in all accepted cycles.
    [[nodiscard]] std::vector<std::uint64_t> live_ticks(std::uint32_t bins) const;

  private:
    void add(std::span<const gpu::Tag> tags, const CycleLimits& limits);
    void measure();

    std::vector<gpu::TickRange> accepted_;
    std::uint64_t rejected_ = 0;
    double mean_ = 0;
    double spread_ = 0;
};

}  // namespace petacq::petlm
