#include "tools/petlm/reconstruction/em/pair_counts.hpp"

#include <algorithm>
#include <cmath>

#include "tools/petlm/reconstruction/em/mixed.hpp"
#include "tools/petlm/reconstruction/projector/for_each_on.hpp"

namespace petacq::image {
namespace {

constexpr std::size_t keys_at_a_time = std::size_t{1} << 22U;

std::uint64_t key_of(Pair p) {
    return std::uint64_t{p.a} << 32U | p.b;
}

Pair pair_of(std::uint64_t key) {
    return {static_cast<std::uint32_t>(key >> 32U), static_cast<std::uint32_t>(key)};
}

/// A number with the Poisson distribution of mean 1 from 64 random bits.
std::uint32_t poisson_of_one(std::uint64_t bits) {
    const double uniform = static_cast<double>(bits >> 11U) * 0x1p-53;
    double chance = std::exp(-1.0);
    double below = chance;
    std::uint32_t n = 0;
    while (uniform >= below && n < 20) {
        ++n;
        chance /= n;
        below += chance;
    }
    return n;
}

}  // namespace

PairCounts::PairCounts(std::uint32_t crystals, std::size_t capacity, net::WorkerPool& pool)
    : crystals_(crystals),
      capacity_(std::max<std::size_t>(capacity, 1024)),
      // Merging walks through the whole list: often for a small one, rarely for a large one.
      max_keys_(std::min(keys_at_a_time, capacity_ / 2)),
      pool_(pool) {
    keys_.reserve(max_keys_);
}

bool PairCounts::kept(Pair pair) const {
    return (mixed(pair.a * crystals_ + pair.b) & (one_in_ - 1)) == 0;
}

void PairCounts::add(std::span<const gpu::Coincidence> records) {
    for (const gpu::Coincidence& c : records) {
        if (c.kind != gpu::Kind::prompt || c.crystal_a == c.crystal_b) continue;
        const Pair pair{std::min(c.crystal_a, c.crystal_b), std::max(c.crystal_a, c.crystal_b)};
        if (one_in_ > 1 && !kept(pair)) continue;
        keys_.push_back(key_of(pair));
        if (keys_.size() == max_keys_) merge_keys();
    }
}

void PairCounts::sort_keys() {
    const std::size_t slices = pool_.size();
    const auto at = [&](std::size_t slice) {
        return keys_.begin() + static_cast<std::ptrdiff_t>(keys_.size() * slice / slices);
    };
    for_each_on(pool_, slices, [&](std::size_t slice) { std::sort(at(slice), at(slice + 1)); });
    for (std::size_t width = 1; width < slices; width *= 2) {
        for_each_on(pool_, (slices + 2 * width - 1) / (2 * width), [&](std::size_t i) {
            const std::size_t begin = i * 2 * width;
            const std::size_t middle = std::min(slices, begin + width);
            std::inplace_merge(at(begin), at(middle), at(std::min(slices, begin + 2 * width)));
        });
    }
}

/// Merges the collected keys into the pairs.
void PairCounts::merge_keys() {
    sort_keys();
    prompts_ += keys_.size();
    std::vector<Pair> pairs;
    std::vector<std::uint32_t> counts;
    pairs.reserve(pairs_.size() + keys_.size());
    counts.reserve(pairs_.size() + keys_.size());
    std::size_t old = 0;
    for (std::size_t i = 0; i < keys_.size();) {
        const std::uint64_t key = keys_[i];
        std::uint32_t count = 0;
        for (; i < keys_.size() && keys_[i] == key; ++i)
            ++count;
        for (; old < pairs_.size() && key_of(pairs_[old]) < key; ++old) {
            pairs.push_back(pairs_[old]);
            counts.push_back(counts_[old]);
        }
        if (old < pairs_.size() && key_of(pairs_[old]) == key) count += counts_[old++];
        pairs.push_back(pair_of(key));
        counts.push_back(count);
    }
    pairs.insert(pairs.end(), pairs_.begin() + static_cast<std::ptrdiff_t>(old), pairs_.end());
    counts.insert(counts.end(), counts_.begin() + static_cast<std::ptrdiff_t>(old), counts_.end());
    pairs_ = std::move(pairs);
    counts_ = std::move(counts);
    keys_.clear();
    while (pairs_.size() > capacity_)
        halve();
}

void PairCounts::halve() {
    one_in_ *= 2;
    std::size_t left = 0;
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
        if (!kept(pairs_[i])) {
            prompts_ -= counts_[i];
            continue;
        }
        pairs_[left] = pairs_[i];
        counts_[left++] = counts_[i];
    }
    pairs_.resize(left);
    counts_.resize(left);
}

PairCounts PairCounts::resampled(std::uint64_t seed) const {
    PairCounts out = *this;
    std::size_t left = 0;
    out.prompts_ = 0;
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
        std::uint32_t count = 0;
        std::uint64_t random = mixed(key_of(pairs_[i]) ^ mixed(seed));
        for (std::uint32_t prompt = 0; prompt < counts_[i]; ++prompt) {
            random = mixed(random + 1);
            count += poisson_of_one(random);
        }
        if (count == 0) continue;
        out.pairs_[left] = pairs_[i];
        out.counts_[left++] = count;
        out.prompts_ += count;
    }
    out.pairs_.resize(left);
    out.counts_.resize(left);
    return out;
}

void PairCounts::finish() {
    merge_keys();
    keys_ = {};
}

}  // namespace petacq::image
