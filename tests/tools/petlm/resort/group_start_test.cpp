// Where singles can be divided, against a walk over all of them.
#include "tools/petlm/resort/search/group_start.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "tests/support/catch.hpp"

using petacq::petlm::group_start;

namespace {

using Times = std::vector<std::uint64_t>;

/// Where the first group at or after the boundary may open.
std::uint64_t walk(const Times& all, std::uint64_t boundary, std::uint64_t window) {
    std::uint64_t free = 0;  // after the last window
    for (const std::uint64_t time : all)
        if (time < boundary && time >= free) free = time + window + 1;
    return std::max(free, boundary);
}

/// `per_window` of them in a window, on average.
Times random_times(std::mt19937_64& random, std::size_t count, std::uint64_t window, double per_window) {
    std::exponential_distribution<double> step(per_window / static_cast<double>(window));
    double time = 1000;
    Times times;
    for (std::size_t i = 0; i < count; ++i)
        times.push_back(static_cast<std::uint64_t>(time += step(random)));
    return times;
}

std::optional<std::uint64_t> asked(const Times& all, std::uint64_t from, std::uint64_t boundary,
                                   std::uint64_t window) {
    const auto begin = std::lower_bound(all.begin(), all.end(), from);
    return group_start({begin, std::lower_bound(begin, all.end(), boundary)}, from, false, boundary, window);
}

}  // namespace

TEST_CASE("group_start: what it finds does not depend on what lies before", "[resort]") {
    std::mt19937_64 random(5);
    std::size_t found = 0;
    for (int i = 0; i < 20'000; ++i) {
        const std::uint64_t window = 1 + random() % 60;
        const double per_window = std::pow(2.0, static_cast<double>(random() % 8) - 3);
        const Times all = random_times(random, 300, window, per_window);
        const std::uint64_t boundary = all[250] + random() % 3;
        const std::uint64_t from = all[random() % 240] - 1 + random() % 3;
        const auto start = asked(all, from, boundary, window);
        if (!start) continue;
        ++found;
        INFO("window " << window << ", " << per_window << " singles in it, from " << from << " to "
                       << boundary);
        REQUIRE(*start == walk(all, boundary, window));
        // Other singles before `from`: all that can be, and none.
        Times filled;
        for (std::uint64_t t = from > 200 ? from - 200 : 0; t < from; ++t)
            filled.push_back(t);
        const auto begin = std::lower_bound(all.begin(), all.end(), from);
        for (std::size_t used = 0; used <= filled.size(); used += 7) {
            Times other(filled.begin(), filled.end() - static_cast<std::ptrdiff_t>(used));
            other.insert(other.end(), begin, all.end());
            REQUIRE(*start == walk(other, boundary, window));
        }
    }
    CHECK(found > 5000);
}

TEST_CASE("group_start: random times without any gap tell soon, periodic ones never", "[resort]") {
    std::mt19937_64 random(6);
    const std::uint64_t window = 4000;
    const Times dense = random_times(random, 400'000, window, 40);
    for (std::size_t i = 1; i < dense.size(); ++i)
        REQUIRE(dense[i] - dense[i - 1] <= window);
    const auto start = asked(dense, dense[1], dense.back(), window);
    REQUIRE(start.has_value());
    CHECK(*start == walk(dense, dense.back(), window));

    Times periodic;
    for (std::uint64_t t = 7; t < 90'000; t += 10)
        periodic.push_back(t);
    CHECK_FALSE(asked(periodic, 1000, 90'000, 40).has_value());
    CHECK(group_start(periodic, 7, true, 90'000, 40) == walk(periodic, 90'000, 40));
}
