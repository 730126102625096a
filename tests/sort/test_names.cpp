// What the configuration says of sort engines; needs no GPU.
#include <stdexcept>
#include <string>
#include <vector>

#include "gpu/sort/engine.hpp"
#include "tests/catch.hpp"

using petacq::gpu::is_stable;
using petacq::gpu::name_of;
using petacq::gpu::sort_engine_from_name;
using petacq::gpu::SortEngine;

TEST_CASE("sort engines: names") {
    const std::vector<std::string> names{"auto", "merge", "radix", "bitonic", "quicksort", "odd-even", "cub"};
    for (const std::string& name : names)
        CHECK(name_of(sort_engine_from_name(name)) == name);
    CHECK(sort_engine_from_name("auto") == SortEngine::automatic);
    CHECK(sort_engine_from_name("odd-even") == SortEngine::odd_even);
    CHECK(sort_engine_from_name("cub") == SortEngine::cub);
    for (const char* wrong : {"", "Merge", "odd_even", "automatic", "merge ", "thrust"}) {
        try {
            sort_engine_from_name(wrong);
            FAIL("'" << wrong << "' was accepted");
        } catch (const std::invalid_argument& e) {
            INFO(e.what());
            for (const std::string& name : names)
                CHECK(std::string(e.what()).find(name) != std::string::npos);
        }
    }
}

TEST_CASE("sort engines: which are stable") {
    CHECK(is_stable(SortEngine::automatic));
    CHECK(is_stable(SortEngine::merge));
    CHECK(is_stable(SortEngine::radix));
    CHECK(is_stable(SortEngine::quicksort));
    CHECK(is_stable(SortEngine::odd_even));
    CHECK(is_stable(SortEngine::cub));
    CHECK_FALSE(is_stable(SortEngine::bitonic));
}
