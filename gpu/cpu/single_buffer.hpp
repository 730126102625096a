// A growing array of singles that neither clears nor releases its memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gpu/base/records.hpp"

namespace petacq::gpu {

/// Like a vector, except that resizing within the memory already held writes nothing: singles beyond the old
/// size are uninitialised. Not thread-safe.
class SingleBuffer {
  public:
    [[nodiscard]] std::size_t size() const { return size_; }
    [[nodiscard]] bool empty() const { return size_ == 0; }
    Single* data() { return storage_.data(); }
    [[nodiscard]] const Single* data() const { return storage_.data(); }
    [[nodiscard]] const Single& back() const { return storage_[size_ - 1]; }
    [[nodiscard]] std::span<const Single> view() const { return {storage_.data(), size_}; }

    void clear() { size_ = 0; }
    void reserve(std::size_t n) {
        if (n > storage_.size()) storage_.resize(n);
    }
    /// Keeps the singles below the old size.
    void resize(std::size_t n) {
        if (n > storage_.size()) storage_.resize(std::max(n, storage_.size() + storage_.size() / 2));
        size_ = n;
    }
    void append(std::span<const Single> singles) {
        const std::size_t before = size_;
        resize(before + singles.size());
        std::copy(singles.begin(), singles.end(), storage_.begin() + static_cast<std::ptrdiff_t>(before));
    }

  private:
    std::vector<Single> storage_;
    std::size_t size_ = 0;
};

/// Oldest and newest time of a set of singles; low is above high when the set is empty.
struct TimeRange {
    std::uint64_t low = UINT64_MAX;
    std::uint64_t high = 0;

    void include(std::span<const Single> singles) {
        for (const Single& s : singles) {
            low = std::min(low, s.time);
            high = std::max(high, s.time);
        }
    }
    void include(const TimeRange& o) {
        low = std::min(low, o.low);
        high = std::max(high, o.high);
    }
};

}  // namespace petacq::gpu
