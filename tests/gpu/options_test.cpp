// Refused options.
#include <cstdlib>

#include "tests/gpu/harness.hpp"
#include "tests/support/catch.hpp"

namespace {

using namespace petacq::test;

// A small plain case.
Case small_case() {
    Case c = make_case(Family::poisson_1, 4, 100);
    c.options.threads = 1;
    return c;
}

}  // namespace

TEST_CASE("options: invalid options are refused") {
    const Case good = small_case();
    for (const Backend& backend : backends()) {
        INFO(backend.name);
        CHECK_NOTHROW(backend.make(good.options, good.setup.calibration));
        auto refuses = [&](const char* what, auto change) {
            INFO(what);
            Case c = small_case();
            change(c);
            CHECK_THROWS_AS(backend.make(c.options, c.setup.calibration), std::invalid_argument);
        };
        refuses("a delay above 2^62", [](Case& c) { c.options.rules.delay = (1ULL << 62) + 1; });
        refuses("shifted groups whose delay is not longer than the window", [](Case& c) {
            c.options.rules.delayeds = petacq::gpu::DelayedRule::shifted_group;
            c.options.rules.delay = c.options.rules.window;
        });
        refuses("spectra of singles", [](Case& c) {
            c.options.spectra = true;
            c.options.input = petacq::gpu::Input::singles;
        });
        if (backend.name == "host") {
            refuses("no thread", [](Case& c) { c.options.threads = 0; });
        }
    }
}

TEST_CASE("options: singles are returned only on request") {
    for (const Backend& backend : backends()) {
        Case c = small_case();
        c.options.emit_singles = false;
        const std::string difference = try_case(backend, c, {}, 1);
        INFO(backend.name << ": " << difference);
        CHECK(difference.empty());
    }
}

TEST_CASE("options: without a delay there are no delayeds") {
    for (const Backend& backend : backends()) {
        Case c = small_case();
        c.options.rules.delay.reset();
        const std::string difference = try_case(backend, c, {}, 1);
        INFO(backend.name << ": " << difference);
        CHECK(difference.empty());
    }
}

TEST_CASE("options: a pipeline describes itself and its memory") {
    for (const Backend& backend : backends()) {
        const Case c = small_case();
        const auto pipeline = backend.make(c.options, c.setup.calibration);
        CHECK_FALSE(pipeline->description().empty());
        CHECK(pipeline->memory_bytes() > 0);
        CHECK(pipeline->depth() >= 1);
    }
}
