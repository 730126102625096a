// The live tap: hands records of the run in progress to readers, without ever waiting for them.
//
// The acquisition thread offers the records of each slice before they go to the list-mode writers. A reader
// subscribes to every N-th record of one kind. A record is chosen by its number in the run, which is its
// number in list-mode: so the choice depends on the data alone. A reader that is too slow loses records,
// which are counted.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "daemon/tap/subscription.hpp"
#include "gpu/pipeline.hpp"
#include "net/base/counter.hpp"
#include "net/base/mutex.hpp"

namespace petacq::daemon {

/// A snapshot; all numbers but `clients` only grow.
struct TapStatistics {
    std::uint64_t clients = 0;   ///< connected now, with an accepted request
    std::uint64_t accepted = 0;  ///< requests accepted
    std::uint64_t refused = 0;   ///< requests refused, and connections beyond tap.max_clients
    std::uint64_t sent = 0;      ///< records
    std::uint64_t dropped = 0;   ///< records that were chosen for clients too slow to take them
};

/// What the server of the tap counts: one thread adds.
struct TapCounters {
    std::atomic<std::uint64_t> clients{0};
    net::Counter accepted;
    net::Counter refused;
    net::Counter sent;
};

class Tap {
  public:
    Tap() = default;
    Tap(const Tap&) = delete;
    Tap& operator=(const Tap&) = delete;
    ~Tap() = default;

    // The acquisition thread. begin_run() takes a lock that others hold for an instant.
    void begin_run(const std::string& id);
    /// The records of a slice of the run. Without readers: one relaxed load.
    void offer(const gpu::SliceResult& slice);
    void end_run();

    /// Any thread. The subscription gets the records of the next run; of the run in progress, those of the
    /// slices from the next one or the one after. `counted`: what it drops counts in statistics().
    std::shared_ptr<TapSubscription> subscribe(RecordKind kind, std::uint64_t prescale, bool counted = true);
    void unsubscribe(const std::shared_ptr<TapSubscription>& subscription);
    /// Any thread: the latest run, also when it has ended; nullptr: there was none.
    [[nodiscard]] std::shared_ptr<const TapRun> latest_run() const;
    [[nodiscard]] TapStatistics statistics() const;
    TapCounters& counters() { return counters_; }

  private:
    struct Reader {
        std::shared_ptr<TapSubscription> subscription;
        bool counted;
    };
    using Readers = std::vector<Reader>;

    void change(std::shared_ptr<const Readers> readers) PETACQ_REQUIRES(mutex_);

    // Of the acquisition thread.
    std::shared_ptr<TapRun> run_;
    std::uint64_t coincidences_ = 0;  ///< of the run so far
    std::uint64_t singles_ = 0;
    std::uint64_t tags_ = 0;
    std::uint64_t triples_ = 0;
    std::uint64_t seen_version_ = 0;
    std::shared_ptr<const Readers> seen_;  ///< the readers as of seen_version_
    net::Counter dropped_;

    std::atomic<std::uint64_t> version_{0};  ///< of readers_
    mutable net::Mutex mutex_;
    std::shared_ptr<const Readers> readers_ PETACQ_GUARDED_BY(mutex_) = std::make_shared<Readers>();
    /// Earlier subscriptions that the acquisition thread may still hold: it must not be the one to free their
    /// memory.
    Readers retired_ PETACQ_GUARDED_BY(mutex_);
    std::shared_ptr<const TapRun> latest_ PETACQ_GUARDED_BY(mutex_);
    TapCounters counters_;
};

}  // namespace petacq::daemon
