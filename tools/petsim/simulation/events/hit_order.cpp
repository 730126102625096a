#include "tools/petsim/simulation/events/hit_order.hpp"

#include <algorithm>
#include <span>

namespace petacq::sim {

namespace {

// Hits are almost in order, so insertion sort is fast unless time offsets exceed the gaps.
void sort_keys(std::span<Chunk::Key> keys) {
    const auto before = [](const Chunk::Key& a, const Chunk::Key& b) {
        return a.time != b.time ? a.time < b.time : a.hit < b.hit;
    };
    std::size_t moves = 4 * keys.size();
    for (std::size_t i = 1; i < keys.size(); ++i) {
        const Chunk::Key key = keys[i];
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

}  // namespace

HitOrder::HitOrder(const Options& options, const config::Scanner& scanner) {
    const config::Geometry& g = scanner.geometry;
    source_of_unit_.resize(std::size_t{g.bdm_count} * g.du_count);
    const std::vector<config::Source> sources = wire_sources(options, scanner);
    sources_ = static_cast<std::uint32_t>(sources.size());
    for (std::size_t s = sources.size(); s-- > 0;) {  // a module with several sources has the first of them
        for (const std::uint32_t bdm : sources[s].bdms) {
            std::fill_n(source_of_unit_.begin() + bdm * g.du_count, g.du_count,
                        static_cast<std::uint16_t>(s));
        }
    }
}

void HitOrder::sort(Chunk& chunk) const {
    const auto& hits = chunk.unsorted;
    chunk.first.assign(sources_ + 1, 0);
    for (const Hit& hit : hits)
        ++chunk.first[source_of_unit_[hit.unit] + 1U];
    for (std::uint32_t s = 0; s < sources_; ++s)
        chunk.first[s + 1] += chunk.first[s];
    chunk.fill.assign(chunk.first.begin(), chunk.first.end());
    chunk.keys.resize(hits.size());
    for (std::uint32_t i = 0; i < hits.size(); ++i) {
        chunk.keys[chunk.fill[source_of_unit_[hits[i].unit]]++] = {hits[i].raw_time, i};
    }
    for (std::uint32_t s = 0; s < sources_; ++s) {
        sort_keys(std::span(chunk.keys).subspan(chunk.first[s], chunk.first[s + 1] - chunk.first[s]));
    }
    chunk.hits.resize(hits.size());
    for (std::size_t i = 0; i < hits.size(); ++i)
        chunk.hits[i] = hits[chunk.keys[i].hit];
}

}  // namespace petacq::sim
