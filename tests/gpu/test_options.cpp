// What is refused, and the words of the configuration.
#include <cstdlib>

#include "tests/catch.hpp"
#include "tests/gpu/harness.hpp"

namespace {

using namespace petacq::test;
using petacq::gpu::MultiplesPolicy;
using petacq::gpu::WindowMode;

// Seeds without fancies: a plain small case for trying options on.
Case plain_case() {
    Case c = make_case(Family::poisson_1, 4, 100);
    c.options.threads = 1;
    return c;
}

}  // namespace

TEST_CASE("options: names of modes and policies read back") {
    using petacq::gpu::multiples_policy_from_name;
    using petacq::gpu::name_of;
    using petacq::gpu::window_mode_from_name;
    CHECK(window_mode_from_name("single") == WindowMode::single);
    CHECK(window_mode_from_name("every") == WindowMode::every);
    CHECK_THROWS_AS(window_mode_from_name("Single"), std::invalid_argument);
    CHECK(multiples_policy_from_name("RemoveMultiples") == MultiplesPolicy::remove_multiples);
    CHECK(multiples_policy_from_name("TakeAllGoods") == MultiplesPolicy::take_all_goods);
    CHECK(multiples_policy_from_name("TakeWinnerOfGoods") == MultiplesPolicy::take_winner_of_goods);
    CHECK(multiples_policy_from_name("TakeIfOnlyOneGood") == MultiplesPolicy::take_if_only_one_good);
    CHECK(multiples_policy_from_name("TakeWinnerIfIsGood") == MultiplesPolicy::take_winner_if_is_good);
    CHECK(multiples_policy_from_name("TakeWinnerIfAllAreGoods") ==
          MultiplesPolicy::take_winner_if_all_are_goods);
    CHECK_THROWS_AS(multiples_policy_from_name("TakeNothing"), std::invalid_argument);
    CHECK_THROWS_AS(multiples_policy_from_name(""), std::invalid_argument);
    for (int i = 0; i < 6; ++i) {
        const auto policy = static_cast<MultiplesPolicy>(i);
        CHECK(multiples_policy_from_name(name_of(policy)) == policy);
    }
    CHECK(window_mode_from_name(name_of(WindowMode::every)) == WindowMode::every);
    CHECK(window_mode_from_name(name_of(WindowMode::single)) == WindowMode::single);
}

TEST_CASE("options: what cannot be is refused") {
    const Case good = plain_case();
    for (const Backend& backend : backends()) {
        INFO(backend.name);
        CHECK_NOTHROW(backend.make(good.options, good.setup.calibration));
        auto refuses = [&](const char* what, auto change) {
            INFO(what);
            Case c = plain_case();
            change(c);
            CHECK_THROWS_AS(backend.make(c.options, c.setup.calibration), std::invalid_argument);
        };
        refuses("a delay inside the window", [](Case& c) { c.options.rules.delay = c.options.rules.window; });
        if (backend.name == "host") {
            refuses("no thread", [](Case& c) { c.options.threads = 0; });
        }
    }
}

TEST_CASE("options: singles are given out only when asked for") {
    for (const Backend& backend : backends()) {
        Case c = plain_case();
        c.options.emit_singles = false;
        const std::string difference = try_case(backend, c, {}, 1);
        INFO(backend.name << ": " << difference);
        CHECK(difference.empty());
    }
}

TEST_CASE("options: without a delay there are no delayeds") {
    for (const Backend& backend : backends()) {
        Case c = plain_case();
        c.options.rules.delay.reset();
        const std::string difference = try_case(backend, c, {}, 1);
        INFO(backend.name << ": " << difference);
        CHECK(difference.empty());
    }
}

TEST_CASE("options: a pipeline tells what it is and what it holds") {
    for (const Backend& backend : backends()) {
        const Case c = plain_case();
        const auto pipeline = backend.make(c.options, c.setup.calibration);
        CHECK_FALSE(pipeline->description().empty());
        CHECK(pipeline->memory_bytes() > 0);
        CHECK(pipeline->depth() >= 1);
    }
}
