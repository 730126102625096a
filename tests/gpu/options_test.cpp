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
        const auto refuses_gammas = [&](const char* what, auto change) {
            refuses(what, [&](Case& c) {
                c.options.energy = {true, 350, 650};
                c.options.rules.gammas = {700, 1400, 10, 20, petacq::gpu::GammaPolicy::all, 1000};
                change(c.options, *c.options.rules.gammas);
            });
        };
        using petacq::gpu::GammaRules;
        using petacq::gpu::PipelineOptions;
        refuses_gammas("a gamma window without an energy window",
                       [](PipelineOptions& o, GammaRules&) { o.energy.filter = false; });
        refuses_gammas("an energy in both windows", [](PipelineOptions&, GammaRules& g) { g.lower = 650; });
        refuses_gammas("a gamma window upside down", [](PipelineOptions&, GammaRules& g) { g.upper = 699; });
        refuses_gammas("gammas too long before a pair",
                       [](PipelineOptions&, GammaRules& g) { g.before = 1ULL << 31; });
        refuses_gammas("delayed gammas inside the window of the others",
                       [](PipelineOptions&, GammaRules& g) { g.delay = 30; });
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
