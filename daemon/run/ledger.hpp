// The ledger: where every datagram, frame, single, pair, gamma, triple and tag went.
//
// A plain snapshot of counters. The ledger of a run is the difference of two snapshots; every identity in
// ledger_identities() holds for totals and for differences alike, whenever nothing is on its way between the
// stages. net/base/counter_list.hpp says where the counters are declared; members and JSON keys have the
// names that stand there.
//
// No thread-safety: a value.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "config/configuration.hpp"
#include "daemon/run/counters.hpp"
#include "gpu/pipeline.hpp"

namespace petacq::daemon {

struct DatagramLedger {
    PETACQ_DATAGRAM_COUNTERS(PETACQ_COUNTER_MEMBER)

    bool operator==(const DatagramLedger&) const = default;
};

struct SingleLedger : gpu::SingleCounts {
    PETACQ_PENDING_COUNTERS(PETACQ_COUNTER_MEMBER)

    bool operator==(const SingleLedger&) const = default;
};

struct PairLedger {
    PETACQ_PAIR_COUNTERS(PETACQ_COUNTER_MEMBER)

    bool operator==(const PairLedger&) const = default;
};

struct SavedSinglesLedger {
    PETACQ_SAVED_SINGLES_COUNTERS(PETACQ_COUNTER_MEMBER)

    bool operator==(const SavedSinglesLedger&) const = default;
};

struct TripleLedger {
    PETACQ_TRIPLE_COUNTERS(PETACQ_COUNTER_MEMBER)

    bool operator==(const TripleLedger&) const = default;
};

struct TagLedger : gpu::TagCounts {
    PETACQ_TAGS_OF_RUN_COUNTERS(PETACQ_COUNTER_MEMBER)

    bool operator==(const TagLedger&) const = default;
};

struct Ledger {
    DatagramLedger datagrams;
    gpu::FrameCounts frames;
    SingleLedger singles;
    PairLedger pairs;
    SavedSinglesLedger saved_singles;
    gpu::GammaCounts gammas;
    TripleLedger triples;
    TagLedger tags;
    bool numbered = true;  ///< false with bare framing: no datagram has a number

    bool operator==(const Ledger&) const = default;

    /// Whether `lost` says something; else it is null in JSON.
    [[nodiscard]] bool loss_known() const { return numbered && datagrams.unnumbered == 0; }
    [[nodiscard]] std::uint64_t dropped() const {
        return datagrams.dropped_kernel + datagrams.dropped_no_buffer;
    }
    /// What kernel and daemon dropped is lost, also where no later number shows it.
    void count_drops_as_lost();

    /// One line for each identity that does not close, with its numbers; empty when all close.
    [[nodiscard]] std::vector<std::string> open_identities() const;
};

enum class CounterKind : std::uint8_t { growth, at_start, at_end };

/// The declaration of a counter. net/base/counter_list.hpp explains the fields.
struct LedgerCounter {
    const char* section;
    const char* name;
    CounterKind kind;
    const char* unit;
    unsigned column;
    const char* metric;
    const char* help;
    std::uint64_t (*of)(const Ledger&);
    std::uint64_t& (*in)(Ledger&);
};
/// Values of `metric` that are not the name of one.
inline constexpr const char* by_reason = "by reason";
inline constexpr const char* no_metric = "";

/// Every counter, section by section.
std::span<const LedgerCounter> ledger_counters();
/// The counters in ledger.csv, in the order of its columns.
const std::vector<const LedgerCounter*>& ledger_columns();

/// One counter in an identity, with its names in the JSON.
struct LedgerTerm {
    const char* section;
    const char* name;
    std::uint64_t times;  ///< its weight in the sum
    std::uint64_t (*of)(const Ledger&);
};

/// The terms on the left and those on the right have the same sum.
struct LedgerIdentity {
    const char* name;
    std::vector<LedgerTerm> left;
    std::vector<LedgerTerm> right;
};

const std::vector<LedgerIdentity>& ledger_identities();

/// How much a counter has grown from snapshot `earlier` to snapshot `later`. Only the growth of `lost` can be
/// negative: when more datagrams arrived than were found missing. Datagrams that were missing when the run
/// started (`recovered`) do not count.
std::int64_t growth_of(const LedgerCounter& counter, const Ledger& later, const Ledger& earlier);

/// The ledger from snapshot `earlier`, as of the start of a run, to snapshot `later`. Levels at the end of
/// `earlier` are those at the start of the difference.
Ledger operator-(const Ledger& later, const Ledger& earlier);

/// "12 prompts, 3 delayeds", or "24 singles" of a run that writes no coincidences; of one that records
/// triples also "5 triples, 2 delayed triples".
std::string records_text(const Ledger& run, const config::Configuration& configuration);

/// One object per section, "loss_known", and the verdict: "closed" (bool) and "open" (open_identities()).
nlohmann::json to_json(const Ledger& ledger);

}  // namespace petacq::daemon
