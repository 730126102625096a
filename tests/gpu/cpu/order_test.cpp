// Ordering, slice by slice, against std::sort.
#include <algorithm>

#include "gpu/base/records.hpp"
#include "gpu/cpu/order.hpp"
#include "gpu/rules/record_order.hpp"
#include "tests/gpu/base/random.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace petacq::gpu;
using petacq::test::Rng;

bool less(const Single& a, const Single& b) {
    return before(a, b);
}
bool same(const Single& a, const Single& b) {
    return !before(a, b) && !before(b, a);
}

/// How the times of arriving singles are spread about the present time.
struct Arrivals {
    const char* name;
    std::uint64_t step;      // of the present time, from chunk to chunk
    std::uint64_t disorder;  // singles are at most so far ahead
    double far = 0;          // share of singles that are an hour or more ahead
};

Single single_at(std::uint64_t now, const Arrivals& arrivals, Rng& rng) {
    std::uint64_t ahead = rng.between<std::uint64_t>(0, arrivals.disorder);
    if (arrivals.far > 0 && rng.chance(arrivals.far)) ahead += rng.bits() >> 8;
    return {now + ahead, rng.between(0U, 5U), static_cast<float>(rng.between(0, 2))};
}

petacq::gpu::RecordVector<Single> ordered(Orderer& orderer) {
    for (std::size_t i = orderer.misfits(); i-- > 0;)
        orderer.refit(i);
    orderer.plan();
    petacq::gpu::RecordVector<Single> singles(orderer.size(), Single{});
    for (std::size_t i = orderer.groups(); i-- > 0;)
        orderer.sort(i, singles.data());
    orderer.finish();
    return singles;
}

}  // namespace

TEST_CASE("order: each slice gets the singles below its limit, in order") {
    const std::vector<Arrivals> all = {
        {"nearly in order", 100'000, 20'000},
        {"out of order by several slices", 10'000, 1'000'000},
        {"few times", 3, 5},
        {"one time", 0, 0},
        {"sparse", std::uint64_t{1} << 50, std::uint64_t{1} << 51},
        {"some far ahead", 100'000, 20'000, 0.01},
        {"one far ahead", 100'000, 20'000, 0.0001},
    };
    for (const Arrivals& arrivals : all) {
        INFO(arrivals.name);
        Rng rng(7);
        ChunkStore store;
        Orderer orderer(store);
        petacq::gpu::RecordVector<Single> waiting;
        std::uint64_t now = 1000;
        std::uint64_t limit = 0;
        std::size_t misfits = 0;
        for (int slice = 0; slice < 30; ++slice) {
            const bool last = slice == 29;
            std::vector<std::unique_ptr<Chunk>> chunks;
            for (std::size_t i = rng.index(8); i > 0; --i) {
                petacq::gpu::RecordVector<Single> singles(
                    rng.between<std::size_t>(1, rng.chance(0.5) ? 100 : Chunk::max_singles));
                for (Single& s : singles)
                    s = single_at(now, arrivals, rng);
                waiting.insert(waiting.end(), singles.begin(), singles.end());
                chunks.push_back(store.take());
                chunks.back()->fill(singles, orderer.bin_width());
                now += arrivals.step;
            }
            if (rng.chance(0.8)) limit = now - std::min(now, rng.between<std::uint64_t>(0, arrivals.step));
            orderer.start(chunks, last ? std::nullopt : std::optional(limit));
            misfits += orderer.misfits();
            const petacq::gpu::RecordVector<Single> got = ordered(orderer);
            const auto end = std::partition(waiting.begin(), waiting.end(),
                                            [&](const Single& s) { return last || s.time < limit; });
            std::sort(waiting.begin(), end, less);
            REQUIRE(std::equal(got.begin(), got.end(), waiting.begin(), end, same));
            waiting.erase(waiting.begin(), end);
        }
        CHECK(waiting.empty());
        if (arrivals.far > 0) CHECK(misfits > 0);
    }
}

TEST_CASE("order: singles that wait hold little more memory than they need, however few come at once") {
    ChunkStore store;
    Orderer orderer(store);
    std::vector<std::unique_ptr<Chunk>> chunks;
    for (std::uint64_t i = 0; i < 20'000; ++i) {
        const Single single{i, 0, 0};
        chunks.push_back(store.take());
        chunks.back()->fill({&single, 1}, orderer.bin_width());
        orderer.start(chunks, 0);
        CHECK(ordered(orderer).empty());
    }
    CHECK(store.made() < 50);
    orderer.start(chunks, std::nullopt);
    CHECK(ordered(orderer).size() == 20'000);
}

TEST_CASE("order: after a reset nothing waits") {
    ChunkStore store;
    Orderer orderer(store);
    std::vector<std::unique_ptr<Chunk>> chunks;
    const Single single{5, 0, 0};
    chunks.push_back(store.take());
    chunks.back()->fill({&single, 1}, 0);
    orderer.start(chunks, 0);
    CHECK(ordered(orderer).empty());
    orderer.reset();
    orderer.start(chunks, std::nullopt);
    CHECK(ordered(orderer).empty());
}

TEST_CASE("order: coincidences that share a time are put in their total order, also the last ones") {
    for (int i = 0; i < 2000; ++i) {
        Rng rng(static_cast<std::uint64_t>(i));
        std::vector<Coincidence> records(rng.between<std::size_t>(0, 12));
        for (Coincidence& record : records) {
            record.time = rng.between<std::uint64_t>(0, 3);
            record.crystal_a = rng.between(0U, 3U);
            record.crystal_b = rng.between(0U, 3U);
        }
        std::sort(records.begin(), records.end(),
                  [](const Coincidence& a, const Coincidence& b) { return a.time < b.time; });
        order_equal_times(records);
        REQUIRE(std::is_sorted(records.begin(), records.end(),
                               [](const Coincidence& a, const Coincidence& b) { return before(a, b); }));
    }
}
