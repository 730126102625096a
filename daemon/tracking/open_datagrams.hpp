// Datagrams of boards whose clocks have left detector time. They wait until it is known whether most boards
// have stepped to the same time, or whether the clock of one board was wrong.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "daemon/tracking/verdict.hpp"
#include "net/batch.hpp"

namespace petacq::daemon {

/// Holds datagrams with their batches. When the clock of a source has been wrong for the timeout, its
/// datagrams are not held again until the source has sent none that is open for as long. Its decisions depend
/// on the data and their times of arrival only. No thread-safety.
class OpenDatagrams {
  public:
    struct OpenDatagram {
        net::Batch* batch = nullptr;
        net::Datagram datagram;
        Verdict verdict;
        std::int64_t since_ns = 0;  ///< host time
    };

    /// Holds datagrams of at most `max_batches`, and none for longer than `timeout_ns` of host time.
    OpenDatagrams(std::size_t max_batches, std::int64_t timeout_ns)
        : max_batches_(max_batches), timeout_ns_(timeout_ns) {}

    [[nodiscard]] bool empty() const { return entries_.empty(); }
    [[nodiscard]] std::uint64_t frames() const { return frames_; }
    /// Holds a datagram of this batch. Returns false if that cannot be; `use_batch()` is called before the
    /// first datagram of a batch is held.
    template <class UseBatch>
    bool hold(net::Batch* batch, const net::Datagram& datagram, const Verdict& verdict, std::int64_t now_ns,
              UseBatch use_batch) {
        if (batch == nullptr || !is_new(verdict.source, now_ns)) return false;
        const auto held = std::find_if(batches_.begin(), batches_.end(),
                                       [&](const HeldBatch& other) { return other.batch == batch; });
        if (held != batches_.end()) {
            ++held->datagrams;
        } else {
            if (batches_.size() >= max_batches_) return false;
            use_batch();
            batches_.push_back({batch, 1});
        }
        entries_.push_back({batch, datagram, verdict, now_ns});
        frames_ += datagram.frames;
        return true;
    }
    /// Calls `reconsider(entry)`, which renews the verdicts, and `use(entry)` for the datagrams that are not
    /// open any more, or have waited for too long, in the order in which they came; then `give_back(batch)`
    /// for batches of which none is held any more.
    template <class Reconsider, class Use, class GiveBack>
    void release(std::int64_t now_ns, Reconsider reconsider, Use use, GiveBack give_back) {
        std::size_t kept = 0;
        for (OpenDatagram& entry : entries_) {
            reconsider(entry);
            if (entry.verdict.open && now_ns - entry.since_ns <= timeout_ns_) {
                std::swap(entries_[kept++], entry);
                continue;
            }
            use(entry);
            frames_ -= entry.datagram.frames;
            const auto held = std::find_if(batches_.begin(), batches_.end(), [&](const HeldBatch& other) {
                return other.batch == entry.batch;
            });
            --held->datagrams;
        }
        entries_.resize(kept);
        std::erase_if(batches_, [&](const HeldBatch& held) {
            if (held.datagrams == 0) give_back(held.batch);
            return held.datagrams == 0;
        });
    }

  private:
    struct HeldBatch {
        net::Batch* batch;
        std::size_t datagrams;
    };
    struct Episode {
        std::int64_t first_ns = 0;
        std::int64_t last_ns = 0;
        bool begun = false;
    };

    /// Whether the source has left its place so recently that it is worth waiting.
    bool is_new(std::uint32_t source, std::int64_t now_ns) {
        if (source >= episodes_.size()) episodes_.resize(source + std::size_t{1});
        Episode& episode = episodes_[source];
        if (!episode.begun || now_ns - episode.last_ns > timeout_ns_) episode = {now_ns, now_ns, true};
        episode.last_ns = now_ns;
        return now_ns - episode.first_ns <= timeout_ns_;
    }

    const std::size_t max_batches_;
    const std::int64_t timeout_ns_;
    std::vector<OpenDatagram> entries_;
    std::uint64_t frames_ = 0;  ///< of the entries
    std::vector<HeldBatch> batches_;
    std::vector<Episode> episodes_;  ///< [Verdict::source]
};

}  // namespace petacq::daemon
