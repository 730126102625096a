// Sets of times, random and tick by tick.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "daemon/coverage/intervals.hpp"

namespace petacq::test {

/// Of up to `most` ranges, none longer than `longest`, that begin in `within`; some overlap, touch or are
/// empty.
inline daemon::Intervals some_intervals(std::mt19937_64& random, gpu::TickRange within, std::size_t most,
                                        std::uint64_t longest) {
    std::vector<gpu::TickRange> ranges;
    for (std::size_t i = random() % (most + 1); i > 0; --i) {
        const std::uint64_t start = within.start + random() % within.ticks();
        ranges.push_back({start, start + random() % (longest + 1)});
    }
    return daemon::Intervals(std::move(ranges));
}

/// [tick - start] whether the set has the tick.
inline std::vector<bool> ticks_in(const daemon::Intervals& times, std::uint64_t start, std::size_t count) {
    std::vector<bool> in(count);
    for (const gpu::TickRange& range : times.ranges())
        for (std::uint64_t t = std::max(range.start, start); t < std::min(range.end, start + count); ++t)
            in[t - start] = true;
    return in;
}

}  // namespace petacq::test
