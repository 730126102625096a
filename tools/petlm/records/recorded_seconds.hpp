// The seconds that a run has recorded, for a search that makes them again: where they begin and end, and what
// the singles of the run do not tell.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "config/geometry.hpp"
#include "daemon/seconds/reader.hpp"
#include "daemon/seconds/second.hpp"
#include "gpu/second_cuts.hpp"

namespace petacq::petlm {

/// One pass from the first second to the last. Seconds that the run has not recorded, or that cannot be read,
/// begin at multiples of a second; nothing is known about them. Not thread-safe.
class RecordedSeconds {
  public:
    struct Second {
        gpu::TickRange range;
        daemon::BoardReport report;
        bool recorded = false;
    };
    /// `run`: its directory. `second`: ticks.
    RecordedSeconds(const std::filesystem::path& run, const config::Geometry& geometry, std::uint64_t second);

    /// The first one, of a run whose first single has this time.
    [[nodiscard]] Second first(std::uint64_t time);
    /// The one that begins at `start`, where the one before ended. The next single has this time: many
    /// seconds without any, which are not recorded, are one.
    [[nodiscard]] Second next(std::uint64_t start, std::uint64_t time);
    /// Whether the run has recorded seconds that begin at `start` or later.
    [[nodiscard]] bool any_from(std::uint64_t start);

  private:
    void advance();
    [[nodiscard]] daemon::BoardReport report() const;

    const config::Geometry geometry_;
    const std::uint64_t second_;
    std::unique_ptr<daemon::SecondsReader> reader_;  ///< at the next recorded second; nullptr: there is none
};

}  // namespace petacq::petlm
