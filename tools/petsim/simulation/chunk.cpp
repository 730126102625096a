// The hits of a chunk in the order of the sources and of their raw times.
#include <algorithm>

#include "tools/petsim/simulation/events.hpp"

namespace petacq::sim {

EventCounts& EventCounts::operator+=(const EventCounts& o) {
    annihilations += o.annihilations;
    scattered += o.scattered;
    photons_detected += o.photons_detected;
    pairs_detected += o.pairs_detected;
    intrinsic += o.intrinsic;
    darks += o.darks;
    unreadable += o.unreadable;
    return *this;
}

// Hits are almost in order, so insertion sort is fast unless time offsets exceed the gaps.
void Chunk::sort_keys(std::span<Key> keys) {
    const auto before = [](const Key& a, const Key& b) {
        return a.time != b.time ? a.time < b.time : a.hit < b.hit;
    };
    std::size_t moves = 4 * keys.size();
    for (std::size_t i = 1; i < keys.size(); ++i) {
        const Key key = keys[i];
        std::size_t j = i;
        for (; j > 0 && before(key, keys[j - 1]); --j)
            keys[j] = keys[j - 1];
        keys[j] = key;
        if (i - j > moves) {
            std::sort(keys.begin(), keys.end(), before);
            return;
        }
        moves -= i - j;
    }
}

void EventGenerator::sort_by_source(Chunk& chunk) const {
    const auto& hits = chunk.unsorted_;
    chunk.first.assign(sources_ + 1, 0);
    for (const Hit& hit : hits)
        ++chunk.first[source_of_unit_[hit.unit] + 1U];
    for (std::uint32_t s = 0; s < sources_; ++s)
        chunk.first[s + 1] += chunk.first[s];
    chunk.fill_.assign(chunk.first.begin(), chunk.first.end());
    chunk.keys_.resize(hits.size());
    for (std::uint32_t i = 0; i < hits.size(); ++i) {
        chunk.keys_[chunk.fill_[source_of_unit_[hits[i].unit]]++] = {hits[i].raw_time, i};
    }
    for (std::uint32_t s = 0; s < sources_; ++s) {
        Chunk::sort_keys(std::span(chunk.keys_).subspan(chunk.first[s], chunk.first[s + 1] - chunk.first[s]));
    }
    chunk.hits.resize(hits.size());
    for (std::size_t i = 0; i < hits.size(); ++i)
        chunk.hits[i] = hits[chunk.keys_[i].hit];
}

}  // namespace petacq::sim
