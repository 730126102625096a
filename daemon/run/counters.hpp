// The counters that the daemon adds to those of the pipeline. gpu/counters.hpp explains the lists.
#pragma once

#include "gpu/counters.hpp"

// clang-format off
/// Section "datagrams".
#define PETACQ_DATAGRAM_COUNTERS(X) \
    X(datagrams, received, growth, "datagrams", 0, "petacqd_datagrams_received_total", "Datagrams taken from the sockets.") \
    X(datagrams, accepted, growth, "datagrams", 1, "petacqd_datagrams_accepted_total", "Datagrams whose frames went to the pipeline.") \
    X(datagrams, duplicate, growth, "datagrams", 5, by_reason, "Datagrams discarded because their sequence number and content have been seen before.") \
    X(datagrams, repeated, growth, "datagrams", 32, by_reason, "Datagrams discarded because they are copies from an earlier stream: one that has ended and is sent again, or one from before a restart of the numbers.") \
    X(datagrams, malformed, growth, "datagrams", 6, by_reason, "Datagrams too short, with a wrong magic number or version, or without whole frames.") \
    X(datagrams, unknown_source, growth, "datagrams", 7, by_reason, "Datagrams from a sender that is not among the known sources.") \
    X(datagrams, too_many_sources, growth, "datagrams", 8, by_reason, "Datagrams from a sender beyond the 4096 that the daemon can track.") \
    X(datagrams, dropped_no_buffer, growth, "datagrams", 4, by_reason, "Datagrams dropped because no batch was free: more arrived than pipeline and disk can take, or they stood still when the daemon stopped.") \
    X(datagrams, in_flight_at_start, at_start, "datagrams", 0, no_metric, "Datagrams between receiver and acquisition when the run started.") \
    X(datagrams, in_flight_at_end, at_end, "datagrams", 0, no_metric, "Datagrams between receiver and acquisition when the run stopped.") \
    X(datagrams, frames, growth, "frames", 0, no_metric, "Frames in accepted datagrams, counted when the acquisition handed them over.") \
    X(datagrams, frames_in_flight_at_start, at_start, "frames", 0, no_metric, "Frames handed over that the pipeline had not processed when the run started.") \
    X(datagrams, frames_in_flight_at_end, at_end, "frames", 0, no_metric, "Frames handed over that the pipeline had not processed when the run stopped.") \
    X(datagrams, reordered, growth, "datagrams", 9, "petacqd_datagrams_reordered_total", "Accepted datagrams that came after one with a higher sequence number.") \
    X(datagrams, stray, growth, "datagrams", 10, "petacqd_datagrams_stray_total", "Accepted datagrams far from the sequence of their source.") \
    X(datagrams, unnumbered, growth, "datagrams", 0, "petacqd_datagrams_unnumbered_total", "Accepted datagrams whose sequence numbers say nothing: nobody knows how many of their source were lost.") \
    X(datagrams, dropped_kernel, growth, "datagrams", 3, "petacqd_datagrams_dropped_kernel_total", "Datagrams dropped by the kernel because the socket queue was full.") \
    X(datagrams, discarded_backlog, growth, "datagrams", 0, "petacqd_datagrams_discarded_backlog_total", "Datagrams that waited in a systemd socket before the daemon was ready; not counted as received.") \
    X(datagrams, restarted, growth, "times", 11, "petacqd_source_restarts_total", "Times a source restarted its sequence numbers.") \
    X(datagrams, stepped_back, growth, "times", 0, "petacqd_source_steps_back_total", "Times the clock of a source stepped back by more than `watermark.max_disorder_us` and at most `watermark.max_jump_ms`.") \
    X(datagrams, lost, growth, "datagrams", 2, "petacqd_datagrams_lost", "Datagrams missing from the sequences, and at least those that kernel and daemon dropped; decreases when a late one arrives.") \
    X(datagrams, duplicates_suspected, growth, "datagrams", 0, "petacqd_datagrams_duplicates_suspected_total", "Accepted datagrams of bare framing whose payload the same source had sent within a second before: they seem to have come twice. Always 0 with sequenced framing.") \
    X(datagrams, recovered, growth, "datagrams", 33, "petacqd_datagrams_recovered_total", "Datagrams that were missing when the run started and arrived in it; they do not count in its `lost`.") \
    X(datagrams, board_lost, growth, "blocks", 0, "petacqd_board_lost_total", "Blocks of foreign frames, or datagrams without blocks, that the board marked as incomplete, and those missing from its numbers.") \
    X(datagrams, end_of_stream, growth, "datagrams", 0, no_metric, "Accepted datagrams with the end-of-stream flag.")

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
    {"accepted singles", "singles", "frames.accepted + pending_at_start = decided + pending_at_end"},
    {"decided singles", "singles", gpu::single_identity},
    {"pairs", "pairs", "prompts_found + delayeds_found = written + write_failed + in_queue"},
    {"saved singles", "saved_singles", "found = written + write_failed + in_queue"},
    {"tags", "tags", gpu::tag_identity},
    {"accepted tags", "tags", "accepted + pending_at_start = ordered + pending_at_end"},
    {"tags written", "tags", "found = written + write_failed + in_queue"},
};

}  // namespace petacq::daemon
