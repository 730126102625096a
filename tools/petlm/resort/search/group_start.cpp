#include "tools/petlm/resort/search/group_start.hpp"

#include <algorithm>
#include <cstddef>
#include <deque>

namespace petacq::petlm {

std::optional<std::uint64_t> group_start(std::span<const std::uint64_t> times, std::uint64_t from, bool opens,
                                         std::uint64_t boundary, std::uint64_t window) {
    opens = opens || from == 0;
    const auto unknown = [&]() -> std::optional<std::uint64_t> {
        const bool free = boundary - (times.empty() ? from - 1 : times.back()) > window;
        return free ? std::optional(boundary) : std::nullopt;
    };
    if (times.empty()) return opens ? boundary : unknown();

    // In order, singles of which at least one opens a window, whatever lies before `from`: a window that is
    // open there has opened at from - 1 or earlier. All of them are within the window of the first one, or
    // the first after it.
    std::deque<std::size_t> openers{0};
    std::size_t after = 0;
    while (!opens && times[after] - (from - 1) <= window) {
        if (++after == times.size()) return unknown();
        openers.push_back(after);
    }
    // If the first of them opens a window, so does the first single after that window.
    while (openers.size() > 1) {
        const std::uint64_t first = times[openers.front()];
        openers.pop_front();
        while (times[after] - first <= window)
            if (++after == times.size()) return unknown();
        if (openers.back() != after) openers.push_back(after);
    }
    std::uint64_t last = times[openers.front()];
    for (const std::uint64_t time : times.subspan(openers.front()))
        if (time - last > window) last = time;
    if (last > UINT64_MAX - window - 1) return UINT64_MAX;
    return std::max(boundary, last + window + 1);
}

}  // namespace petacq::petlm
