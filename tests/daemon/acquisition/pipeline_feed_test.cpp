// The pipeline behind a feed: batches come back, and a failure at any call is final and never thrown.
#include "daemon/acquisition/pipeline_feed.hpp"

#include "tests/daemon/acquisition/scripted_pipeline.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using namespace petacq::daemon;
using namespace petacq::test;

namespace {

constexpr std::uint64_t max_pending = 1000;

struct FeedStand {
    PipelineScript script;
    net::BatchPool pool{16, 4096, net::make_host_memory({false, false})};
    net::BatchQueue filled{1, 16};
    BatchExchange batches{pool, filled};
    AcquisitionProgress progress;

    PipelineFeed feed() {
        return {std::make_unique<ScriptedPipeline>(script), max_pending, batches, progress};
    }
    /// A slice with this many frames and one batch.
    SliceContents slice(std::uint32_t frames) {
        SliceContents contents;
        net::Batch* const batch = pool.take();
        contents.batches.push_back(batch);
        if (frames != 0) contents.spans.push_back({batch->data, frames, 0, UINT64_MAX});
        contents.frames = frames;
        return contents;
    }
    bool submit(PipelineFeed& feed, std::uint32_t frames, const SliceEnd& end) {
        SliceContents contents = slice(frames);
        const bool taken = feed.submit(contents, end);
        CHECK(contents.spans.empty());
        CHECK(contents.batches.empty());
        CHECK(contents.frames == 0);
        return taken;
    }
};

}  // namespace

TEST_CASE("slices come out of a feed in order, and their batches go back then") {
    FeedStand stand;
    PipelineFeed feed = stand.feed();
    CHECK(feed.empty());
    CHECK(feed.collect(true) == nullptr);
    DatagramLedger row;
    row.accepted = 7;
    CHECK(stand.submit(feed, 10, {100, {}, {}}));
    CHECK(stand.submit(feed, 20, {200, 150, {}}));
    CHECK(stand.submit(feed, 30, {300, {}, row}));
    CHECK(feed.full());
    CHECK(feed.watermark() == 300);
    CHECK(feed.frames_in_flight() == 60);
    CHECK(stand.pool.free_count() == 13);
    REQUIRE(stand.script.slices.size() == 3);
    CHECK(stand.script.slices[1].close_at == 150);

    const CollectedSlice* slice = feed.collect(false);
    REQUIRE(slice != nullptr);
    CHECK(slice->result.frames.received == 10);
    CHECK(slice->end.watermark == 100);
    CHECK_FALSE(slice->end.row);
    CHECK_FALSE(feed.full());
    CHECK(feed.frames_in_flight() == 50);
    CHECK(stand.pool.free_count() == 14);
    CHECK(feed.collect(true)->result.frames.received == 20);
    slice = feed.collect(true);
    REQUIRE(slice != nullptr);
    CHECK(slice->end.row == row);
    CHECK(feed.empty());
    CHECK(feed.frames_in_flight() == 0);
    CHECK(stand.pool.free_count() == 16);
    CHECK(stand.progress.submitted.value() == 3);
    CHECK(stand.progress.collected.value() == 3);
    CHECK_FALSE(feed.failed());
}

TEST_CASE("a feed does not wait for a slice that is not ready, unless it is told to") {
    FeedStand stand;
    stand.script.ready = false;
    PipelineFeed feed = stand.feed();
    stand.submit(feed, 1, {1, {}, {}});
    CHECK(feed.collect(false) == nullptr);
    CHECK_FALSE(feed.empty());
    CHECK(feed.collect(true) != nullptr);
    CHECK(feed.empty());
}

TEST_CASE("pending singles are known until a reset, their high water since it was restarted") {
    FeedStand stand;
    stand.script.decides = false;
    PipelineFeed feed = stand.feed();
    stand.submit(feed, 40, {100, {}, {}});
    CHECK(feed.pending() == 0);  // known with the result
    feed.collect(true);
    CHECK(feed.pending() == 40);
    CHECK(feed.latest_pending_time() == 100);
    stand.submit(feed, 1, {200, 200, {}});
    feed.collect(true);
    CHECK(feed.pending() == 0);
    CHECK(feed.pending_high_water() == 40);
    feed.restart_high_water();
    CHECK(feed.pending_high_water() == 0);

    stand.submit(feed, 5, {300, {}, {}});
    feed.collect(true);
    CHECK(feed.reset());
    CHECK(stand.script.resets == 1);
    CHECK(feed.pending() == 0);
    CHECK(feed.latest_pending_time() == 0);
    CHECK(feed.watermark() == 0);
    CHECK(stand.submit(feed, 1, {10, {}, {}}));  // an earlier time than before
}

TEST_CASE("a pipeline that fails at any call is not called again, and its batches are back") {
    const std::string call = GENERATE("submit", "collect", "histograms", "reset");
    const int at = GENERATE(1, 2, 3);
    CAPTURE(call, at);
    FeedStand stand;
    stand.script.failing_call = call;
    stand.script.fail_at = at;
    stand.script.ready = false;
    PipelineFeed feed = stand.feed();
    gpu::SinglesHistograms histograms;
    for (int i = 1; i <= 4 && !feed.failed(); ++i) {
        const auto watermark = static_cast<std::uint64_t>(i) * 100;
        CHECK(stand.submit(feed, 10, {watermark, {}, {}}));
        stand.submit(feed, 10, {watermark + 1, {}, {}});
        if (call != "submit") {
            feed.histograms(histograms);
            while (feed.collect(true) != nullptr) {
            }
            feed.reset();
        } else if (!feed.failed()) {
            feed.collect(true);
        }
    }
    CHECK(feed.failed());
    CHECK(feed.failure() == "pipeline: lost the device");
    CHECK(feed.empty());
    CHECK(stand.pool.free_count() == 16);
    CHECK(stand.progress.submitted.value() == stand.progress.collected.value());

    const std::uint64_t swallowed = feed.frames_in_flight();
    const std::uint64_t watermark = feed.watermark();
    const std::uint64_t submitted = stand.progress.submitted.value();
    CHECK_FALSE(stand.submit(feed, 10, {watermark + 1000, {}, {}}));
    CHECK(feed.frames_in_flight() == swallowed + 10);
    CHECK(feed.watermark() == watermark);
    CHECK(feed.collect(true) == nullptr);
    CHECK_FALSE(feed.histograms(histograms));
    CHECK_FALSE(feed.reset());
    CHECK(stand.pool.free_count() == 16);
    CHECK(stand.progress.submitted.value() == submitted);
    CHECK_FALSE(stand.script.used_after_failure);
}

TEST_CASE("half a result of a pipeline that fails counts for nothing") {
    FeedStand stand;
    stand.script.decides = false;
    stand.script.failing_call = "collect";
    stand.script.fail_at = 2;
    PipelineFeed feed = stand.feed();
    stand.submit(feed, 40, {100, {}, {}});
    stand.submit(feed, 30, {200, {}, {}});
    CHECK(feed.collect(true) != nullptr);
    CHECK(feed.collect(true) == nullptr);
    CHECK(feed.failed());
    CHECK(feed.pending() == 40);
    CHECK(feed.frames_in_flight() == 30);
}

TEST_CASE("too many pending singles are a failure, after the result that shows them") {
    FeedStand stand;
    stand.script.decides = false;
    PipelineFeed feed = stand.feed();
    stand.submit(feed, max_pending, {100, {}, {}});
    stand.submit(feed, 1, {200, {}, {}});
    stand.submit(feed, 1, {300, {}, {}});
    CHECK(feed.collect(true) != nullptr);
    CHECK_FALSE(feed.failed());
    const CollectedSlice* const slice = feed.collect(true);
    REQUIRE(slice != nullptr);
    CHECK(slice->result.pending == max_pending + 1);
    CHECK(feed.failed());
    CHECK(feed.failure().find("1001 singles") != std::string::npos);
    CHECK(feed.collect(true) == nullptr);
    CHECK(stand.pool.free_count() == 16);
}

TEST_CASE("a feed reports its first failure") {
    FeedStand stand;
    PipelineFeed feed = stand.feed();
    stand.submit(feed, 10, {100, {}, {}});
    feed.fail("no memory");
    feed.fail("another reason");
    CHECK(feed.failure() == "pipeline: no memory");
    CHECK(stand.pool.free_count() == 16);
}
