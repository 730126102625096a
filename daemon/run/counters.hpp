// The counters of a run besides those of receivers, sources and pipeline (net/base/counter_list.hpp).
#pragma once

#include "daemon/tracking/counters.hpp"
#include "gpu/base/counters.hpp"
#include "net/receive/counters.hpp"

// clang-format off
/// Section "datagrams".
#define PETACQ_DATAGRAM_COUNTERS(X) \
    PETACQ_RECEIVER_COUNTERS(X) \
    PETACQ_TRACKER_COUNTERS(X) \
    X(datagrams, in_flight_at_start, at_start, "datagrams", 0, no_metric, "Datagrams between receiver and acquisition when the run started.") \
    X(datagrams, in_flight_at_end, at_end, "datagrams", 0, no_metric, "Datagrams between receiver and acquisition when the run stopped.") \
    X(datagrams, frames, growth, "frames", 0, no_metric, "Frames in accepted datagrams, counted when the acquisition handed them over.") \
    X(datagrams, frames_in_flight_at_start, at_start, "frames", 0, no_metric, "Frames handed over that the pipeline had not processed when the run started.") \
    X(datagrams, frames_in_flight_at_end, at_end, "frames", 0, no_metric, "Frames handed over that the pipeline had not processed when the run stopped.") \
    X(datagrams, duplicates_suspected, growth, "datagrams", 0, "petacqd_datagrams_duplicates_suspected_total", "Accepted datagrams of bare framing whose payload the same source had sent within a second before: they seem to have come twice. Always 0 with sequenced framing.") \
    X(datagrams, board_lost, growth, "blocks", 0, "petacqd_board_lost_total", "Blocks of foreign frames, or datagrams without blocks, that the board marked as incomplete, and those missing from its numbers.")

/// Section "singles", besides those of the pipeline.
#define PETACQ_PENDING_COUNTERS(X) \
    X(singles, pending_at_start, at_start, "singles", 0, no_metric, "Singles accepted before the run and decided in it.") \
    X(singles, pending_at_end, at_end, "singles", 0, no_metric, "Singles accepted in the run and not decided when it stopped.")

/// Section "pairs".
#define PETACQ_PAIR_COUNTERS(X) \
    X(pairs, prompts_found, growth, "pairs", 0, no_metric, "Prompt coincidences of the run.") \
    X(pairs, delayeds_found, growth, "pairs", 0, no_metric, "Delayed coincidences of the run.") \
    X(pairs, written, growth, "pairs", 0, "petacqd_pairs_written_total", "Coincidences of the run handed to the disk.") \
    X(pairs, write_failed, growth, "pairs", 0, "petacqd_pairs_write_failed_total", "Coincidences of the run that could not be written.") \
    X(pairs, in_queue, at_end, "pairs", 0, "petacqd_pairs_queued", "Coincidences of the run on their way to the disk.")

/// Section "saved_singles": all 0 unless singles are saved.
#define PETACQ_SAVED_SINGLES_COUNTERS(X) \
    X(saved_singles, found, growth, "singles", 0, no_metric, "Singles of the run.") \
    X(saved_singles, written, growth, "singles", 0, no_metric, "Singles of the run handed to the disk.") \
    X(saved_singles, write_failed, growth, "singles", 0, no_metric, "Singles of the run that could not be written.") \
    X(saved_singles, in_queue, at_end, "singles", 0, no_metric, "Singles of the run on their way to the disk.")

/// Section "triples": all 0 without gammas.
#define PETACQ_TRIPLE_COUNTERS(X) \
    X(triples, found, growth, "triples", 0, no_metric, "Triples of the run.") \
    X(triples, written, growth, "triples", 0, no_metric, "Triples of the run handed to the disk.") \
    X(triples, write_failed, growth, "triples", 0, no_metric, "Triples of the run that could not be written.") \
    X(triples, in_queue, at_end, "triples", 0, no_metric, "Triples of the run on their way to the disk.")

/// Section "tags", besides those of the pipeline.
#define PETACQ_TAGS_OF_RUN_COUNTERS(X) \
    X(tags, ordered, growth, "tags", 0, no_metric, "Tags that the watermark has passed, in order.") \
    X(tags, pending_at_start, at_start, "tags", 0, no_metric, "Tags accepted before the run and put in order in it.") \
    X(tags, pending_at_end, at_end, "tags", 0, no_metric, "Tags accepted in the run that still waited for the watermark when it stopped.") \
    X(tags, found, growth, "tags", 0, no_metric, "Tags of the run.") \
    X(tags, written, growth, "tags", 0, no_metric, "Tags of the run handed to the disk.") \
    X(tags, write_failed, growth, "tags", 0, no_metric, "Tags of the run that could not be written.") \
    X(tags, in_queue, at_end, "tags", 0, no_metric, "Tags of the run on their way to the disk.")
// clang-format on

namespace petacq::daemon {

/// Both sides have the same sum. A counter of another section has that section before its name.
struct IdentityFormula {
    const char* name;
    const char* section;
    const char* formula;
};
inline constexpr IdentityFormula identity_formulas[] = {
    {"datagrams", "datagrams",
     "received + in_flight_at_start = in_flight_at_end + accepted + duplicate + repeated + malformed + "
     "unknown_source + "
     "too_many_sources + dropped_no_buffer"},
    {"frames handed over", "datagrams",
     "frames + frames_in_flight_at_start = frames.received + tags.received + "
     "frames_in_flight_at_end"},
    {"frames", "frames", gpu::frame_identity},
    {"accepted singles", "singles",
     "frames.accepted + pending_at_start = decided + gammas.used + gammas.unused + pending_at_end"},
    {"decided singles", "singles", gpu::single_identity},
    {"pairs", "pairs", "prompts_found + delayeds_found = written + write_failed + in_queue"},
    {"saved singles", "saved_singles", "found = written + write_failed + in_queue"},
    {"gammas", "gammas", gpu::gamma_identity},
    {"triples", "triples", "found = written + write_failed + in_queue"},
    {"tags", "tags", gpu::tag_identity},
    {"accepted tags", "tags", "accepted + pending_at_start = ordered + pending_at_end"},
    {"tags written", "tags", "found = written + write_failed + in_queue"},
};

}  // namespace petacq::daemon
