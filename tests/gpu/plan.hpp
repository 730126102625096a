// A plan for handing over the frames of a case: slices, spans, arrival order, watermarks, closes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gpu/pipeline.hpp"
#include "tests/gpu/base/random.hpp"
#include "tests/gpu/generators.hpp"
#include "tests/gpu/reference.hpp"

namespace petacq::test {

struct PlanOptions {
    std::size_t slice_frames = 0;  ///< 0: random for each slice
    std::size_t disorder = 0;      ///< a frame arrives at most about this many frames out of place
    std::size_t max_span = 50;     ///< most frames in one span
    bool slack = true;  ///< watermarks are lower than necessary, some repeat, some slices are empty
    std::size_t segments = 1;
    double late = 0;  ///< late frames added, per slice
};

struct PlannedSlice {
    std::vector<RawFrame> frames;       ///< some of them in no span
    std::vector<gpu::FrameSpan> spans;  ///< into frames
    std::uint64_t watermark = 0;
    std::optional<std::uint64_t> close_at;
    std::optional<std::uint64_t> decide_before;
    bool ends_interval = false;
    std::optional<gpu::TickRange> spectra;

    [[nodiscard]] bool ends_segment() const { return close_at && !decide_before; }
};

/// The last slice closes everything at UINT64_MAX.
struct Plan {
    std::vector<PlannedSlice> slices;
    [[nodiscard]] std::size_t largest_slice() const;
    [[nodiscard]] std::size_t frames() const;
};

/// Watermarks are right because the plan knows the future. A close lies between the watermark of the previous
/// slice and its own.
Plan make_plan(const Case& c, const PlanOptions& options, Rng& rng);

/// The expected output for a plan.
struct Expected {
    struct AcceptedTime {
        std::uint64_t time;
        std::size_t segment;
        bool is_gamma;
    };
    std::vector<gpu::FrameCounts> frames;               ///< of each slice
    std::vector<std::vector<AcceptedTime>> accepted;    ///< in each slice
    std::vector<gpu::TagCounts> tag_counts;             ///< of each slice
    std::vector<std::vector<std::uint64_t>> tag_times;  ///< accepted in each slice
    std::vector<Decided> segments;                      ///< one for each close
    std::vector<gpu::RecordVector<gpu::Tag>> tags;      ///< of each segment, in order
    gpu::SinglesHistograms histograms;
    config::Spectra spectra;  ///< if the case counts them
};
Expected reference_run(const Case& c, const Plan& plan);

}  // namespace petacq::test
