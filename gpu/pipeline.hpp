// The pipeline: frames in, coincidences and tags out. One interface, a CPU and a CUDA back-end that give the
// same bytes.
//
// The caller hands over frames as they arrive, in any order, together with a watermark: the promise that no
// frame below it is still to come. The pipeline converts the frames, keeps the singles that cannot be decided
// yet, and returns the coincidences that can. The output for a segment (from one close to the next)
// depends only on its set of frames, as long as none of them was late.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config/calibration.hpp"
#include "config/choices.hpp"
#include "config/scanner/frame_version.hpp"
#include "config/scanner/geometry.hpp"
#include "gpu/base/counters.hpp"
#include "gpu/base/records.hpp"
#include "gpu/histograms.hpp"
#include "gpu/interval_sums.hpp"
#include "gpu/rules/coincidence_rules.hpp"
#include "gpu/second_cuts.hpp"
#include "gpu/spectra.hpp"
#include "net/modules.hpp"

namespace petacq::gpu {

using config::SortEngine;

struct EnergyWindow {
    bool filter = true;
    float lower = 0;  ///< keV, inclusive
    float upper = 0;  ///< keV, inclusive
};

/// The contents of the spans of a slice. Singles, 16 bytes each, are not converted, but the energy window and
/// the watermark apply to them as to frames. A crystal outside the scanner counts as a bad address; a
/// negative energy or NaN always counts as below the window. Only the histogram per_crystal is filled.
enum class Input : std::uint8_t { frames, singles };

/// Slices that may wait beyond max_pending_singles: the one that exceeds it, the one with which slow sources
/// are given up, and one that closes a run.
inline constexpr std::uint64_t pending_slack = 3;

struct PipelineOptions {
    Input input = Input::frames;
    config::Geometry geometry;
    config::FrameVersion frame_version = config::FrameVersion::one;
    std::uint8_t head_marker = 0xA;
    std::uint8_t tail_marker = 0x5;  ///< of frames of version 1
    std::uint8_t tag_marker = 0xB;   ///< of tag frames, in place of the head marker; different from it
    /// The modules of each source: frames of others are bad addresses. Empty: all frames may have any module.
    std::vector<net::Modules> sources;
    EnergyWindow energy;
    CoincidenceRules rules;
    bool emit_singles = false;                       ///< also return the accepted singles in order
    bool spectra = false;                            ///< count frames into spectra; not for singles
    std::uint32_t threads = 1;                       ///< CPU back-end: threads that compute
    SortEngine sort_engine = SortEngine::automatic;  ///< CUDA back-end; the output does not depend on it
    /// CUDA back-end: numbers of devices, which share the copies and conversion; empty: the current one of
    /// the calling thread. The output does not depend on them.
    std::vector<std::uint32_t> devices;
    std::uint64_t max_pending_singles = 16U << 20;  ///< memory bound for singles that wait for the watermark
    std::uint32_t max_slice_frames = 1U << 20;      ///< most frames in one slice
};

/// The frames of a datagram, which lie back to back; or of several datagrams of one source, as many frames in
/// each, at equal distances.
struct FrameSpan {
    const std::byte* frames = nullptr;  ///< 16-byte aligned
    std::uint32_t count = 0;            ///< frames in a datagram
    /// Raw times outside [time_low, time_high] are time jumps: rejected.
    std::uint64_t time_low = 0;
    std::uint64_t time_high = UINT64_MAX;
    /// Position in PipelineOptions::sources plus 1; 0: not one of them, any module. Ignored without any there
    /// and for singles.
    std::uint32_t source = 0;
    std::uint16_t tag_source = 0;  ///< Tag::source of its tags
    std::uint16_t datagrams = 1;
    std::uint32_t stride = 0;  ///< bytes from one to the next; a multiple of 16, at least 16 * count

    [[nodiscard]] std::uint64_t total() const { return std::uint64_t{count} * datagrams; }
    /// One of them as a span.
    [[nodiscard]] FrameSpan datagram(std::uint32_t index) const {
        FrameSpan one = *this;
        one.frames += std::size_t{index} * stride;
        one.datagrams = 1;
        return one;
    }
};

/// Frames that are processed together, at most PipelineOptions::max_slice_frames. The spans and their frames
/// must stay as they are until the slice has been collected or the pipeline has been destroyed, also after a
/// failure.
struct Slice {
    std::uint64_t id = 0;  ///< given back with the result
    std::span<const FrameSpan> spans;
    /// Later slices contain no frame with a (corrected) time below it. Frames of this slice are late if they
    /// are below the watermark of the previous slice. Never decreases.
    std::uint64_t watermark = 0;
    /// Ends a segment: singles below close_at are decided as at the end of the data; the others start the
    /// next segment. It lies between the watermark of the previous slice and that of this one (both
    /// UINT64_MAX: everything). The result of this slice holds only the rest of the closed segment; the next
    /// segment's results come with later slices, even if the watermark is well above close_at.
    std::optional<std::uint64_t> close_at;
    /// With close_at, and not above it: only singles below this time are decided, as they will be at
    /// close_at. The segment stays open, and a later slice with the same close_at ends it. So an interval may
    /// end anywhere in the last window and delay of a segment.
    std::optional<std::uint64_t> decide_before = {};
    /// Ends an interval: the result has the sums over everything decided since the interval before.
    bool ends_interval = false;
    /// With PipelineOptions::spectra: the frames of the slice with raw times in this range count in the
    /// spectra, whatever becomes of them later, except for time jumps. Absent: none.
    std::optional<TickRange> spectra = {};

    [[nodiscard]] bool ends_segment() const { return close_at && !decide_before; }
    /// All singles belong to the segment.
    [[nodiscard]] bool is_everything() const { return close_at == UINT64_MAX; }
};

/// Where the frames of a slice that are no tags went: received = the sum of the others.
struct FrameCounts {
    PETACQ_FRAME_COUNTERS(PETACQ_COUNTER_MEMBER)

    FrameCounts& operator+=(const FrameCounts& o);
    bool operator==(const FrameCounts&) const = default;
};

/// Where the tags of a slice went: received = the sum of the others.
struct TagCounts {
    PETACQ_TAG_COUNTERS(PETACQ_COUNTER_MEMBER)

    TagCounts& operator+=(const TagCounts& o);
    bool operator==(const TagCounts&) const = default;
};

/// The result of one slice. A reused object keeps the capacity of its vectors.
struct SliceResult {
    std::uint64_t id = 0;
    RecordVector<Coincidence> coincidences;  ///< in the order of docs/reference/list-mode-format.md
    RecordVector<Single> singles;  ///< when asked for: decided singles of the segment, and the gammas
                                   ///< of their time, in order
    RecordVector<Triple> triples;  ///< of these coincidences, in their order, and those of one in the order
                                   ///< of triples (gpu/triples/triple_search.hpp)
    /// Accepted tags of the segment below the watermark, in order; at its end, all of them.
    RecordVector<Tag> tags;
    FrameCounts frames;
    TagCounts tag_counts;
    SingleCounts counts;
    GammaCounts gamma_counts;
    std::uint64_t pending = 0;              ///< accepted singles not decided yet, and gammas not counted yet
    std::uint64_t pending_tags = 0;         ///< accepted tags not returned yet
    std::uint64_t latest_pending_time = 0;  ///< the newest of both; 0 when there is none
    IntervalSums sums;                      ///< of a slice that ends an interval; else unspecified
};

/// Slices go in by submit and come out by collect, in the same order. One thread at a time. submit and
/// collect throw std::runtime_error when the back-end has failed; later results must not be used.
class Pipeline {
  public:
    virtual ~Pipeline() = default;
    /// How many slices may be submitted and not yet collected; at least 1.
    [[nodiscard]] virtual std::size_t depth() const = 0;
    /// Takes a slice, without waiting for any computation. REQUIRES: fewer than depth() slices wait to be
    /// collected.
    virtual void submit(const Slice& slice) = 0;
    /// The oldest submitted slice. False if none is submitted, or if it is not ready and `wait` is false.
    virtual bool collect(SliceResult& result, bool wait) = 0;
    /// A copy of the histograms as of the last collected slice.
    virtual void histograms(SinglesHistograms& out) = 0;
    /// The spectra since they were taken last; they start again from zero. REQUIRES:
    /// PipelineOptions::spectra; no slice is submitted.
    virtual void take_spectra(config::Spectra& out) = 0;
    /// A copy of the spectra of one detector unit (bdm * du_count + du) as they are now, possibly with some
    /// frames of slices not yet collected. REQUIRES: PipelineOptions::spectra.
    virtual void unit_spectra(std::uint32_t unit, UnitSpectra& out) = 0;
    /// Forgets undecided singles, the watermark and the sums of the interval, not the histograms nor the
    /// spectra. REQUIRES: no slice is submitted.
    virtual void reset() = 0;
    /// The frames of later slices are converted with this calibration; singles that wait to be decided stay
    /// as they are. REQUIRES: config::check_calibration() accepts it; no slice is submitted. If it throws,
    /// the calibration before still holds.
    virtual void set_calibration(const config::Calibration& calibration) = 0;
    /// Bytes that the back-end holds at its bounds, for the log.
    [[nodiscard]] virtual std::uint64_t memory_bytes() const = 0;
    /// "cpu, 4 threads".
    [[nodiscard]] virtual std::string description() const = 0;
};

/// Throws std::invalid_argument when spectra are requested and cannot be counted.
void check_spectra(const PipelineOptions& options);

/// The CPU back-end. Throws std::invalid_argument for invalid options.
std::unique_ptr<Pipeline> make_cpu_pipeline(const PipelineOptions& options,
                                            const config::Calibration& calibration);

}  // namespace petacq::gpu
