#include "tools/petlm/resort/group_start.hpp"

#include <algorithm>

namespace petacq::petlm {

std::optional<std::uint64_t> group_start(std::span<const std::uint64_t> times, std::uint64_t from, bool opens,
                                         std::uint64_t boundary, std::uint64_t window) {
    opens = opens || from == 0;
    // The latest single before `from` may have been at from - 1.
    const auto opens_window = [&](std::size_t i) {
        return i == 0 ? opens || times[0] - (from - 1) > window : times[i] - times[i - 1] > window;
    };
    std::size_t i = times.size();
    while (i > 0 && !opens_window(i - 1))
        --i;
    if (i == 0) {
        if (times.empty() && (opens || boundary - (from - 1) > window)) return boundary;
        return std::nullopt;
    }
    for (auto opener = times.begin() + static_cast<std::ptrdiff_t>(i - 1);;) {
        if (*opener > UINT64_MAX - window - 1) return UINT64_MAX;
        const std::uint64_t after = *opener + window + 1;
        if (after >= boundary) return after;
        opener = std::lower_bound(opener, times.end(), after);
        if (opener == times.end()) return boundary;
    }
}

}  // namespace petacq::petlm
