// Records on their way: found until they are released, in memory that is used again.
#include "daemon/listmode/waiting_records.hpp"

#include <random>

#include "tests/daemon/listmode/support.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using namespace petacq::daemon;
using namespace petacq::test;

namespace {

using Waiting = WaitingRecords<gpu::Coincidence>;

gpu::RecordVector<gpu::Coincidence> found_in(const Waiting& waiting, std::uint64_t first,
                                             std::uint64_t count) {
    std::vector<std::span<const std::byte>> stretches;
    waiting.find(first, count, stretches);
    gpu::RecordVector<gpu::Coincidence> all;
    for (const auto stretch : stretches) {
        const auto* const records = reinterpret_cast<const gpu::Coincidence*>(stretch.data());
        all.insert(all.end(), records, records + stretch.size() / sizeof *records);
    }
    return all;
}

}  // namespace

TEST_CASE("Records are found until they are released, in any order", "[listmode][waiting]") {
    std::mt19937 random(3);
    for (int round = 0; round < 20; ++round) {
        Waiting waiting(1U << 20);
        std::uint64_t taken = 0;
        std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;  // first, count
        for (int step = 0; step < 60; ++step) {
            if (random() % 2 == 0) {
                // Small ones, large ones, and large ones that are nearly empty.
                const std::uint64_t count = random() % (random() % 3 == 0 ? 6000 : 300);
                auto records = pairs(count, taken);
                if (random() % 4 == 0) records.reserve(20'000);
                waiting.take(records);
                for (std::uint64_t from = taken; from < taken + count;) {
                    const std::uint64_t some =
                        std::min<std::uint64_t>(1 + random() % 900, taken + count - from);
                    ranges.emplace_back(from, some);
                    from += some;
                }
                taken += count;
                CHECK(waiting.end() == taken);
            } else if (!ranges.empty()) {
                std::swap(ranges[random() % ranges.size()], ranges.back());
                const auto [first, count] = ranges.back();
                ranges.pop_back();
                if (!same(found_in(waiting, first, count), pairs(count, first))) FAIL("other records");
                CHECK(same(waiting.at(first), pair_number(first)));
                waiting.release(first, count);
            }
        }
    }
}

TEST_CASE("The memory of a large vector is taken over and comes back", "[listmode][waiting]") {
    Waiting waiting(1U << 20);
    auto first = pairs(10'000);
    const auto* const memory = first.data();
    waiting.take(first);
    CHECK(first.capacity() == 0);
    std::vector<std::span<const std::byte>> stretches;
    waiting.find(0, 10'000, stretches);
    REQUIRE(stretches.size() == 1);
    CHECK(static_cast<const void*>(stretches[0].data()) == memory);
    waiting.release(0, 10'000);
    auto second = pairs(10'000, 10'000);
    waiting.take(second);
    CHECK(second.data() == memory);

    // Small and nearly empty vectors stay with the caller.
    auto small = pairs(10, 20'000);
    const auto* const before = small.data();
    waiting.take(small);
    CHECK(small.data() == before);
    auto sparse = pairs(3000, 20'010);
    sparse.reserve(100'000);
    const auto* const large = sparse.data();
    waiting.take(sparse);
    CHECK(sparse.data() == large);
    CHECK(same(found_in(waiting, 19'999, 3011), pairs(3011, 19'999)));
}

TEST_CASE("Spare memory is bounded", "[listmode][waiting]") {
    Waiting waiting(3 * pairs(10'000).capacity() * sizeof(gpu::Coincidence));
    for (std::uint64_t i = 0; i < 20; ++i) {
        auto records = pairs(10'000, 10'000 * i);
        waiting.take(records);
    }
    waiting.release(0, 200'000);
    int spare = 0;
    for (std::uint64_t i = 0; i < 20; ++i) {
        auto records = pairs(10'000, 200'000 + 10'000 * i);
        waiting.take(records);
        if (records.capacity() != 0) ++spare;
    }
    CHECK(spare == 3);
}
