// Where a source is, and which modules are not where they should be, from the lines of its prompts.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "config/scanner/scanner.hpp"
#include "tools/petcal/estimate/pairs/known_source.hpp"

namespace petacq::estimate {

/// The two crystals of a prompt.
using Line = std::pair<std::uint32_t, std::uint32_t>;

struct SourcePlace {
    Vector3 centre_mm{};
    double error_mm = 0;        ///< standard deviation across the axis, by the counts
    double error_along_mm = 0;  ///< that along the axis
    std::uint64_t lines = 0;    ///< that went into it
};

/// The centre of a source of this shape that lies near `said` or anywhere else in the ring, from the points
/// of the crystals at `depth_mm`: half of the lines pass on either side of it. Lines far from it count for
/// nothing, and those whose mirror image by the centre would meet a dead detector unit or no crystal neither;
/// so dead units and the ends of the scanner do not move it. The place along the axis of a source that is
/// longer than the scanner is that of `said`.
SourcePlace find_source(const config::Scanner& scanner, std::span<const Line> lines, const KnownSource& said,
                        double depth_mm);

struct Exchange {
    std::uint32_t a = 0;  ///< BDMs
    std::uint32_t b = 0;
    double missed = 0;        ///< share of their lines that miss the source
    double missed_after = 0;  ///< the same, if they are exchanged
};

/// Pairs of modules each of which is in the place of the other: most of their lines miss the source, and meet
/// it if the two are exchanged.
std::vector<Exchange> exchanged_modules(const config::Scanner& scanner, std::span<const Line> lines,
                                        const KnownSource& source);

/// The place of a crystal along the axis: how many different ones are below it. Of a ring, its ring.
std::uint32_t ring_of(const config::Geometry& geometry, std::uint32_t crystal);
std::uint32_t ring_count(const config::Geometry& geometry);

/// Rings with less than a fifth of the counts that a well covered ring has of those expected, of any common
/// unit. Those without expected counts are among them.
std::vector<std::uint32_t> rings_without(const config::Geometry& geometry, std::span<const double> counts,
                                         std::span<const double> expected);

}  // namespace petacq::estimate
