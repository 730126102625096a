// The records of a foreign file in the order of list-mode.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "daemon/listmode/format.hpp"
#include "gpu/base/records.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/import/foreign_file.hpp"

namespace petacq::petlm {

struct SortLimits {
    std::size_t disorder = std::size_t{1} << 20U;
    std::size_t most = std::size_t{1} << 26U;
};

/// Records may be up to `disorder` places away from their place in the order of time, so that memory does not
/// grow with the file. Those of one time may be in any order, as long as memory for `most` holds them. Not
/// thread-safe.
template <class Record>
class Sorted {
  public:
    /// `name`: of the file, for messages. The functions throw BadInput for records that are further out of
    /// order, for too many of one time, and what `take` throws.
    Sorted(TakeRecords<Record> take, std::string name, SortLimits limits = {})
        : take_(std::move(take)), name_(std::move(name)), limits_(limits) {
        read_on();
    }
    /// Null after the last one.
    [[nodiscard]] const Record* front() const { return next_ < ready_ ? &sorted_[next_] : nullptr; }
    void pop() {
        last_ = sorted_[next_];
        if (++next_ == ready_) read_on();
    }
    [[nodiscard]] std::uint64_t taken() const { return popped_ + next_; }

  private:
    static bool before(const Record& a, const Record& b) { return !daemon::in_order(b, a); }

    void read_on() {
        const bool first = popped_ + next_ == 0;
        popped_ += next_;
        sorted_.erase(sorted_.begin(), sorted_.begin() + static_cast<std::ptrdiff_t>(next_));
        next_ = 0;
        // Of one time none is ready before all have been read.
        for (std::size_t enough = 2 * limits_.disorder;; enough = 2 * sorted_.size()) {
            while (!ended_ && sorted_.size() < enough)
                ended_ = !take_(sorted_);
            sort();
            ready_ = ended_ ? sorted_.size() : before_time_of(sorted_[sorted_.size() - 1 - limits_.disorder]);
            if (ended_ || ready_ != 0) break;
            if (sorted_.size() >= limits_.most) {
                throw BadInput(name_ + ": more than " + std::to_string(limits_.most - limits_.disorder) +
                               " records of time " + std::to_string(daemon::time_of(sorted_.front())) +
                               " (ticks); expected fewer of one time");
            }
        }
        if (!first && !sorted_.empty() && before(sorted_.front(), last_)) {
            throw BadInput(name_ + ": records are out of time order by more than " +
                           std::to_string(limits_.disorder) +
                           " places; expected a file in the order of time, or nearly so");
        }
    }
    /// How many are earlier.
    [[nodiscard]] std::size_t before_time_of(const Record& record) const {
        const std::uint64_t time = daemon::time_of(record);
        const auto end = std::partition_point(sorted_.begin(), sorted_.end(), [time](const Record& each) {
            return daemon::time_of(each) < time;
        });
        return static_cast<std::size_t>(end - sorted_.begin());
    }
    void sort() {
        if (!std::is_sorted(sorted_.begin(), sorted_.end(), before))
            std::sort(sorted_.begin(), sorted_.end(), before);
    }

    TakeRecords<Record> take_;
    std::string name_;
    SortLimits limits_;
    bool ended_ = false;
    gpu::RecordVector<Record> sorted_;
    std::size_t next_ = 0;
    std::size_t ready_ = 0;  ///< of sorted_: they are earlier than everything that is still to be read
    std::uint64_t popped_ = 0;
    Record last_{};
};

/// The triples of two equal pairs follow one another, pair by pair: within equal pairs the order of the file
/// stays.
template <>
inline bool Sorted<gpu::Triple>::before(const gpu::Triple& a, const gpu::Triple& b) {
    return !daemon::in_order(b.pair, a.pair);
}
template <>
inline void Sorted<gpu::Triple>::sort() {
    std::stable_sort(sorted_.begin(), sorted_.end(), before);
}

}  // namespace petacq::petlm
