// The dead time of the detector units of a source, and the tags that report it.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/petsim/simulation/base/hit.hpp"
#include "tools/petsim/simulation/base/options.hpp"
#include "tools/petsim/simulation/base/run_clock.hpp"

namespace petacq::sim {

class DeadTime {
  public:
    DeadTime(const Options& options, const config::Source& source, const RunClock& clock);

    /// Whether the unit takes the hit, which makes it blind for the dead time.
    bool takes(const Hit& hit);
    /// A hit that the unit does not take makes a paralysable dead time begin again.
    void extend(const Hit& hit);
    /// When a tag is due next.
    [[nodiscard]] std::uint64_t next_tag() const { return tag_at_; }
    /// The value of the tag that is due: ticks for which units were blind since the last one, the mean of the
    /// units of the source. What is lost to rounding comes with the next tag.
    std::uint32_t report();

  private:
    std::uint64_t ticks_;
    bool paralysable_;
    std::vector<std::uint32_t> units_;  // of the source, that exist
    std::uint32_t first_unit_ = 0;      // the lowest of them
    std::vector<std::uint64_t> ready_;  // [unit - first_unit_] end of its dead time
    std::uint64_t blind_ = 0;           // ticks of all units, also those to come
    std::uint64_t reported_ = 0;
    std::uint64_t tag_step_ = 0;
    std::uint64_t tag_at_ = never;
};

}  // namespace petacq::sim
