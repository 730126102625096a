// Records that wait for the disk, in the memory in which they came.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "gpu/base/records.hpp"

namespace petacq::daemon {

/// Numbers the records that it takes, from 0, and holds each until it is released. A vector that is large and
/// at least a quarter full is taken over; the records of others are copied behind those before. So the memory
/// is at most five times that of the waiting records, and that of spare vectors up to a bound.
///
/// No thread-safety. What find() has found may be read without a lock until it is released.
template <class Record>
class WaitingRecords {
  public:
    /// `max_spare_bytes`: of the vectors that are kept for take().
    explicit WaitingRecords(std::size_t max_spare_bytes) : max_spare_bytes_(max_spare_bytes) {}

    /// Takes the records. The vector may be another one afterwards; its content is unspecified.
    void take(gpu::RecordVector<Record>& records) {
        if (records.size() < min_taken_over || records.size() < records.capacity() / 4) {
            copy(records);
        } else {
            chunks_.push_back({end_, records.size(), std::move(records)});
            end_ += chunks_.back().records.size();
            records = take_spare();
        }
    }
    /// The number that the next record will have.
    [[nodiscard]] std::uint64_t end() const { return end_; }

    /// REQUIRES, as find(): it has not been released.
    [[nodiscard]] const Record& at(std::uint64_t number) const {
        const Record* found = nullptr;
        for_each_stretch(chunks_, number, 1, [&](const RecordChunk& chunk, std::size_t from, std::size_t) {
            found = &chunk.records[from];
        });
        return *found;
    }
    /// Adds the stretches of memory in which these records lie. REQUIRES: none of them has been released.
    void find(std::uint64_t first, std::uint64_t count, std::vector<std::span<const std::byte>>& into) const {
        for_each_stretch(chunks_, first, count,
                         [&](const RecordChunk& chunk, std::size_t from, std::size_t records) {
                             into.push_back(std::as_bytes(std::span(chunk.records).subspan(from, records)));
                         });
    }
    /// These records are not needed any more. In any order, each once.
    void release(std::uint64_t first, std::uint64_t count) {
        for_each_stretch(chunks_, first, count, [&](RecordChunk& chunk, std::size_t, std::size_t records) {
            assert(records <= chunk.waiting);
            chunk.waiting -= records;
            if (chunk.waiting == 0) keep(chunk.records);
        });
        while (!chunks_.empty() && chunks_.front().waiting == 0)
            chunks_.pop_front();
    }

  private:
    struct RecordChunk {
        std::uint64_t first;  ///< number of its first record
        std::size_t waiting;  ///< records not released
        gpu::RecordVector<Record> records;
    };
    static constexpr std::size_t min_taken_over = 65'536 / sizeof(Record);

    /// Calls `use` with each chunk that has some of the records, where they are in it, and how many.
    template <class Chunks, class Use>
    static void for_each_stretch(Chunks& chunks, std::uint64_t first, std::uint64_t count, Use use) {
        auto chunk = std::partition_point(chunks.begin(), chunks.end(),
                                          [&](const RecordChunk& c) { return c.first <= first; });
        for (--chunk; count != 0; ++chunk) {
            const auto next = std::next(chunk);
            const std::uint64_t left = next == chunks.end() ? count : next->first - first;
            const std::uint64_t records = std::min(count, left);
            use(*chunk, first - chunk->first, records);
            first += records;
            count -= records;
        }
    }

    void copy(std::span<const Record> records) {
        while (!records.empty()) {
            if (room() == 0) {
                chunks_.push_back({end_, 0, {}});
                chunks_.back().records.reserve(min_taken_over);
            }
            const auto some = records.first(std::min(records.size(), room()));
            RecordChunk& last = chunks_.back();
            // Readers look at the records before; their place does not change.
            last.records.insert(last.records.end(), some.begin(), some.end());
            last.waiting += some.size();
            end_ += some.size();
            records = records.subspan(some.size());
        }
    }
    /// How many records fit behind the last one without moving it.
    [[nodiscard]] std::size_t room() const {
        return chunks_.empty() ? 0 : chunks_.back().records.capacity() - chunks_.back().records.size();
    }

    void keep(gpu::RecordVector<Record>& records) {
        const std::size_t bytes = records.capacity() * sizeof(Record);
        const bool copied =
            records.capacity() <= min_taken_over;  // such memory is of no use to a large slice
        // One is always kept: that of the next slice may be as large as this one.
        if (!copied && (spare_.empty() || spare_bytes_ + bytes <= max_spare_bytes_)) {
            spare_bytes_ += bytes;
            spare_.push_back(std::move(records));
        }
        records = {};
    }
    gpu::RecordVector<Record> take_spare() {
        if (spare_.empty()) return {};
        gpu::RecordVector<Record> records = std::move(spare_.back());
        spare_.pop_back();
        spare_bytes_ -= records.capacity() * sizeof(Record);
        return records;
    }

    const std::size_t max_spare_bytes_;
    std::deque<RecordChunk>
        chunks_;  ///< the last one may take more; one whose records are all released is empty
    std::uint64_t end_ = 0;
    std::vector<gpu::RecordVector<Record>> spare_;
    std::size_t spare_bytes_ = 0;
};

}  // namespace petacq::daemon
