// Temperatures, missing datagrams and dead time in each second of detector time, as the boards report them.
// The figures of a second depend only on the data in it, not on the moment at which they are taken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "daemon/seconds/second.hpp"
#include "gpu/base/records.hpp"
#include "gpu/second_cuts.hpp"

namespace petacq::daemon {

/// The modules that a source carries.
struct SourceModules {
    std::uint16_t source = 0;  ///< as in its tags
    std::vector<std::uint32_t> bdms;
};

/// One thread at a time.
///
/// Temperature: the mean over the datagrams of the second, each with the temperature in its last hit, for the
/// module of that hit. The second is divided into 64 parts. One that a segment starts or ends in has the
/// parts that lie wholly in it.
///
/// Lost: what the datagrams of the second show to be missing, less those of them that had been missing.
///
/// Dead time: of the source that carries the module; of several sources that sent such tags, the mean. A tag
/// tells of the time since the one before it. Of the first tag of a range, that part counts which lies in the
/// range. After the last one, the source is taken to be as blind as before it, but for no longer than until
/// the next tag is overdue: boards that fall silent tell nothing. Unknown without a tag in the range, and for
/// modules that no listed source carries.
class BoardReadings {
  public:
    /// `second`: ticks. `bdm_count`: modules. `loss_known`: whether datagrams have numbers.
    BoardReadings(std::uint64_t second, std::uint32_t bdm_count, bool loss_known,
                  const std::vector<SourceModules>& sources);

    /// A datagram whose last frame has this time, and whose last hit this temperature. Never allocates more
    /// than once in a 64th of a second of detector time.
    void add_temperature(std::uint64_t time, std::uint32_t bdm, std::int16_t sixteenths) {
        if (time - open_start_ >= open_length_ && !open(time)) return;
        if (bdm >= bdm_count_) return;
        Temperature& t = open_[bdm];
        t.sum_16ths += sixteenths;
        ++t.datagrams;
    }
    /// Whether datagrams of these times would count in the same part of a second.
    [[nodiscard]] bool in_one_part(std::uint64_t first, std::uint64_t last) const {
        if (first - open_start_ < open_length_ && last - open_start_ < open_length_) return true;
        return first / second_ == last / second_ && first % second_ / part_ == last % second_ / part_;
    }
    /// `change`: datagrams that one of this time shows to be missing; -1: it had been missing.
    void add_lost(std::uint64_t time, std::int64_t change);
    /// The number of a datagram of this time says nothing: what is lost in its second is unknown.
    void add_unnumbered(std::uint64_t time);
    /// Tags of the segment that the next range lies in. Those of other kinds than dead time mean nothing
    /// here.
    void add(std::span<const gpu::Tag> tags);

    /// Fills in all but `late` for the next range, which is not before those taken so far, and forgets
    /// everything before its end.
    void take(gpu::TickRange range, BoardReport& report);
    /// Detector time starts again.
    void clear();

  private:
    struct Temperature {
        std::int64_t sum_16ths = 0;
        std::uint64_t datagrams = 0;
    };
    /// A 64th of a second.
    struct SecondPart {
        std::uint64_t start = 0;
        std::vector<Temperature> modules;  ///< [bdm]
    };
    struct Loss {
        std::uint64_t time = 0;
        std::int64_t change = 0;
        bool known = true;
    };
    /// A dead time tag.
    struct Blind {
        std::uint64_t since = unknown_time;  ///< time of the tag before
        std::uint64_t time = 0;
        double ticks = 0;
    };
    /// Those of a source in a second.
    struct BlindSecond {
        double ticks = BoardReport::unknown;  ///< of all; NaN: none
        Blind first;
        Blind last;
    };
    static constexpr std::uint64_t unknown_time = UINT64_MAX;
    static double blind_ticks(const BlindSecond& tags, gpu::TickRange range);
    // More than this is kept only if boards are far apart in time; what is later is left out, or added to
    // what was there before.
    static constexpr std::size_t max_parts = 1024;
    static constexpr std::size_t max_losses = 65'536;

    bool open(std::uint64_t time);
    [[nodiscard]] std::uint64_t length_of_part(std::uint64_t start) const;
    void take_temperatures(gpu::TickRange range, std::vector<double>& means);
    void take_dead_time(gpu::TickRange range, std::vector<double>& ticks);

    const std::uint64_t second_;
    const std::uint64_t part_;  ///< ticks; the last part of a second may be shorter
    const std::uint32_t bdm_count_;
    const bool loss_known_;
    std::vector<SecondPart> parts_;                ///< in order
    std::vector<std::vector<Temperature>> spare_;  ///< memory of parts
    std::uint64_t open_start_ = 0;                 ///< the part of the latest datagram
    std::uint64_t open_length_ = 0;
    Temperature* open_ = nullptr;
    std::vector<Loss> losses_;
    std::map<std::uint16_t, std::size_t> numbers_;             ///< of the sources
    std::vector<std::vector<std::size_t>> carriers_;           ///< [bdm] numbers of the sources that carry it
    std::vector<std::uint64_t> last_tag_;                      ///< [number]
    std::map<std::uint64_t, std::vector<BlindSecond>> blind_;  ///< [time / second][number]
};

}  // namespace petacq::daemon
