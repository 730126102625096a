// The ledger: where every datagram, frame, single and pair went.
//
// A plain snapshot of counters that only grow. The ledger of a run is the difference of two snapshots; every
// identity in open_identities() holds for totals and for differences alike, whenever nothing is under way
// between the stages. Field names are the names in status documents and run.json.
//
// No thread-safety: a value.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "gpu/pipeline.hpp"

namespace petacq::daemon {

/// received + in_flight_at_start - in_flight_at_end = accepted + duplicate + malformed + unknown_source +
/// too_many_sources + dropped_no_buffer
/// frames + frames_in_flight_at_start - frames_in_flight_at_end = frames.received
struct DatagramLedger {
    std::uint64_t received = 0;  ///< from the sockets
    std::uint64_t accepted = 0;  ///< their frames went to the pipeline
    std::uint64_t duplicate = 0;
    std::uint64_t malformed = 0;
    std::uint64_t unknown_source = 0;      ///< not on an allow-list
    std::uint64_t too_many_sources = 0;    ///< beyond the number of sources that can be tracked
    std::uint64_t dropped_no_buffer = 0;   ///< by us
    std::uint64_t in_flight_at_start = 0;  ///< received before, between receiver and acquisition at the start
    std::uint64_t in_flight_at_end = 0;    ///< received, on their way to the acquisition at the end
    std::uint64_t frames = 0;              ///< in the accepted ones
    std::uint64_t frames_in_flight_at_start = 0;  ///< accepted before, not through the pipeline at the start
    std::uint64_t frames_in_flight_at_end = 0;    ///< accepted, not through the pipeline at the end
    // Beside the identities.
    std::uint64_t lost = 0;               ///< sequence gaps, what the kernel and we dropped included
    std::uint64_t dropped_kernel = 0;     ///< socket queue full; never received
    std::uint64_t discarded_backlog = 0;  ///< came before the daemon was ready; never received
    std::uint64_t reordered = 0;          ///< of the accepted
    std::uint64_t stray = 0;              ///< of the accepted
    std::uint64_t restarted = 0;          ///< times a source began a fresh sequence
    std::uint64_t end_of_stream = 0;      ///< of the accepted

    bool operator==(const DatagramLedger&) const = default;
};

/// accepted frames + pending_at_start - pending_at_end = decided, and where the decided ones went.
struct SingleLedger : gpu::SingleCounts {
    std::uint64_t pending_at_start = 0;  ///< accepted before, decided here
    std::uint64_t pending_at_end = 0;    ///< accepted, not decided yet

    bool operator==(const SingleLedger&) const = default;
};

/// prompts_found + delayeds_found = written + write_failed + in_queue
struct PairLedger {
    std::uint64_t prompts_found = 0;
    std::uint64_t delayeds_found = 0;
    std::uint64_t written = 0;
    std::uint64_t write_failed = 0;
    std::uint64_t in_queue = 0;  ///< on their way to the disk; 0 once a run is complete

    bool operator==(const PairLedger&) const = default;
};

/// found = written + write_failed + in_queue; all zero unless singles are saved.
struct SavedSinglesLedger {
    std::uint64_t found = 0;
    std::uint64_t written = 0;
    std::uint64_t write_failed = 0;
    std::uint64_t in_queue = 0;  ///< on their way to the disk; 0 once a run is complete

    bool operator==(const SavedSinglesLedger&) const = default;
};

struct Ledger {
    DatagramLedger datagrams;
    gpu::FrameCounts frames;
    SingleLedger singles;
    PairLedger pairs;
    SavedSinglesLedger saved_singles;
    bool loss_known = true;  ///< false with bare framing: `lost` says nothing and is null in JSON

    /// Adds what came next: `later` begins where this one ends. Loss is known when it is in both.
    Ledger& operator+=(const Ledger& later);
    bool operator==(const Ledger&) const = default;

    /// Each identity that does not close, with its numbers; empty when all do.
    [[nodiscard]] std::vector<std::string> open_identities() const;
};

/// One counter in an identity, with its names in the JSON.
struct LedgerTerm {
    const char* section;
    const char* name;
    std::uint64_t times;  ///< it counts so often
    std::uint64_t (*of)(const Ledger&);
};

/// The terms on the left and those on the right have the same sum.
struct LedgerIdentity {
    const char* name;
    std::vector<LedgerTerm> left;
    std::vector<LedgerTerm> right;
};

/// All of them.
const std::vector<LedgerIdentity>& ledger_identities();

/// What happened from snapshot `earlier` to `later`; what was pending or in flight then is so
/// at_start. `lost` is the one counter that can go back, when a datagram missing at `earlier` comes after it:
/// no lower than 0.
Ledger operator-(const Ledger& later, const Ledger& earlier);

/// One object per section, "loss_known", and the verdict: "closed" (bool) and "open" (what open_identities
/// says).
nlohmann::json to_json(const Ledger& ledger);
/// Reads what to_json wrote; the verdict is not read. Throws std::runtime_error naming the field.
Ledger ledger_from_json(const nlohmann::json& document);

}  // namespace petacq::daemon
