// The names of the sort engines and their stability; needs no GPU.
#include "gpu/sort_engine.hpp"
#include "tests/support/catch.hpp"

using petacq::gpu::is_stable;
using petacq::gpu::SortEngine;

TEST_CASE("sort engines: which are stable") {
    CHECK(is_stable(SortEngine::automatic));
    CHECK(is_stable(SortEngine::merge));
    CHECK(is_stable(SortEngine::radix));
    CHECK(is_stable(SortEngine::quicksort));
    CHECK(is_stable(SortEngine::odd_even));
    CHECK(is_stable(SortEngine::cub));
    CHECK_FALSE(is_stable(SortEngine::bitonic));
}
