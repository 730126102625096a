// Whether the bed moved while records were taken, as the position tags of their runs say.
#pragma once

#include <string>
#include <vector>

#include "daemon/coverage/coverage.hpp"
#include "tools/petlm/records/source.hpp"

namespace petacq::corrections {

/// A position at which the bed stood still.
struct BedPosition {
    double mm = 0;
    daemon::Intervals times;  ///< of those that the file covers
};

struct BedMovement {
    /// Positions closer to each other are one.
    static constexpr double min_step_mm = 0.1;
    /// The bed is still at a position from which it does not move for that long.
    static constexpr double still_s = 0.5;
    /// Step and shoot: it is still for at least this share of the time, on the way for the rest.
    static constexpr double min_still_share = 0.8;

    /// Distance between the lowest and the highest position in the time that the file covers, of the channel
    /// where it is largest. 0: no bed moved, or there are no tags.
    double travel_mm = 0;
    unsigned channel = 0;
    unsigned moving_channels = 0;
    /// Of the channel that moved, in the order in which it was first there; each once.
    std::vector<BedPosition> positions;
    /// The share of the recorded time spent at these.
    double still_share = 1;
    /// Why the tags of some runs are not known, a phrase each. The rest says nothing of their times.
    std::vector<std::string> unknown;

    [[nodiscard]] bool moved() const { return travel_mm > min_step_mm; }
    /// It moved in steps, and can be taken apart into its positions.
    [[nodiscard]] bool in_steps() const {
        return unknown.empty() && moving_channels == 1 && positions.size() > 1 &&
               still_share >= min_still_share;
    }
    /// "The bed moved by 20 mm, as the position tags of channel 3 say: ..."; no end of the sentence.
    [[nodiscard]] std::string text() const;
    /// "Whether the bed moved is not known: the run ... was found neither in ..." Empty if it is known.
    [[nodiscard]] std::string unknown_text() const;
};

/// Reads the tags of the runs of `source`; those of `rotation` are of the scanner, not of a bed. Until the
/// first tag of a channel, its bed is taken to be where that says. Throws as RecordSource does.
BedMovement bed_movement(const petlm::ExportSource& source,
                         const std::optional<config::Rotation>& rotation = {});

}  // namespace petacq::corrections
