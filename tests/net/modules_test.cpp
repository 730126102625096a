// Sets of modules against std::set.
#include "net/modules.hpp"

#include <random>
#include <set>
#include <vector>

#include "tests/support/catch.hpp"

using petacq::net::Modules;

TEST_CASE("a set of modules holds what was put into it") {
    std::mt19937 random(3);
    const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    for (int round = 0; round < 200; ++round) {
        const std::uint32_t most = std::vector<std::uint32_t>{1, 64, 65, 256, 65'536}[below(5)];
        std::set<std::uint32_t> expected[2];  // NOLINT(cppcoreguidelines-avoid-c-arrays)
        Modules found[2]{Modules(below(2) == 0 ? most : 0), Modules(most)};
        for (int which = 0; which < 2; ++which) {
            for (std::uint32_t i = below(20); i > 0; --i) {
                const std::uint32_t bdm = below(most);
                expected[which].insert(bdm);
                found[which].set(bdm);
            }
        }
        std::vector<std::uint32_t> listed;
        found[0].each([&](std::uint32_t bdm) { listed.push_back(bdm); });
        REQUIRE(listed == std::vector<std::uint32_t>(expected[0].begin(), expected[0].end()));
        REQUIRE(found[0].count() == expected[0].size());
        REQUIRE(found[0].none() == expected[0].empty());
        REQUIRE(found[0].end() == (expected[0].empty() ? 0 : *expected[0].rbegin() + 1));
        REQUIRE((found[0] == found[1]) == (expected[0] == expected[1]));
        bool shared = false;
        for (std::uint32_t bdm = 0; bdm <= most; ++bdm) {
            REQUIRE(found[0][bdm] == expected[0].contains(bdm));
            shared = shared || (expected[0].contains(bdm) && expected[1].contains(bdm));
        }
        REQUIRE(found[0].intersects(found[1]) == shared);
        Modules both = found[0];
        both |= found[1];
        expected[0].merge(expected[1]);
        REQUIRE(both.count() == expected[0].size());
        both.clear();
        REQUIRE(both.none());
    }
    CHECK(Modules::below(300).count() == 300);
    CHECK(Modules::below(300)[299]);
    CHECK_FALSE(Modules::below(300)[300]);
    CHECK(Modules(7) == Modules());
}
