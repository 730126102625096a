// The block-level primitives against loops.
#include <algorithm>
#include <numeric>
#include <random>

#include "gpu/cuda/cuda_pipeline.hpp"
#include "tests/gpu/cuda_usable.hpp"
#include "tests/gpu/sort/primitives_kernels.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace petacq::test;

std::uint32_t draw(std::mt19937& random) {
    return static_cast<std::uint32_t>(random());
}

/// Values of all sizes, mostly small, of `count` threads.
Words values_for(std::size_t count, int turn) {
    std::mt19937 random(static_cast<unsigned>(turn * 7919) + static_cast<unsigned>(count));
    Words values(count);
    for (std::uint32_t& v : values)
        v = turn == 0 ? 0
                      : (turn == 1 ? 1 : (turn == 2 ? draw(random) % 3 : draw(random) >> draw(random) % 32));
    return values;
}

constexpr int turns = 6;

}  // namespace

TEST_CASE("primitives: scans and reductions") {
    if (!cuda_usable()) return;
    for (const std::size_t threads : {32, 256, 1024}) {
        for (int turn = 0; turn < turns; ++turn) {
            const Words values = values_for(threads, turn);
            Words exclusive(threads);
            Words inclusive(threads);
            Words doubled(threads);
            std::exclusive_scan(values.begin(), values.end(), exclusive.begin(), 0U);
            std::inclusive_scan(values.begin(), values.end(), inclusive.begin());
            for (std::size_t i = 0; i < threads; ++i)
                doubled[i] = 2 * exclusive[i];
            const Scanned got = scan_on_device(values);
            INFO(threads << " threads, turn " << turn);
            CHECK(got.exclusive == exclusive);
            CHECK(got.inclusive == inclusive);
            CHECK(got.doubled_exclusive == doubled);
            CHECK(got.total == inclusive.back());
            CHECK(got.sum == inclusive.back());
            CHECK(got.largest == *std::max_element(values.begin(), values.end()));
        }
    }
}

TEST_CASE("primitives: sums of more than 32 bits") {
    if (!cuda_usable()) return;
    std::mt19937_64 random(3);
    std::vector<std::uint64_t> values(512);
    for (std::uint64_t& v : values)
        v = random() >> 16;
    std::vector<std::uint64_t> expected(513);
    std::inclusive_scan(values.begin(), values.end(), expected.begin() + 1);
    CHECK(scan_long_on_device(values) == expected);
}

TEST_CASE("primitives: compaction keeps the order") {
    if (!cuda_usable()) return;
    for (const std::size_t count : {32, 768, 1024, 2048}) {
        for (int turn = 0; turn < turns; ++turn) {
            const Words values = values_for(count, turn);
            Words expected;
            const auto append = [&](std::uint32_t rest) {
                std::copy_if(values.begin(), values.end(), std::back_inserter(expected),
                             [=](std::uint32_t v) { return (v + 1) % 3 == rest; });
            };
            append(0);
            if (count == 768 || count == 1024) append(1);
            CHECK(compact_on_device(values) == expected);
        }
    }
}

TEST_CASE("primitives: histogram") {
    if (!cuda_usable()) return;
    std::mt19937 random(4);
    for (const std::uint32_t bins : {1U, 2U, 33U, 256U, 1000U}) {
        Words labels(1024);
        for (std::uint32_t& label : labels)
            label = draw(random) % (bins + bins / 4 + 1);  // some are out of range
        Words expected(bins);
        for (const std::uint32_t label : labels) {
            if (label < bins) expected[label] += 2;
        }
        CHECK(histogram_on_device(labels, bins) == expected);
    }
}

TEST_CASE("primitives: lanes with one label") {
    if (!cuda_usable()) return;
    std::mt19937 random(5);
    for (const std::uint32_t different : {1U, 2U, 7U, 1000U}) {
        Words labels(32);
        for (std::uint32_t& label : labels)
            label = draw(random) % different;
        Words expected(32);
        for (std::size_t i = 0; i < 32; ++i) {
            for (std::size_t j = 0; j < 32; ++j)
                expected[i] |= labels[i] % 32 == labels[j] % 32 ? 1U << j : 0U;
        }
        CHECK(peers_on_device(labels) == expected);
    }
}

TEST_CASE("primitives: searches") {
    if (!cuda_usable()) return;
    std::mt19937 random(6);
    for (const std::size_t count : {1, 2, 31, 32, 33, 1000, 32'769, 100'003}) {
        Words ordered(count);
        for (std::uint32_t& v : ordered)
            v = draw(random) % 5000;
        std::sort(ordered.begin(), ordered.end());
        Words limits{0, 1, 2500, 4999, 5000, 1U << 31};
        limits.push_back(ordered.front());
        limits.push_back(ordered.back());
        limits.push_back(ordered.back() + 1);
        Words expected;
        for (const std::uint32_t limit : limits) {
            expected.push_back(static_cast<std::uint32_t>(
                std::lower_bound(ordered.begin(), ordered.end(), limit) - ordered.begin()));
        }
        const Found found = search_on_device(ordered, limits);
        CHECK(found.by_thread == expected);
        CHECK(found.by_warp == expected);
    }
}
