// A pipeline that fails at each possible call, and a disk that fails: runs end as failed, ledgers close,
// batches come back, and nobody uses the pipeline again.
#include "tests/daemon/acquisition/acquisition_stand.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using namespace petacq::daemon;
using namespace petacq::test;

namespace {

constexpr const char* failure = "pipeline: lost the device";

/// All runs have ended, those that the failure ended as failed.
void check_after_failure(AcquisitionStand& stand) {
    REQUIRE(stand.script.failed);
    CHECK_FALSE(stand.script.used_after_failure);
    CHECK(stand.started == stand.runs);
    REQUIRE(stand.finished.size() == static_cast<std::size_t>(stand.runs));
    for (const FinishedRun& run : stand.finished)
        CHECK(run.end.failed == (run.end.reason == failure));
    stand.check_closed();
    CHECK(stand.pool.free_count() == stand.pool.count());
    const AcquisitionProgress& progress = stand.acquisition->progress();
    CHECK(progress.submitted.value() == progress.collected.value());
}

}  // namespace

TEST_CASE("a pipeline that fails at any call ends the run in progress") {
    const std::string call = GENERATE("submit", "collect", "histograms", "reset");
    const int at = GENERATE(1, 2, 3, 4, 7);
    const bool ready = GENERATE(true, false);
    CAPTURE(call, at, ready);
    AcquisitionStand stand(failing_at(call, at, ready));
    if (call == "histograms" && at == 1) {
        CHECK_THROWS_WITH(stand.make(), failure);
        return;
    }
    stand.make();
    // Runs after one another: the failure strikes while one starts, is in progress, or ends.
    std::uint64_t time = 1000 * ms;
    while (!stand.script.failed && stand.runs < 10) {
        stand.begin();
        stand.stream(time, time + 7 * ms);
        stand.end();
        stand.silence();
        time += 1000 * ms;
    }
    stand.turns(2);
    check_after_failure(stand);
    CHECK(stand.finished.back().end.failed);

    // Another run ends as soon as it has started.
    stand.begin();
    CHECK(stand.finished.size() == static_cast<std::size_t>(stand.runs));
    CHECK(stand.finished.back().end.reason == failure);
    stand.stream(time, time + 7 * ms);
    stand.turns(1);
    check_after_failure(stand);
}

TEST_CASE("a pipeline that fails while a run waits ends it") {
    const std::string call = GENERATE("submit", "collect");
    CAPTURE(call);
    AcquisitionStand stand(failing_at(call, 4, false));
    stand.make();
    stand.begin({1'000'000 * ms, {}, {}});
    CHECK(stand.started == 0);
    stand.stream(1000 * ms, 1020 * ms);
    CHECK(stand.finished.size() == 1);
    CHECK(stand.finished.back().end.failed);
    CHECK(stand.finished.back().end.covered.start == 1'000'000 * ms);
    check_after_failure(stand);
}

TEST_CASE("a pipeline that fails between runs is seen in the snapshot") {
    AcquisitionStand stand(failing_at("collect", 2));
    const Acquisition& acquisition = stand.make();
    CHECK(acquisition.snapshot()->failure.empty());
    stand.stream(1000 * ms, 1020 * ms);
    CHECK(eventually([&] {
        stand.turns(1);
        return acquisition.snapshot()->failure == failure;
    }));
    check_after_failure(stand);
    CHECK(acquisition.snapshot()->total.open_identities().empty());
}

TEST_CASE("too many pending singles end the run as failed") {
    PipelineScript script;
    script.decides = false;
    AcquisitionStand stand(script);
    stand.options.max_pending_singles = 1000;
    stand.make();
    stand.begin();
    // The watermark cannot pass the reference: a single source cannot be given up.
    for (std::uint64_t time = 1000 * ms; stand.finished.empty() && time < 2000 * ms; time += ms)
        stand.send(time);
    REQUIRE(stand.finished.size() == 1);
    CHECK(stand.finished[0].end.failed);
    CHECK(stand.finished[0].end.reason.find("max_pending_singles") != std::string::npos);
    stand.check_closed();
}

TEST_CASE("a second that cannot be measured ends the run as failed") {
    AcquisitionStand stand;
    Acquisition& acquisition = stand.make();
    acquisition.on_second([&] {
        if (acquisition.snapshot()->run) throw std::runtime_error("no memory");
    });
    stand.stream(1000 * ms, 1500 * ms);
    stand.begin();
    for (std::uint64_t time = 1500 * ms; stand.finished.empty() && time < 20'000 * ms; time += ms)
        stand.send(time);
    REQUIRE(stand.finished.size() == 1);
    CHECK(stand.finished[0].end.failed);
    CHECK(stand.finished[0].end.reason == "pipeline: a second could not be measured: no memory");
    CHECK(acquisition.snapshot()->failure == stand.finished[0].end.reason);
    stand.check_closed();
}

TEST_CASE("the end of the daemon does not hide a failure") {
    AcquisitionStand stand(failing_at("histograms", 3));
    Acquisition& acquisition = stand.make();
    stand.begin();
    stand.stream(1000 * ms, 1003 * ms);
    acquisition.start();
    acquisition.stop();
    check_after_failure(stand);
    CHECK(stand.finished[0].end.reason == failure);
}

TEST_CASE("a live run whose start detector time does not reach fails, and the next one starts") {
    AcquisitionStand stand;
    stand.options.start_timeout = std::chrono::milliseconds(0);
    const Acquisition& acquisition = stand.make();
    stand.stream(1000 * ms, 1020 * ms);
    const std::uint64_t watermark = acquisition.snapshot()->watermark;
    const nlohmann::json without_capture = *stand.configuration->document;
    nlohmann::json with_capture = without_capture;
    with_capture["listmode"]["write_raw"] = true;  // such a run starts past all that has arrived
    stand.configure(with_capture);
    stand.begin();
    stand.turns(1);
    CHECK(stand.started == 0);
    REQUIRE(stand.finished.size() == 1);
    CHECK(stand.finished[0].end.failed);
    CHECK(stand.finished[0].end.reason.starts_with("the run could not start: "));
    CHECK(stand.finished[0].end.covered.start == stand.finished[0].end.covered.end);
    CHECK(stand.finished[0].end.covered.start < 2000 * ms);  // no frame became late for it
    CHECK(watermark < 2000 * ms);
    stand.check_closed();
    stand.configure(without_capture);
    stand.begin();
    CHECK(stand.started == 1);
}

TEST_CASE("a live run waits for the start that is asked for, however long") {
    AcquisitionStand stand;
    stand.options.start_timeout = std::chrono::milliseconds(0);
    stand.make();
    stand.stream(1000 * ms, 1020 * ms);
    stand.begin({2000 * ms, {}, {}});
    stand.turns(3);
    CHECK(stand.started == 0);
    CHECK(stand.finished.empty());
    stand.stream(1020 * ms, 2100 * ms);
    CHECK(stand.started == 1);
}
