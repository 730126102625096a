// The events of some records, sorted into lists by time block, kind, and types of modules.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "gpu/base/records.hpp"
#include "tools/petlm/export/petsird/bins.hpp"
#include "tools/petlm/export/petsird/coding.hpp"
#include "tools/petlm/export/petsird/time_blocks.hpp"

namespace petacq::petsird {

/// Events of one list, as they are in the file.
struct EventList {
    std::uint64_t events = 0;
    std::vector<std::uint8_t> bytes;  ///< the first `used` are of events
    std::size_t used = 0;

    /// Adds an event.
    template <std::size_t count>
    void put(const std::array<Varint, count>& numbers) {
        constexpr std::size_t most = count * sizeof(Varint::word);
        if (bytes.size() - used < most) bytes.resize(2 * bytes.size() + first_size);
        std::uint8_t* at = bytes.data() + used;
        for (const Varint& number : numbers) {
            std::memcpy(at, &number.word, sizeof number.word);
            at += number.length;
        }
        used = static_cast<std::size_t>(at - bytes.data());
        ++events;
    }

  private:
    static constexpr std::size_t first_size = 4096;
};

/// Lists of all records, and where the events of each time block end in them.
struct EventPart {
    struct End {
        std::uint64_t events = 0;
        std::size_t bytes = 0;
    };
    std::vector<EventList> lists;       ///< [list]
    std::vector<std::uint64_t> blocks;  ///< those that have any of the records, rising
    std::vector<End> ends;              ///< [time block][list]
};

inline std::uint64_t time_of(const gpu::Coincidence& pair) {
    return pair.time;
}
inline std::uint64_t time_of(const gpu::Triple& triple) {
    return triple.pair.time;
}

/// Makes events of records. Immutable, so threads may share it.
class EventEncoder {
  public:
    /// The arguments outlive this object.
    EventEncoder(const Bins& bins, const TimeBlocks& blocks);

    /// Of pairs there are lists of prompts by types of modules, and behind them the same of delayeds. Triples
    /// with a delayed gamma, and those of delayed pairs, have no place in the format and are in no list.
    /// Throws petlm::BadInput for photons further apart than the rules of the run allow.
    /// REQUIRES: records that RecordCheck accepts.
    [[nodiscard]] EventPart encode(std::span<const gpu::Coincidence> pairs) const;
    [[nodiscard]] EventPart encode(std::span<const gpu::Triple> triples) const;
    [[nodiscard]] std::uint64_t crystals() const { return bins_.element.size(); }

  private:
    template <class Record>
    [[nodiscard]] EventPart encode_all(std::span<const Record> records, std::uint32_t lists) const;
    void check(const gpu::Coincidence& c) const;
    void add(const gpu::Coincidence& c, std::vector<EventList>& lists) const;
    void add(const gpu::Triple& t, std::vector<EventList>& lists) const;
    [[nodiscard]] Varint tof_of(std::int64_t ticks) const;

    const Bins& bins_;
    const TimeBlocks& blocks_;
    std::vector<std::uint32_t> first_bin_;  ///< [type]
    std::vector<Varint> numbers_;           ///< [number]: of detection bins of a type, and of TOF bins
};

}  // namespace petacq::petsird
