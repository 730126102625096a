// A replay gives the same slices, and so the same ledger, at any speed.
#include "tests/daemon/acquisition/acquisition_stand.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using namespace petacq::daemon;
using namespace petacq::test;

namespace {

/// Where each slice ends, and how many frames it holds.
std::string slices_of(std::size_t batches, bool fast) {
    PipelineScript script;
    script.ready = fast;
    AcquisitionStand stand(script, batches);
    stand.options.replay = true;
    stand.options.slice_frames = 1'000'000;
    stand.options.slice_interval = std::chrono::hours(1);
    stand.make();
    stand.begin();
    for (std::uint64_t i = 0; i < 60; ++i) {
        stand.send((1000 + i) * ms);
        for (std::uint64_t rejected = 0; rejected < i % 4; ++rejected)
            stand.send_rejected();
    }
    stand.filled.lane(0).close();
    stand.turns(2);
    REQUIRE(stand.finished.size() == 1);
    CHECK(stand.finished[0].end.ledger.frames.received == 6000);
    stand.check_closed();
    std::string slices;
    for (const PipelineScript::Slice& slice : stand.script.slices)
        slices += std::to_string(slice.frames) + " below " + std::to_string(slice.watermark) + "\n";
    return slices;
}

}  // namespace

TEST_CASE("the slices of a replay do not depend on the speed of the pipeline, however small the pool") {
    const std::size_t batches = GENERATE(2U, 8U, 16U, 64U);
    CAPTURE(batches);
    CHECK(slices_of(batches, true) == slices_of(batches, false));
}
