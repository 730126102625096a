#include "gpu/rules/record_order.hpp"

#include <algorithm>
#include <cstddef>

namespace petacq::gpu {

void order_equal_times(std::span<Coincidence> records) {
    for (std::size_t i = 1; i < records.size(); ++i) {
        if (!before(records[i], records[i - 1])) continue;
        // Only records with equal times can be out of order: sort the run that shares this time.
        const std::uint64_t time = records[i].time;
        std::size_t first = i - 1;
        while (first > 0 && records[first - 1].time == time)
            --first;
        std::size_t last = i + 1;
        while (last < records.size() && records[last].time == time)
            ++last;
        std::sort(records.begin() + static_cast<std::ptrdiff_t>(first),
                  records.begin() + static_cast<std::ptrdiff_t>(last),
                  [](const Coincidence& a, const Coincidence& b) { return before(a, b); });
        i = last;
    }
}

}  // namespace petacq::gpu
