// The counters of a receiver (net/base/counter_list.hpp).
#pragma once

#include "net/base/counter_list.hpp"

// clang-format off
/// Section "datagrams", as each receiver counts them. `unknown_source`: not on an allow-list. `dropped_no_buffer`: in an
/// overload (OverloadGate), and at stop, when no batch comes back. `dropped_kernel`: SO_MEMINFO, read a few times a second
/// and at stop; with GRO the kernel counts coalesced datagrams as one, and the exact loss shows in the sequence numbers.
/// `dropped_kernel` and `discarded_backlog` are not part of `received`.
#define PETACQ_RECEIVER_COUNTERS(X) \
    X(datagrams, received, growth, "datagrams", 0, "petacqd_datagrams_received_total", "Datagrams taken from the sockets.") \
    X(datagrams, malformed, growth, "datagrams", 6, by_reason, "Datagrams too short, with a wrong magic number or version, or without whole frames.") \
    X(datagrams, unknown_source, growth, "datagrams", 7, by_reason, "Datagrams from a sender that is not among the known sources.") \
    X(datagrams, dropped_no_buffer, growth, "datagrams", 4, by_reason, "Datagrams dropped because no batch was free: more arrived than pipeline and disk can take, or they stood still when the daemon stopped.") \
    X(datagrams, dropped_kernel, growth, "datagrams", 3, "petacqd_datagrams_dropped_kernel_total", "Datagrams dropped by the kernel because the socket queue was full.") \
    X(datagrams, discarded_backlog, growth, "datagrams", 0, "petacqd_datagrams_discarded_backlog_total", "Datagrams that waited in a systemd socket before the daemon was ready; not counted as received.")
// clang-format on
