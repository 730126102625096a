// The counters of the pipeline (net/base/counter_list.hpp).
#pragma once

#include "net/base/counter_list.hpp"

// clang-format off
/// Section "frames": what became of a frame. It is counted under the first that applies, in this order.
#define PETACQ_FATES(X) \
    X(frames, bad_marker, growth, "frames", 13, by_reason, "Frames with a wrong head or tail marker.") \
    X(frames, bad_address, growth, "frames", 14, by_reason, "Frames with a BDM, DU, x or y out of range.") \
    X(frames, outside_crystal, growth, "frames", 15, by_reason, "Frames whose position lies outside every crystal, according to the position table.") \
    X(frames, time_jump, growth, "frames", 16, by_reason, "Frames with a time far from the progress of their source.") \
    X(frames, bad_time, growth, "frames", 17, by_reason, "Frames whose corrected time would lie outside 0..2^64-1.") \
    X(frames, late, growth, "frames", 18, by_reason, "Frames below the watermark.") \
    X(frames, below_window, growth, "frames", 19, by_reason, "Frames with an energy below the energy window.") \
    X(frames, above_window, growth, "frames", 20, by_reason, "Frames with an energy above the energy window.") \
    X(frames, accepted, growth, "frames", 21, "petacqd_frames_accepted_total", "Frames that became singles inside the energy window.")
/// Section "frames".
#define PETACQ_FRAME_COUNTERS(X) \
    X(frames, received, growth, "frames", 12, "petacqd_frames_received_total", "Frames processed by the pipeline, without tags.") \
    PETACQ_FATES(X)

/// Section "tags", as the pipeline counts them. Tag frames are not among the frames of section "frames".
#define PETACQ_TAG_COUNTERS(X) \
    X(tags, received, growth, "tags", 38, "petacqd_tags_received_total", "Tag frames processed by the pipeline.") \
    X(tags, time_jump, growth, "tags", 39, by_reason, "Tags with a time far from the progress of their source.") \
    X(tags, late, growth, "tags", 40, by_reason, "Tags below the watermark.") \
    X(tags, accepted, growth, "tags", 41, "petacqd_tags_accepted_total", "Tags that were put in order with the others.")

/// Section "singles", as the pipeline counts them. A group is the singles of one coincidence window.
#define PETACQ_SINGLE_COUNTERS(X) \
    X(singles, decided, growth, "singles", 22, "petacqd_singles_decided_total", "Singles whose coincidences have been decided.") \
    X(singles, prompts, growth, "pairs", 23, "petacqd_prompts_total", "Prompt coincidences found.") \
    X(singles, delayeds, growth, "pairs", 24, "petacqd_delayeds_total", "Delayed coincidences found.") \
    X(singles, unpaired, growth, "singles", 25, by_reason, "Singles alone in their window.") \
    X(singles, same_crystal, growth, "singles", 26, by_reason, "Singles in groups of two that share one crystal.") \
    X(singles, geometry, growth, "singles", 27, by_reason, "Singles in groups of two whose modules are too close or whose rings are too far apart.") \
    X(singles, in_dropped_multiples, growth, "singles", 28, by_reason, "Singles in groups of three or more from which the policy took no pair.") \
    X(singles, in_oversize_multiples, growth, "singles", 29, by_reason, "Singles in groups of more than `max_multiplicity`.") \
    X(singles, unused_in_multiples, growth, "singles", 30, by_reason, "Singles in no pair, of groups that gave pairs.") \
    X(singles, reused, growth, "singles", 31, no_metric, "Uses of a single in pairs beyond its first; in window mode `every`, beyond its use as the opener.") \
    X(singles, delayed_dropped, growth, "windows", 34, "petacqd_delayed_windows_dropped_total", "Delayed windows that hold, with the group that opened them, three or more singles, and gave no pair.") \
    X(singles, delayed_oversize, growth, "windows", 35, "petacqd_delayed_windows_oversize_total", "Delayed windows that hold, with the group that opened them, more than `max_multiplicity` singles.") \
    X(singles, groups, growth, "groups", 36, "petacqd_groups_total", "Prompt groups: coincidence windows that were opened, with one single or more.") \
    X(singles, groups_blocked, growth, "groups", 37, "petacqd_groups_blocked_total", "Shifted groups that were skipped because their opener fell inside a prompt window.") \
    X(singles, unsearched, growth, "singles", 42, by_reason, "Singles that were only put in order: without `listmode.write_coincidences`, no coincidences are looked for.")
/// Section "gammas". They are no singles of pairs.
#define PETACQ_GAMMA_COUNTERS(X) \
    X(gammas, used, growth, "gammas", 43, by_reason, "Gammas in at least one triple.") \
    X(gammas, unused, growth, "gammas", 44, by_reason, "Gammas in no triple, counted once no later pair can use them.") \
    X(gammas, reused, growth, "gammas", 45, no_metric, "Uses of a gamma in triples beyond its first.") \
    X(gammas, triples, growth, "triples", 46, "petacqd_triples_total", "Triples found: a pair and a gamma at its time.") \
    X(gammas, delayed, growth, "triples", 47, "petacqd_delayed_triples_total", "Triples of a pair and a gamma that came the delay of the gammas later.")
// clang-format on

namespace petacq::gpu {

/// Identities: both sides have the same sum.
inline constexpr const char* frame_identity =
    "received = bad_marker + bad_address + outside_crystal + below_window + above_window + bad_time + "
    "time_jump + late + accepted";
inline constexpr const char* tag_identity = "received = time_jump + late + accepted";
inline constexpr const char* single_identity =
    "decided + reused = 2 x prompts + unpaired + same_crystal + geometry + in_dropped_multiples + "
    "in_oversize_multiples + unused_in_multiples + unsearched";
inline constexpr const char* gamma_identity = "used + reused = triples";

}  // namespace petacq::gpu
