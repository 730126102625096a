// The time blocks of events of a PETSIRD file, one after the other.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/petlm/export/petsird/event_parts.hpp"

namespace petacq::petsird {

/// What a file has of a kind of events in a time block.
class GatheredLists {
  public:
    explicit GatheredLists(std::size_t lists) : lists_(lists) {}
    /// Adds the events of the k-th time block of the part.
    void add(const EventPart& part, std::size_t k);
    void clear();
    [[nodiscard]] const std::vector<EventList>& lists() const { return lists_; }

  private:
    std::vector<EventList> lists_;
};

/// The events of the records of a file or a run, time block by time block; they are made by all cores. Not
/// thread-safe.
template <class Record>
class EventStream {
  public:
    /// `encoder` outlives this object. `done` is called with numbers of records that were read.
    EventStream(const std::filesystem::path& target, const EventEncoder& encoder, std::size_t lists,
                std::function<void(std::uint64_t)> done);
    ~EventStream();
    EventStream(const EventStream&) = delete;
    EventStream& operator=(const EventStream&) = delete;

    /// The events of this time block, which is none that was asked for before or comes earlier. Valid until
    /// the next call. Throws petlm::BadInput for damaged files, and as EventEncoder does.
    const std::vector<EventList>& of(std::uint64_t block);

  private:
    class Parts;
    std::unique_ptr<Parts> parts_;
    std::optional<EventPart> part_;
    std::size_t next_ = 0;  ///< time block in the part
    GatheredLists gathered_;
};

/// The bytes of time blocks of events. Lists are in tables by the types of modules of their photons, of which
/// none is higher than the one before it; in 0.9.1 the tables have places for all others, too. There are no
/// lists of single photons, and none of groups of four.
class EventBlocks {
  public:
    using Lists = std::vector<EventList>;
    EventBlocks(const Bins& bins, Version version, bool delayeds)
        : types_(bins.type_count()),
          pair_lists_(bins.pair_lists()),
          delayeds_(delayeds),
          triples_(bins.gamma_energy.has_value()),
          triangular_(version != Version::v0_9_1) {}

    /// `pairs`: prompts, and behind them delayeds. Calls `put` with pieces of text.
    void write(BlockTime time, const Lists& pairs, const Lists& triples,
               const std::function<void(std::string_view)>& put) const;

  private:
    std::uint32_t types_;
    std::uint32_t pair_lists_;
    bool delayeds_;
    bool triples_;
    bool triangular_;
};

extern template class EventStream<gpu::Coincidence>;
extern template class EventStream<gpu::Triple>;

}  // namespace petacq::petsird
