// Times of the command line in ns and s.
#include "tools/petlm/resort/search/settings.hpp"

#include <nlohmann/json.hpp>

#include "tests/support/catch.hpp"
#include "tools/petlm/base/status.hpp"

namespace petacq::petlm {

namespace {

ResortOptions options_of_a_run() {
    ResortOptions options;
    options.input.runs = {"run"};
    return options;
}

}  // namespace

TEST_CASE("resort: windows and intervals become ticks of the run's scanner") {
    const nlohmann::json run = {{"scanner", {{"tick_ps", 12.5}}}};
    ResortOptions options = options_of_a_run();
    options.window_ns = "4.01";                        // 320.8 ticks
    options.delay_ns = "100.01";                       // 8000.8
    options.input.in_seconds.from = "1.000000000001";  // 80,000,000,000.08
    options.input.in_seconds.to = "2";
    const ResortOptions found = in_ticks(options, run);
    CHECK(found.window_ticks == 320U);
    CHECK(found.delay_ticks == 8001U);
    CHECK(found.input.from == 80'000'000'001);
    CHECK(found.input.to == 160'000'000'000);

    const ResortOptions none = in_ticks(options_of_a_run(), nlohmann::json::object());
    CHECK_FALSE(none.window_ticks);
    CHECK(none.input.to == UINT64_MAX);
}

TEST_CASE("resort: windows that are too long, and scanners without a tick, are refused") {
    const nlohmann::json run = {{"scanner", {{"tick_ps", 10}}}};
    ResortOptions options = options_of_a_run();
    options.window_ns = "1e9";
    CHECK_THROWS_AS(in_ticks(options, run), UsageError);
    options.window_ns = "nan";
    CHECK_THROWS_AS(in_ticks(options, run), UsageError);
    options.window_ns = "4";
    CHECK_THROWS_AS(in_ticks(options, {{"scanner", nlohmann::json::object()}}), BadInput);
}

}  // namespace petacq::petlm
