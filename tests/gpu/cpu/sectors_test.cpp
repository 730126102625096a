// Groups of modules: few enough, in order, and none left out.
#include "gpu/sectors.hpp"

#include <numeric>
#include <vector>

#include "tests/support/catch.hpp"

namespace petacq::test {

namespace {

gpu::Sectors sectors_of(std::uint32_t bdm_count) {
    config::Geometry g;
    g.bdm_count = bdm_count;
    return gpu::Sectors::of(g);
}

}  // namespace

TEST_CASE("up to 256 modules each is a sector") {
    for (const std::uint32_t modules : {1U, 2U, 48U, 255U, 256U}) {
        const gpu::Sectors sectors = sectors_of(modules);
        CHECK(sectors.count() == modules);
        CHECK(sectors.of_module(modules - 1) == modules - 1);
        CHECK(sectors.modules_with(modules - 1) == 1);
    }
}

TEST_CASE("more modules share at most 256 sectors") {
    for (const std::uint32_t modules : {257U, 300U, 512U, 513U, 4097U, 65'535U, 65'536U}) {
        INFO(modules);
        const gpu::Sectors sectors = sectors_of(modules);
        CHECK(sectors.count() <= 256);
        CHECK(sectors.count() > 128);
        std::vector<std::uint32_t> sizes(sectors.count());
        for (std::uint32_t bdm = 0; bdm < modules; ++bdm) {
            REQUIRE(sectors.of_module(bdm) < sectors.count());
            REQUIRE(sectors.of_module(bdm) >= sectors.of_module(bdm == 0 ? 0 : bdm - 1));
            ++sizes[sectors.of_module(bdm)];
        }
        for (std::uint32_t bdm = 0; bdm < modules; ++bdm)
            REQUIRE(sectors.modules_with(bdm) == sizes[sectors.of_module(bdm)]);
        for (const std::uint32_t size : sizes)
            CHECK(size >= 1);
    }
}

TEST_CASE("what modules have of their sectors adds up to the sums") {
    const gpu::Sectors sectors = sectors_of(301);
    std::vector<std::uint32_t> sums(sectors.pairs());
    std::iota(sums.begin(), sums.end(), 1U);
    double all = 0;
    for (std::uint32_t a = 0; a < 301; ++a) {
        for (std::uint32_t b = 0; b < 301; ++b)
            all += sectors.share(sums, a, b);
    }
    const auto pairs = static_cast<double>(sums.size());
    CHECK(all == Approx(pairs * (pairs + 1) / 2));
    CHECK(sectors_of(3).share({0, 1, 2, 3, 4, 5, 6, 7, 8}, 1, 2) == 5);
}

}  // namespace petacq::test
