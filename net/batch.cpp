#include "net/batch.hpp"

#include <algorithm>
#include <cassert>
#include <limits>
#include <stdexcept>
#include <string>

#include <unistd.h>

#include "net/wire.hpp"

namespace petacq::net {

namespace {

constexpr std::uint32_t nothing = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t one_change = std::uint64_t{1} << 32;

// There are records for datagrams of 256 bytes on average. Smaller ones use up the records before the bytes.
constexpr std::size_t bytes_per_datagram = 256;
constexpr std::size_t min_datagrams = 64;

std::size_t checked_count(std::size_t batches) {
    if (batches != 0 && batches < nothing) return batches;
    throw std::invalid_argument("batch pool: " + std::to_string(batches) + " batches; expected at least 1");
}

std::size_t rounded_up(std::size_t bytes, std::size_t unit) {
    return (bytes + unit - 1) / unit * unit;
}

bool has_number(const Datagram& d) {
    return d.bytes > std::size_t{d.frames} * frame_bytes;  // a header
}

/// Whether a datagram with such a record may be a member of a group.
bool may_join(const Datagram& d) {
    return d.admitted == Admitted::yes && has_number(d) && d.flags == 0 && d.lost == 0 && d.frames > 1 &&
           d.timed_frames == d.frames && d.hits && d.first_time <= d.last_time;
}

/// Whether the datagram continues a train of its source.
bool continues(const Datagram& train, const Datagram& d) {
    const bool alone = train.datagrams == 1;
    return d.frames == train.frames && d.bytes == train.bytes && d.address == train.address &&
           d.port == train.port && d.sequence == train.sequence + train.datagrams &&
           (alone ? train.first_time : train.end_first_time) <= d.first_time &&
           (alone ? train.last_time : train.end_last_time) <= d.last_time;
}

Member member_of(const Datagram& d, std::size_t train) {
    return {content_of(d.first_time, d.last_time, d.frames),
            d.offset,
            static_cast<std::uint16_t>(train),
            d.temperature_16ths,
            d.first_bdm,
            d.last_bdm};
}

}  // namespace

void Batch::join_last() {
    const Datagram d = datagrams.back();
    if (datagrams.size() < 2 || !may_join(d)) return;
    std::size_t begin = datagrams.size() - 2;
    while (datagrams[begin].trains == 0)
        --begin;
    Datagram& group = datagrams[begin];
    // As in a message that the kernel has joined.
    constexpr std::uint32_t max_members = 1024;
    if (!may_join(group) || group.arrival_ns != d.arrival_ns || group.members == max_members) return;
    const std::size_t end = begin + group.trains;
    std::size_t at = begin;
    while (at < end && (datagrams[at].source != d.source || datagrams[at].address != d.address ||
                        datagrams[at].port != d.port))
        ++at;
    if (at < end ? !continues(datagrams[at], d) : group.trains == Group::max_trains) return;
    if (group.members == 0) {
        group.first_member = static_cast<std::uint32_t>(members.size());
        group.members = 1;
        members.push_back(member_of(group, 0));
    }
    ++group.members;
    members.push_back(member_of(d, at - begin));
    if (at == end) {
        ++group.trains;
        datagrams.back().trains = 0;
        return;
    }
    Datagram& train = datagrams[at];
    ++train.datagrams;
    train.end_first_time = d.first_time;
    train.end_last_time = d.last_time;
    datagrams.pop_back();
}

Datagram Group::record_of(const Member& member, std::uint32_t place) const {
    Datagram d = trains_[member.train];
    d.datagrams = d.trains = 1;
    d.members = 0;
    d.sequence += place;
    const std::byte* const first = batch_.data + member.offset;
    d.offset = member.offset;
    d.first_time = frame_time(first);
    d.last_time = frame_time(first + (d.frames - std::size_t{1}) * frame_bytes);
    d.first_bdm = member.first_bdm;
    d.last_bdm = member.last_bdm;
    d.temperature_16ths = member.temperature_16ths;
    return d;
}

BatchPool::BatchPool(std::size_t batch_count, std::size_t batch_bytes, std::unique_ptr<MemorySource> memory)
    : memory_(std::move(memory)),
      batch_bytes_(batch_bytes),
      batches_(checked_count(batch_count)),
      top_(nothing),
      free_count_(0) {
    // Offsets in a batch are 32 bits.
    constexpr std::size_t max_bytes = std::size_t{1} << 31;
    if (batch_bytes == 0 || batch_bytes > max_bytes) {
        throw std::invalid_argument("batch pool: batches of " + std::to_string(batch_bytes) +
                                    " bytes; expected 1 to " + std::to_string(max_bytes));
    }
    batch_bytes_ = rounded_up(batch_bytes, static_cast<std::size_t>(sysconf(_SC_PAGESIZE)));
    std::byte* data = memory_->allocate(batch_count * batch_bytes_);
    below_ = std::make_unique<std::atomic<std::uint32_t>[]>(batch_count);
    // In reverse, so that the first batch taken is the first in memory.
    for (std::size_t i = batch_count; i-- > 0;) {
        Batch& batch = batches_[i];
        batch.data = data + i * batch_bytes_;
        batch.capacity = batch_bytes_;
        batch.max_datagrams = std::max(batch_bytes_ / bytes_per_datagram, min_datagrams);
        // Touches the memory, which reserve would not.
        batch.datagrams.resize(batch.max_datagrams, {});
        batch.members.resize(batch.max_datagrams, {});
        batch.first_datagram = batch.datagrams.data();
        batch.first_member = batch.members.data();
        batch.index = static_cast<std::uint32_t>(i);
        batch.clear();
        release(&batch);
    }
}

Batch* BatchPool::set_aside() {
    Batch* const batch = take();
    if (batch == nullptr) {
        throw std::invalid_argument("batch pool: " + std::to_string(count()) +
                                    " batches; expected at least one for each receiver");
    }
    batch->set_aside = true;
    put(batch);
    return batch;
}

Batch* BatchPool::take(Batch* own) {
    std::uint64_t top = top_.load(std::memory_order_acquire);
    for (;;) {
        const auto index = static_cast<std::uint32_t>(top);
        if (index == nothing) break;
        // If another thread has taken this batch meanwhile, the value is stale and the exchange fails.
        const std::uint32_t below = below_[index].load(std::memory_order_relaxed);
        const std::uint64_t next = ((top & ~(one_change - 1)) + one_change) | below;
        if (top_.compare_exchange_weak(top, next, std::memory_order_acquire, std::memory_order_acquire))
            return start_use(batches_[index]);
    }
    // The last resort, so that other stages do not keep it for long.
    if (own != nullptr && own->at_home.exchange(false, std::memory_order_acquire)) return start_use(*own);
    return nullptr;
}

Batch* BatchPool::start_use(Batch& batch) {
    free_count_.fetch_sub(1, std::memory_order_relaxed);
    batch.clear();
    batch.holders.store(1, std::memory_order_relaxed);
    return &batch;
}

void BatchPool::put(Batch* batch) {
    assert(batch == &batches_[batch->index]);
    assert(batch->holders.load(std::memory_order_relaxed) != 0);
    if (batch->holders.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    release(batch);
    wake();
}

void BatchPool::release(Batch* batch) {
    free_count_.fetch_add(1, std::memory_order_relaxed);
    if (batch->set_aside) {
        batch->at_home.store(true, std::memory_order_release);
    } else {
        push(batch);
    }
}

void BatchPool::push(Batch* batch) {
    std::uint64_t top = top_.load(std::memory_order_relaxed);
    for (;;) {
        below_[batch->index].store(static_cast<std::uint32_t>(top), std::memory_order_relaxed);
        const std::uint64_t next = ((top & ~(one_change - 1)) + one_change) | batch->index;
        if (top_.compare_exchange_weak(top, next, std::memory_order_release, std::memory_order_relaxed))
            return;
    }
}

bool BatchPool::has_free(const Batch* own) const {
    return static_cast<std::uint32_t>(top_.load(std::memory_order_acquire)) != nothing ||
           (own != nullptr && own->at_home.load(std::memory_order_acquire));
}

bool BatchPool::wait(const Batch* own, std::chrono::microseconds timeout) {
    const auto end = std::chrono::steady_clock::now() + timeout;
    MutexLock lock(mutex_);
    waiting_.fetch_add(1, std::memory_order_acq_rel);
    waits_.fetch_add(1, std::memory_order_relaxed);
    bool found = has_free(own);
    while (!found && returned_.wait_until(lock.native(), end) == std::cv_status::no_timeout)
        found = has_free(own);
    waiting_.fetch_sub(1, std::memory_order_relaxed);
    return found || has_free(own);
}

void BatchPool::wake() {
    if (waiting_.fetch_add(0, std::memory_order_acq_rel) == 0) return;
    // A thread that waits holds the mutex until it sleeps.
    const MutexLock lock(mutex_);
    returned_.notify_all();
}

}  // namespace petacq::net
