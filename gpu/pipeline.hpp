// The pipeline: frames in, coincidences out. One interface, a CPU and a CUDA back-end that give the same
// bytes.
//
// The caller hands over frames as they arrive, in any order, together with a watermark: the promise that no
// frame below it is still to come. The pipeline converts the frames, keeps the singles that cannot be decided
// yet, and gives out the coincidences that can. What comes out over a segment (from one close to the next)
// depends only on the set of frames that went in, as long as none of them was late.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "config/calibration.hpp"
#include "config/scanner.hpp"
#include "gpu/sort/engine.hpp"
#include "gpu/types.hpp"

namespace petacq::gpu {

enum class WindowMode : std::uint8_t { single, every };

/// What becomes of a group of more than two singles; named as in GATE 10.
enum class MultiplesPolicy : std::uint8_t {
    remove_multiples,             ///< RemoveMultiples
    take_all_goods,               ///< TakeAllGoods
    take_winner_of_goods,         ///< TakeWinnerOfGoods
    take_if_only_one_good,        ///< TakeIfOnlyOneGood
    take_winner_if_is_good,       ///< TakeWinnerIfIsGood
    take_winner_if_all_are_goods  ///< TakeWinnerIfAllAreGoods
};

/// Throws std::invalid_argument naming the accepted words.
WindowMode window_mode_from_name(const std::string& name);
MultiplesPolicy multiples_policy_from_name(const std::string& name);
const char* name_of(WindowMode mode);
const char* name_of(MultiplesPolicy policy);

struct CoincidenceRules {
    std::uint32_t window = 0;  ///< tau, ticks, inclusive
    WindowMode mode = WindowMode::single;
    MultiplesPolicy policy = MultiplesPolicy::remove_multiples;
    std::uint32_t max_multiplicity = 64;      ///< larger groups are dropped
    std::uint32_t min_module_difference = 0;  ///< circular, around the ring; 0: no condition
    std::uint32_t max_ring_difference = UINT32_MAX;
    std::optional<std::uint64_t> delay;  ///< D, ticks, > window; absent: no delayeds
};

struct EnergyWindow {
    bool filter = true;
    float lower = 0;  ///< keV, inclusive
    float upper = 0;  ///< keV, inclusive
};

/// What the spans of a slice hold. Singles are 16 bytes, too: they are taken as converted, the energy window
/// and the watermark apply to them as to frames; a crystal that the scanner has not counts as a bad address,
/// and an energy that is negative or not a number as below the window, filter or not. Of the histograms only
/// per_crystal is kept then.
enum class Input : std::uint8_t { frames, singles };

struct PipelineOptions {
    Input input = Input::frames;
    config::Geometry geometry;
    std::uint8_t head_marker = 0xA;
    std::uint8_t tail_marker = 0x5;
    EnergyWindow energy;
    CoincidenceRules rules;
    bool emit_singles = false;                       ///< give out the accepted singles in order, too
    std::uint32_t threads = 1;                       ///< CPU back-end: threads used, the calling one included
    SortEngine sort_engine = SortEngine::automatic;  ///< CUDA back-end; the output does not depend on it
    std::uint64_t max_pending_singles = 16U << 20;   ///< memory bound for singles that wait for the watermark
    std::uint32_t max_slice_frames = 1U << 20;       ///< most frames in one slice
};

/// Frames that lie back to back, all from one source.
struct FrameSpan {
    const std::byte* frames = nullptr;  ///< 16-byte aligned, `count` frames
    std::uint32_t count = 0;
    /// Raw times outside [time_low, time_high] are time jumps: rejected.
    std::uint64_t time_low = 0;
    std::uint64_t time_high = UINT64_MAX;
};

/// What is processed together. The frames must stay as they are until the slice has been collected.
struct Slice {
    std::uint64_t id = 0;  ///< given back with the result
    std::span<const FrameSpan> spans;
    /// No frame with a (corrected) time below it will come in a later slice. Frames of this slice are late
    /// against the watermark of the slice before. Never lower than that one.
    std::uint64_t watermark = 0;
    /// Ends a segment: singles below close_at are decided as at the end of the data, those at or above it
    /// begin the next segment. Not below the watermark of the slice before (what lies below that is decided
    /// already) and not above its own (UINT64_MAX with the same watermark: everything). The result of the
    /// slice then holds the rest of the closed segment and nothing else: what the next segment gives comes
    /// with later slices, also where the watermark is well above close_at.
    std::optional<std::uint64_t> close_at;
};

/// Where the frames of a slice went: received = the sum of the others.
struct FrameCounts {
    std::uint64_t received = 0;
    std::uint64_t bad_marker = 0;
    std::uint64_t bad_address = 0;
    std::uint64_t outside_crystal = 0;
    std::uint64_t below_window = 0;
    std::uint64_t above_window = 0;
    std::uint64_t bad_time = 0;
    std::uint64_t time_jump = 0;
    std::uint64_t late = 0;
    std::uint64_t accepted = 0;

    FrameCounts& operator+=(const FrameCounts& o);
    bool operator==(const FrameCounts&) const = default;
};

/// Where the decided singles went, counted in singles:
///   decided = 2 * prompts + unpaired + same_crystal + geometry + in_dropped_multiples +
///   in_oversize_multiples
///             + unused_in_multiples - reused
/// In window mode "single" every single belongs to one group. In mode "every" a single is decided as the
/// opener of its own window; being the partner in another's counts as reuse.
struct SingleCounts {
    std::uint64_t decided = 0;
    std::uint64_t prompts = 0;   ///< pairs
    std::uint64_t delayeds = 0;  ///< pairs
    std::uint64_t unpaired = 0;
    std::uint64_t same_crystal = 0;           ///< in groups of two refused for being one crystal
    std::uint64_t geometry = 0;               ///< in groups of two refused by module or ring difference
    std::uint64_t in_dropped_multiples = 0;   ///< in groups of three or more from which no pair came
    std::uint64_t in_oversize_multiples = 0;  ///< in groups above max_multiplicity
    std::uint64_t unused_in_multiples = 0;    ///< in no pair, of a group that gave pairs
    std::uint64_t reused = 0;  ///< uses in pairs beyond the first (mode "every": beyond the opener)

    SingleCounts& operator+=(const SingleCounts& o);
    bool operator==(const SingleCounts&) const = default;
};

/// The result of one slice. Vectors keep their capacity when the object is handed in again.
struct SliceResult {
    std::uint64_t id = 0;
    std::vector<Coincidence> coincidences;  ///< in the order of docs/list-mode-format.md
    std::vector<Single> singles;            ///< when asked for: decided singles of the segment, in order
    FrameCounts frames;
    SingleCounts counts;
    std::uint64_t pending = 0;              ///< accepted singles not decided yet
    std::uint64_t latest_pending_time = 0;  ///< the newest of them; 0 when there is none
};

/// Histograms of singles since the pipeline was made, taken in conversion: of frames inside a crystal, late,
/// in a time jump or not. Frames refused for their marker or address or outside any crystal count nowhere, in
/// the temperatures neither: their fields are not to be trusted.
struct SinglesHistograms {
    static constexpr std::uint32_t energy_bins = 256;
    static constexpr float energy_bin_keV = 4;  // NOLINT(readability-identifier-naming)
    std::vector<std::uint64_t> per_crystal;     ///< [crystal] singles inside the energy window
    std::vector<std::uint64_t> energy;          ///< [bdm][energy_bins]; the last bin takes what lies above
    std::vector<std::int64_t> temperature_sum_16ths;  ///< [bdm][du] sum of sixteenths of a degree C
    std::vector<std::uint64_t> temperature_count;     ///< [bdm][du] frames in that sum

    /// Takes off what an earlier state of the same histograms had counted. Shapes agree.
    SinglesHistograms& operator-=(const SinglesHistograms& earlier);
};

/// The device has not the memory that the options ask for: needed and free bytes are named.
class DeviceMemoryError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// Slices go in by submit and come out by collect, in the same order. One thread at a time.
class Pipeline {
  public:
    virtual ~Pipeline() = default;
    /// How many slices may be submitted and not yet collected; at least 1.
    [[nodiscard]] virtual std::size_t depth() const = 0;
    /// Takes a slice. Not when depth() slices are waiting to be collected. Throws std::runtime_error when the
    /// back-end has failed; nothing it gives out after that is to be used.
    virtual void submit(const Slice& slice) = 0;
    /// The oldest submitted slice. With wait false, returns false when it is not ready. False when none is
    /// submitted.
    virtual bool collect(SliceResult& result, bool wait) = 0;
    /// A copy of the histograms as of the last collected slice.
    virtual void histograms(SinglesHistograms& out) = 0;
    /// Forgets every undecided single and the watermark, as if newly made; histograms stay. Only when nothing
    /// is submitted.
    virtual void reset() = 0;
    /// Bytes that the back-end holds at its bounds, for the log.
    [[nodiscard]] virtual std::uint64_t memory_bytes() const = 0;
    /// "cpu, 4 threads".
    [[nodiscard]] virtual std::string description() const = 0;
};

/// The CPU back-end. Throws std::invalid_argument for options that cannot be.
std::unique_ptr<Pipeline> make_host_pipeline(const PipelineOptions& options,
                                             const config::Calibration& calibration);

}  // namespace petacq::gpu
