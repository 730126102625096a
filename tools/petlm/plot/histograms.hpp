// The histograms of the coincidences of a run that the pictures show, filled in one pass over a run of any
// length. The definitions are those of the Python module (petacq.histograms).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "config/scanner/scanner.hpp"
#include "daemon/sinogram/line_bins.hpp"
#include "gpu/base/records.hpp"
#include "tools/petlm/plot/axial_rings.hpp"
#include "tools/petlm/plot/resolution.hpp"
#include "tools/petlm/records/source.hpp"
#include "tools/petlm/records/tags.hpp"

namespace petacq::petlm {

using Counts = std::vector<std::uint64_t>;
using sinogram::LineBins;

/// The bin of an energy in a spectrum with bins of that width, a power of two. The last one is for all values
/// that are in no other.
std::uint32_t energy_bin(float energy, float bin_keV);

/// Equal bins of detector time.
struct TimeBins {
    std::uint64_t begin = 0;  ///< ticks
    std::uint64_t width = 1;  ///< ticks; a round number of seconds, or parts of one
    std::uint32_t count = 1;  ///< the last one reaches the end, or beyond it

    /// At most `most` bins that cover begin to end.
    static TimeBins covering(std::uint64_t begin, std::uint64_t end, double tick_ps, std::uint32_t most);
    /// The bin of a time, which is not before `begin`.
    [[nodiscard]] std::uint32_t of(std::uint64_t time) const {
        const std::uint64_t bin = (time - begin) / width;
        return bin < count ? static_cast<std::uint32_t>(bin) : count - 1;
    }
};

/// Bins of the signed time difference, an odd number of ticks wide, around 0: bin b from `least` to -`least`
/// holds b * width - width / 2 to b * width + width / 2.
struct DifferenceBins {
    std::uint32_t window = 0;  ///< ticks; larger differences are outside
    std::uint32_t width = 1;   ///< ticks
    std::int32_t least = 0;

    static DifferenceBins covering(std::uint32_t window);
    [[nodiscard]] std::size_t count() const { return static_cast<std::size_t>(1 - 2 * std::int64_t{least}); }
    [[nodiscard]] std::size_t of(std::int64_t ticks) const {
        const std::int64_t half = width / 2;
        const std::int64_t bin = ticks >= 0 ? (ticks + half) / width : -((half - ticks) / width);
        return static_cast<std::size_t>(bin - least);
    }
};

/// Equal parts of the cycles that the triggers of a channel, or the openings of its gate, begin.
struct PhaseBins {
    static constexpr std::uint32_t count = 32;
    unsigned channel;
    Cycles cycles;
};

struct PairBins {
    PairBins(const config::Scanner& scanner, const config::DepthOfInteraction& depth, const TimeBins& times,
             std::uint32_t window);

    AxialRings rings;
    std::uint32_t rings_per_bin;  ///< of the michelogram; 1 unless there are very many rings
    std::uint32_t ring_bins;
    TimeBins times;
    DifferenceBins differences;
    LineBins lines;                         ///< of s half a crystal wide
    std::vector<PhaseBins> phases;          ///< those of the run; empty at first
    std::optional<TimeWidths> widths = {};  ///< if it is known where the photons come from
};

/// The histograms of one kind of pairs.
struct PairHistograms {
    explicit PairHistograms(const PairBins& bins);
    PairHistograms& operator+=(const PairHistograms& other);

    std::uint64_t pairs = 0;
    Counts energy;      ///< [config::energy_bins] of config::energy_bin_keV, of both photons
    Counts crystals;    ///< [crystal] of both photons
    Counts difference;  ///< time of the crystal with the larger number minus that of the other
    std::uint64_t beyond_window = 0;
    Counts time;
    Counts michelogram;  ///< [ring bin][ring bin], first the crystal with the smaller column of LineBins
    Counts sinogram;     ///< [angle][radial], summed over all planes
    std::uint64_t beyond_sinogram = 0;
    std::vector<Counts> phases;      ///< [PairBins::phases][phase]
    std::vector<TimeCounts> widths;  ///< [TimeWidths::histograms()] of prompts alone
    Counts planes;                   ///< [ring + ring]: single-slice rebinned
};

struct KindHistograms {
    PairHistograms prompts;
    PairHistograms delayeds;
};

/// Adds pairs of crystals of the scanner, with times not before the first bin.
void add_pairs(const PairBins& bins, std::span<const gpu::Coincidence> pairs, KindHistograms& to);

/// Counts all pairs of the source, on all cores. Throws as for_each_block does.
KindHistograms histograms_of(const ExportSource& source, const PairBins& bins);

}  // namespace petacq::petlm
