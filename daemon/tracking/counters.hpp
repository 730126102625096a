// The counters of the sources (net/base/counter_list.hpp).
#pragma once

#include "net/base/counter_list.hpp"

// clang-format off
/// Section "datagrams", as the tracker counts them. All but `lost` only grow. With bare framing `lost` is 0, and unknown.
#define PETACQ_TRACKER_COUNTERS(X) \
    X(datagrams, accepted, growth, "datagrams", 1, "petacqd_datagrams_accepted_total", "Datagrams whose frames went to the pipeline.") \
    X(datagrams, duplicate, growth, "datagrams", 5, by_reason, "Datagrams discarded because their sequence number and content have been seen before.") \
    X(datagrams, repeated, growth, "datagrams", 32, by_reason, "Datagrams discarded because they are copies from an earlier stream: one that has ended and is sent again, or one from before a restart of the numbers.") \
    X(datagrams, too_many_sources, growth, "datagrams", 8, by_reason, "Datagrams from a sender beyond the 4096 that the daemon can track.") \
    X(datagrams, reordered, growth, "datagrams", 9, "petacqd_datagrams_reordered_total", "Accepted datagrams that came after one with a higher sequence number.") \
    X(datagrams, stray, growth, "datagrams", 10, "petacqd_datagrams_stray_total", "Accepted datagrams far from the sequence of their source.") \
    X(datagrams, unnumbered, growth, "datagrams", 0, "petacqd_datagrams_unnumbered_total", "Accepted datagrams whose sequence numbers say nothing: nobody knows how many of their source were lost.") \
    X(datagrams, restarted, growth, "times", 11, "petacqd_source_restarts_total", "Times a source restarted its sequence numbers.") \
    X(datagrams, stepped_back, growth, "times", 0, "petacqd_source_steps_back_total", "Times the clock of a source stepped back by more than `watermark.max_disorder_us` and at most `watermark.max_jump_ms`.") \
    X(datagrams, lost, growth, "datagrams", 2, "petacqd_datagrams_lost", "Datagrams missing from the sequences, and at least those that kernel and daemon dropped; decreases when a late one arrives.") \
    X(datagrams, recovered, growth, "datagrams", 33, "petacqd_datagrams_recovered_total", "Datagrams that were missing when the run started and arrived in it; they do not count in its `lost`.") \
    X(datagrams, end_of_stream, growth, "datagrams", 0, no_metric, "Accepted datagrams with the end-of-stream flag.")
// clang-format on
