// Sets of modules (BDMs): those of a source, or those that were seen.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace petacq::net {

/// A set of modules. It has room for modules below a number that it was given, and takes more room when a
/// larger one is added; only then does it allocate. Sets of different room are equal if they hold the same
/// modules.
class Modules {
  public:
    /// None, without room.
    Modules() = default;
    /// None, with room for modules below `bdm_count`.
    explicit Modules(std::uint32_t bdm_count) : words_((bdm_count + word_bits - 1) / word_bits) {}
    /// All modules below `bdm_count`.
    static Modules below(std::uint32_t bdm_count) {
        Modules all(bdm_count);
        for (std::uint32_t bdm = 0; bdm < bdm_count; ++bdm)
            all.set(bdm);
        return all;
    }

    [[nodiscard]] bool operator[](std::uint32_t bdm) const {
        const std::uint32_t word = bdm / word_bits;
        return word < words_.size() && (words_[word] >> (bdm % word_bits) & 1) != 0;
    }
    Modules& set(std::uint32_t bdm) {
        const std::uint32_t word = bdm / word_bits;
        if (word >= words_.size()) words_.resize(word + std::size_t{1});
        words_[word] |= std::uint64_t{1} << (bdm % word_bits);
        return *this;
    }
    /// Adds those of another set.
    Modules& operator|=(const Modules& more) {
        if (words_.size() < more.words_.size()) words_.resize(more.words_.size());
        std::transform(more.words_.begin(), more.words_.end(), words_.begin(), words_.begin(),
                       [](std::uint64_t a, std::uint64_t b) { return a | b; });
        return *this;
    }
    /// Whether both have a module.
    [[nodiscard]] bool intersects(const Modules& other) const {
        const std::size_t common = std::min(words_.size(), other.words_.size());
        for (std::size_t n = 0; n < common; ++n) {
            if ((words_[n] & other.words_[n]) != 0) return true;
        }
        return false;
    }
    /// Removes all; keeps the room.
    void clear() { std::fill(words_.begin(), words_.end(), 0); }

    [[nodiscard]] bool none() const {
        return std::all_of(words_.begin(), words_.end(), [](std::uint64_t w) { return w == 0; });
    }
    [[nodiscard]] std::uint32_t count() const {
        std::uint32_t count = 0;
        for (const std::uint64_t w : words_)
            count += static_cast<std::uint32_t>(std::popcount(w));
        return count;
    }
    /// No module of the set is as high, or any higher.
    [[nodiscard]] std::uint32_t end() const {
        std::size_t n = words_.size();
        while (n > 0 && words_[n - 1] == 0)
            --n;
        return n == 0 ? 0
                      : static_cast<std::uint32_t>(n * word_bits) -
                            static_cast<std::uint32_t>(std::countl_zero(words_[n - 1]));
    }
    /// Calls `take` with each, in ascending order.
    template <class Take>
    void each(Take take) const {
        for (std::size_t n = 0; n < words_.size(); ++n) {
            for (std::uint64_t rest = words_[n]; rest != 0; rest &= rest - 1)
                take(static_cast<std::uint32_t>(n * word_bits + std::countr_zero(rest)));
        }
    }

    friend bool operator==(const Modules& a, const Modules& b) {
        const std::size_t common = std::min(a.words_.size(), b.words_.size());
        const auto empty_behind = [common](const Modules& m) {
            return std::all_of(m.words_.begin() + static_cast<std::ptrdiff_t>(common), m.words_.end(),
                               [](std::uint64_t w) { return w == 0; });
        };
        return std::equal(a.words_.begin(), a.words_.begin() + static_cast<std::ptrdiff_t>(common),
                          b.words_.begin()) &&
               empty_behind(a) && empty_behind(b);
    }

  private:
    static constexpr std::uint32_t word_bits = 64;

    std::vector<std::uint64_t> words_;
};

}  // namespace petacq::net
