#include "net/batch_queue.hpp"

#include <ctime>

#include <algorithm>
#include <cassert>

namespace petacq::net {

namespace {

/// Fetches the records of a group that will be taken soon: another core has written them.
void prefetch(const Batch& batch, const Datagram& group) {
    constexpr std::size_t line = 64;
    constexpr std::size_t most = 4096;  // bytes
    const auto fetch = [=](const void* from, std::size_t bytes) {
        const auto* const begin = static_cast<const std::byte*>(from);
        for (std::size_t at = 0; at < std::min(bytes, most); at += line)
            __builtin_prefetch(begin + at);
    };
    fetch(&group, (std::size_t{group.trains} + 1) * sizeof(Datagram));
    fetch(batch.first_member + group.first_member, group.members * sizeof(Member));
}

}  // namespace

void WakeUp::sleep(std::chrono::microseconds timeout) {
    // Not the wall clock, which may be set meanwhile.
    timespec end{};
    clock_gettime(CLOCK_MONOTONIC, &end);
    const std::int64_t ns = end.tv_nsec + timeout.count() * 1'000;
    end.tv_sec += ns / 1'000'000'000;
    end.tv_nsec = ns % 1'000'000'000;
    sem_clockwait(&semaphore_, CLOCK_MONOTONIC, &end);
    waiting_.store(false, std::memory_order_relaxed);
}

void BatchLane::publish(Batch& batch, std::uint32_t flag) {
    const auto count = static_cast<std::uint32_t>(batch.datagrams.size());
    if (count == 0) return;
    assert(batch.datagrams.data() == batch.first_datagram && batch.members.data() == batch.first_member);
    const bool first = batch.published.load(std::memory_order_relaxed) == 0;
    batch.published.store(count | flag, std::memory_order_release);
    if (!first) return;
    const std::size_t at = pushed_.load(std::memory_order_relaxed);
    ring_[at % ring_.size()] = &batch;
    pushed_.store(at + 1, std::memory_order_release);
}

void BatchLane::finish(Batch& batch) {
    assert(!batch.datagrams.empty());
    publish(batch, finished);
    wake_->signal();
}

void BatchLane::close() {
    advance(never);
    wake_->signal();
}

BatchQueue::BatchQueue(std::size_t lanes, std::size_t batches)
    : lane_count_(lanes), lanes_(new BatchLane[lanes]) {
    for (std::size_t i = 0; i < lanes; ++i) {
        lanes_[i].ring_.resize(batches);
        lanes_[i].wake_ = &wake_;
    }
}

std::optional<DatagramSpan> BatchQueue::take() {
    BatchLane* oldest = nullptr;
    std::int64_t arrival = BatchLane::never;  // of the oldest datagram
    std::int64_t limit = BatchLane::never;    // up to which the other lanes bring nothing
    for (std::size_t i = 0; i < lane_count_; ++i) {
        BatchLane& lane = lanes_[i];
        if (lane.read_ == lane.known_) {
            // The clock first: what had been published by that time is then visible.
            lane.seen_clock_ = lane.clock_.load(std::memory_order_acquire);
            if (lane.batch_ == nullptr && lane.pushed_.load(std::memory_order_acquire) != lane.popped_)
                lane.batch_ = lane.ring_[lane.popped_ % lane.ring_.size()];
            if (lane.batch_ != nullptr) {
                const std::uint32_t published = lane.batch_->published.load(std::memory_order_acquire);
                lane.known_ = published & ~BatchLane::finished;
                lane.complete_ = (published & BatchLane::finished) != 0;
                // The batch was finished after its last datagrams had been taken.
                if (lane.complete_ && lane.read_ == lane.known_) return piece_of(lane, lane.read_);
            }
        }
        if (lane.batch_ == nullptr || lane.read_ == lane.known_) {
            limit = std::min(limit, lane.seen_clock_);
            continue;
        }
        const std::int64_t next = lane.batch_->first_datagram[lane.read_].arrival_ns;
        if (oldest == nullptr || next < arrival) {
            limit = std::min(limit, arrival);
            arrival = next;
            oldest = &lane;
        } else {
            limit = std::min(limit, next);
        }
    }
    if (oldest == nullptr || arrival > limit) {
        taken_until_ns_ = std::max(taken_until_ns_, std::min(arrival, limit));
        return std::nullopt;
    }
    const Datagram* const datagrams = oldest->batch_->first_datagram;
    std::uint32_t end = oldest->read_ + 1;
    while (end < oldest->known_ && datagrams[end].arrival_ns <= limit)
        ++end;
    if (end < oldest->known_) prefetch(*oldest->batch_, datagrams[end]);
    return piece_of(*oldest, end);
}

/// Takes the datagrams of a lane up to `end`.
DatagramSpan BatchQueue::piece_of(BatchLane& lane, std::uint32_t end) {
    DatagramSpan piece{lane.batch_, {lane.batch_->first_datagram + lane.read_, end - lane.read_}, false};
    lane.read_ = end;
    if (lane.complete_ && end == lane.known_) {
        piece.last = true;
        lane.batch_ = nullptr;
        lane.read_ = lane.known_ = 0;
        lane.complete_ = false;
        ++lane.popped_;
    }
    return piece;
}

std::optional<DatagramSpan> BatchQueue::take(std::chrono::microseconds timeout) {
    if (auto piece = take()) return piece;
    wake_.prepare();
    if (auto piece = take()) return piece;
    wake_.sleep(timeout);
    return take();
}

}  // namespace petacq::net
