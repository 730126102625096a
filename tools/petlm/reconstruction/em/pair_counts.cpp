#include "tools/petlm/reconstruction/em/pair_counts.hpp"

#include <algorithm>
#include <cmath>

#include "config/mixed.hpp"
#include "tools/petlm/reconstruction/projector/for_each_on.hpp"

namespace petacq::image {
namespace {

constexpr std::size_t keys_at_a_time = std::size_t{1} << 22U;

/// 24 bits for each crystal, 16 for the bin of the time of flight, with an offset.
std::uint64_t key_of(Pair p, std::int16_t bin) {
    return std::uint64_t{p.a} << 40U | std::uint64_t{p.b} << 16U | static_cast<std::uint16_t>(bin + 0x8000);
}

Pair pair_of(std::uint64_t key) {
    return {static_cast<std::uint32_t>(key >> 40U), static_cast<std::uint32_t>(key >> 16U) & 0xFFFFFFU};
}

std::int16_t bin_of(std::uint64_t key) {
    return static_cast<std::int16_t>(static_cast<std::int32_t>(key & 0xFFFFU) - 0x8000);
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

PairCounts::PairCounts(std::uint32_t crystals, std::size_t capacity, net::WorkerPool& pool,
                       const TofBins& tof)
    : crystals_(crystals),
      capacity_(std::max<std::size_t>(capacity, 1024)),
      // Merging walks through the whole list: often for a small one, rarely for a large one.
      max_keys_(std::min(keys_at_a_time, capacity_ / 2)),
      pool_(pool),
      tof_(tof) {
    keys_.reserve(max_keys_);
}

bool PairCounts::kept(Pair pair) const {
    return (config::mixed(pair.a * crystals_ + pair.b) & (one_in_ - 1)) == 0;
}

void PairCounts::add(std::span<const gpu::Coincidence> records) {
    for (const gpu::Coincidence& c : records) {
        if (c.kind != gpu::Kind::prompt || c.crystal_a == c.crystal_b) continue;
        const Pair pair{std::min(c.crystal_a, c.crystal_b), std::max(c.crystal_a, c.crystal_b)};
        if (one_in_ > 1 && !kept(pair)) continue;
        std::int16_t bin = 0;
        if (tof_.used()) {
            const auto dt = static_cast<std::int64_t>(std::min(c.dt, tof_.window));
            bin = tof_.bin(c.crystal_a < c.crystal_b ? dt : -dt);
        }
        keys_.push_back(key_of(pair, bin));
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

std::uint64_t PairCounts::key_at(std::size_t i) const {
    return key_of(pairs_[i], bins_.empty() ? std::int16_t{0} : bins_[i]);
}

void PairCounts::push(std::uint64_t key, std::uint32_t count) {
    pairs_.push_back(pair_of(key));
    counts_.push_back(count);
    if (tof_.used()) bins_.push_back(bin_of(key));
}

/// Merges the collected keys into the pairs.
void PairCounts::merge_keys() {
    sort_keys();
    prompts_ += keys_.size();
    PairCounts both(static_cast<std::uint32_t>(crystals_), 0, pool_, tof_);
    both.pairs_.reserve(pairs_.size() + keys_.size());
    both.counts_.reserve(pairs_.size() + keys_.size());
    if (tof_.used()) both.bins_.reserve(pairs_.size() + keys_.size());
    std::size_t old = 0;
    for (std::size_t i = 0; i < keys_.size();) {
        const std::uint64_t key = keys_[i];
        std::uint32_t count = 0;
        for (; i < keys_.size() && keys_[i] == key; ++i)
            ++count;
        for (; old < pairs_.size() && key_at(old) < key; ++old)
            both.push(key_at(old), counts_[old]);
        if (old < pairs_.size() && key_at(old) == key) count += counts_[old++];
        both.push(key, count);
    }
    for (; old < pairs_.size(); ++old)
        both.push(key_at(old), counts_[old]);
    pairs_ = std::move(both.pairs_);
    counts_ = std::move(both.counts_);
    bins_ = std::move(both.bins_);
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
        if (tof_.used()) bins_[left] = bins_[i];
        counts_[left++] = counts_[i];
    }
    pairs_.resize(left);
    counts_.resize(left);
    bins_.resize(std::min(left, bins_.size()));
}

PairCounts PairCounts::resampled(std::uint64_t seed) const {
    PairCounts out = *this;
    std::size_t left = 0;
    out.prompts_ = 0;
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
        std::uint32_t count = 0;
        std::uint64_t random = config::mixed(key_at(i) ^ config::mixed(seed));
        for (std::uint32_t prompt = 0; prompt < counts_[i]; ++prompt) {
            random = config::mixed(random + 1);
            count += poisson_of_one(random);
        }
        if (count == 0) continue;
        out.pairs_[left] = pairs_[i];
        if (!bins_.empty()) out.bins_[left] = bins_[i];
        out.counts_[left++] = count;
        out.prompts_ += count;
    }
    if (!bins_.empty()) out.bins_.resize(left);
    out.pairs_.resize(left);
    out.counts_.resize(left);
    return out;
}

void PairCounts::finish() {
    merge_keys();
    keys_ = {};
}

PairCounts PairCounts::without_tof() const {
    PairCounts out(static_cast<std::uint32_t>(crystals_), 0, pool_);
    out.one_in_ = one_in_;
    out.prompts_ = prompts_;
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
        if (i > 0 && pairs_[i].a == pairs_[i - 1].a && pairs_[i].b == pairs_[i - 1].b)
            out.counts_.back() += counts_[i];
        else
            out.push(key_of(pairs_[i], 0), counts_[i]);
    }
    return out;
}

}  // namespace petacq::image
