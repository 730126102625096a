#include "daemon/tap/tap.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace petacq::daemon {

void Tap::begin_run(const std::string& id) {
    coincidences_ = 0;
    singles_ = 0;
    tags_ = 0;
    triples_ = 0;
    run_ = std::make_shared<TapRun>(run_ ? run_->number + 1 : 1, id);
    const net::MutexLock lock(mutex_);
    latest_ = run_;
    // Clients that subscribed before the run get its first slice, too.
    seen_ = readers_;
    seen_version_ = version_.load(std::memory_order_relaxed);
}

void Tap::end_run() {
    if (run_) run_->ended.store(true, std::memory_order_release);
}

void Tap::offer(const gpu::SliceResult& slice) {
    const std::uint64_t first_coincidence = coincidences_;
    const std::uint64_t first_single = singles_;
    const std::uint64_t first_tag = tags_;
    const std::uint64_t first_triple = triples_;
    coincidences_ += slice.coincidences.size();
    singles_ += slice.singles.size();
    tags_ += slice.tags.size();
    triples_ += slice.triples.size();
    if (const std::uint64_t latest = version_.load(std::memory_order_relaxed); latest != seen_version_) {
        // If another thread holds the lock, the readers before will do for this slice.
        if (mutex_.try_lock()) {
            seen_ = readers_;
            seen_version_ = latest;
            mutex_.unlock();
        }
    }
    if (!seen_) return;
    for (const Reader& reader : *seen_) {
        const auto offer = [&](std::uint64_t first, const auto& records) {
            return reader.subscription->offer(run_, first, std::as_bytes(std::span(records)));
        };
        const auto offer_kind = [&] {
            switch (reader.subscription->kind()) {
                case RecordKind::coincidences:
                    return offer(first_coincidence, slice.coincidences);
                case RecordKind::triples:
                    return offer(first_triple, slice.triples);
                case RecordKind::tags:
                    return offer(first_tag, slice.tags);
                default:
                    return offer(first_single, slice.singles);
            }
        };
        const std::uint64_t dropped = offer_kind();
        if (reader.counted && dropped != 0) dropped_.add(dropped);
    }
}

std::shared_ptr<TapSubscription> Tap::subscribe(RecordKind kind, std::uint64_t prescale, bool counted) {
    auto subscription = std::make_shared<TapSubscription>(kind, prescale);
    const net::MutexLock lock(mutex_);
    auto readers = std::make_shared<Readers>(*readers_);
    readers->push_back({subscription, counted});
    change(std::move(readers));
    return subscription;
}

void Tap::unsubscribe(const std::shared_ptr<TapSubscription>& subscription) {
    const net::MutexLock lock(mutex_);
    auto readers = std::make_shared<Readers>();
    for (const Reader& reader : *readers_)
        (reader.subscription == subscription ? retired_ : *readers).push_back(reader);
    change(std::move(readers));
}

/// The acquisition thread learns of it with the next slice.
void Tap::change(std::shared_ptr<const Readers> readers) {
    readers_ = std::move(readers);
    version_.fetch_add(1, std::memory_order_relaxed);
    std::erase_if(retired_, [](const Reader& reader) { return reader.subscription.use_count() == 1; });
}

std::shared_ptr<const TapRun> Tap::latest_run() const {
    const net::MutexLock lock(mutex_);
    return latest_;
}

TapStatistics Tap::statistics() const {
    return {counters_.clients.load(std::memory_order_relaxed), counters_.accepted.value(),
            counters_.refused.value(), counters_.sent.value(), dropped_.value()};
}

}  // namespace petacq::daemon
