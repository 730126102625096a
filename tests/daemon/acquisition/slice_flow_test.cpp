// From datagrams to results: watermark, memory bound, ledger, and where the received data end.
#include "daemon/acquisition/slice_flow.hpp"

#include <deque>
#include <vector>

#include "net/receive/receiver.hpp"
#include "tests/daemon/acquisition/scripted_pipeline.hpp"
#include "tests/daemon/acquisition/times.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using namespace petacq::daemon;
using namespace petacq::test;

namespace {

constexpr std::int64_t timeout_ns = 500'000'000;

struct FlowStand {
    FlowStand() {
        options.slice_frames = 1000;
        options.max_pending_singles = 500;
        options.max_disorder = tracker.max_disorder = disorder;
        options.max_offset = tracker.max_offset = offset;
        tracker.max_lag = 1000 * ms;
        tracker.max_jump = 2000 * ms;
        tracker.jump_confirmations = 1;
        tracker.expected = {1};
        tracker.source_timeout_ns = timeout_ns;
    }

    SliceFlow flow() {
        feed = &feeds.emplace_back(std::make_unique<ScriptedPipeline>(script), options.max_undecided(),
                                   batches, progress);
        return {
            options,     tracker,
            *feed,       batches,
            {&counters}, [this](const CollectedSlice& slice) { collected.push_back(slice.end.watermark); }};
    }
    /// A batch with one datagram of 100 frames over 1 ms, which arrives at the time of its last frame.
    std::uint64_t send(SliceFlow& flow, std::uint16_t source, std::uint64_t time) {
        net::Batch* const batch = pool.take();
        net::Datagram d;
        d.sequence = sequence[source]++;
        d.source = source;
        d.first_time = time;
        d.last_time = time + ms;
        d.frames = d.timed_frames = 100;
        batch->datagrams.push_back(d);
        counters.datagrams_delivered.add();
        counters.datagrams_received.add();
        const auto last = flow.add(*batch, d, static_cast<std::int64_t>(d.last_time));
        flow.keep(batch);
        return last;
    }

    AcquisitionOptions options;
    TrackerOptions tracker;
    PipelineScript script;
    net::BatchPool pool{16, 4096, net::make_host_memory({false, false})};
    net::BatchQueue filled{1, 16};
    BatchExchange batches{pool, filled};
    net::ReceiverCounters counters;
    AcquisitionProgress progress;
    std::deque<PipelineFeed> feeds;
    PipelineFeed* feed = nullptr;  ///< of the latest flow
    std::vector<std::uint64_t> collected;
    std::map<std::uint16_t, std::uint64_t> sequence;
};

std::int64_t host(std::uint64_t time) {
    return static_cast<std::int64_t>(time);
}

}  // namespace

TEST_CASE("the watermark follows the slowest source and never goes back") {
    FlowStand stand;
    SliceFlow flow = stand.flow();
    CHECK_FALSE(flow.has_news(flow.next_watermark(0).ticks));
    CHECK(stand.send(flow, 1, 100 * ms) == 101 * ms);
    stand.send(flow, 2, 105 * ms);
    const auto next = flow.next_watermark(host(106 * ms));
    CHECK(next.ticks == 100 * ms - disorder - offset);  // the first frame of the latest datagram
    CHECK_FALSE(next.gives_up);
    CHECK(flow.has_news(next.ticks));
    CHECK(flow.submit({next.ticks, {}, {}}));
    flow.collect_all();
    CHECK(stand.collected == std::vector<std::uint64_t>{next.ticks});
    CHECK(stand.pool.free_count() == 16);
    CHECK(stand.feed->watermark() == next.ticks);
    CHECK_FALSE(flow.has_news(flow.next_watermark(host(106 * ms)).ticks));
    // A slice that was closed later holds the watermark there.
    flow.close_segment(200 * ms);
    CHECK(flow.next_watermark(host(106 * ms)).ticks == 200 * ms);
}

TEST_CASE("an idle pipeline takes many frames soon, and few after a quarter of the interval") {
    FlowStand stand;
    stand.options.slice_frames = 250 * AcquisitionOptions::few_frames;
    stand.options.max_pending_singles = stand.options.slice_frames;
    stand.options.slice_interval = std::chrono::milliseconds(20);
    SliceFlow flow = stand.flow();
    const std::int64_t start = host(100 * ms);
    const std::int64_t ms_ns = 1'000'000;
    flow.start_slice(start);
    CHECK_FALSE(flow.old(start + 5 * ms_ns));
    stand.send(flow, 1, 100 * ms);
    stand.send(flow, 1, 101 * ms);
    CHECK_FALSE(flow.has_many_frames());
    CHECK_FALSE(flow.old(start + 5 * ms_ns - 1));
    CHECK(flow.old(start + 5 * ms_ns));
    stand.send(flow, 1, 102 * ms);
    CHECK(flow.has_many_frames());
    CHECK_FALSE(flow.old(start + ms_ns / 2 - 1));
    CHECK(flow.old(start + ms_ns / 2));
    // A pipeline that has something to do is left alone.
    stand.script.ready = false;
    SliceFlow busy = stand.flow();
    busy.start_slice(start);
    stand.send(busy, 1, 100 * ms);
    CHECK(busy.submit({0, {}, {}}));
    for (std::uint64_t i = 1; i < 10; ++i)
        stand.send(busy, 1, (100 + i) * ms);
    CHECK_FALSE(busy.old(start + 20 * ms_ns - 1));
    CHECK(busy.old(start + 20 * ms_ns));
}

TEST_CASE("batches without frames go back at once, unless a slice in flight may need them") {
    FlowStand stand;
    stand.script.ready = false;
    SliceFlow flow = stand.flow();
    net::Datagram rejected;
    rejected.admitted = net::Admitted::malformed;
    net::Batch* batch = stand.pool.take();
    CHECK(flow.add(*batch, rejected, 0) == 0);
    flow.keep(batch);
    CHECK(stand.pool.free_count() == 16);
    stand.send(flow, 1, 100 * ms);
    flow.submit({1, {}, {}});
    batch = stand.pool.take();
    flow.keep(batch);
    CHECK(stand.pool.free_count() == 14);
    flow.submit({2, {}, {}});
    flow.collect_all();
    CHECK(stand.pool.free_count() == 16);
}

TEST_CASE("slow sources are given up when too many singles wait, never past the reference") {
    FlowStand stand;
    stand.script.decides = false;
    SliceFlow flow = stand.flow();
    stand.send(flow, 1, 100 * ms);
    for (std::uint64_t i = 0; i < 4; ++i)
        stand.send(flow, 2, (200 + i) * ms);
    const auto before = flow.next_watermark(host(204 * ms));
    CHECK_FALSE(before.gives_up);
    // Whether or not the pipeline has seen what waits.
    if (GENERATE(false, true)) flow.submit({before.ticks, {}, {}});
    for (std::uint64_t i = 4; i < 6; ++i)
        stand.send(flow, 2, (200 + i) * ms);
    // 700 frames wait, 200 too many.
    const auto after = flow.next_watermark(host(206 * ms));
    CHECK(after.gives_up);
    CHECK(after.ticks == flow.sources(host(206 * ms)).reference);
    CHECK(after.ticks > before.ticks);
}

TEST_CASE("a full pipeline is waited for") {
    FlowStand stand;
    stand.script.ready = false;
    stand.script.depth = 2;
    SliceFlow flow = stand.flow();
    stand.send(flow, 1, 100 * ms);
    for (std::uint64_t i = 1; i <= 5; ++i)
        CHECK(flow.submit({i, {}, {}}));
    CHECK(stand.collected == std::vector<std::uint64_t>{1, 2, 3});
    CHECK_FALSE(flow.collect());
    flow.collect_all();
    CHECK(stand.collected.size() == 5);
}

TEST_CASE("the received data end past the newest believed frame") {
    FlowStand stand;
    SliceFlow flow = stand.flow();
    CHECK(flow.end_of_received() == 0);
    stand.send(flow, 1, 100 * ms);
    CHECK(flow.data_begin_so_far() == 100 * ms - offset);
    CHECK(flow.end_of_received() == 101 * ms + offset + 1);
    stand.send(flow, 2, 100'000 * ms);  // an unknown sender to this time
    CHECK(flow.end_of_received() == 101 * ms + offset + 1);
    flow.close_segment(300 * ms);
    CHECK(flow.end_of_received() == 300 * ms);
}

TEST_CASE("frames wait in the slice until detector time has begun, and are judged then") {
    FlowStand stand;
    stand.tracker.expected.clear();
    stand.tracker.jump_confirmations = 3;
    SliceFlow flow = stand.flow();
    CHECK(stand.send(flow, 3, 7'000'000 * ms) == 0);
    for (std::uint64_t i = 0; i < 2; ++i) {
        CHECK(stand.send(flow, 1, (100 + i) * ms) == 0);
        CHECK(stand.send(flow, 2, (100 + i) * ms) == 0);
    }
    stand.send(flow, 1, 102 * ms);
    CHECK_FALSE(flow.time().established());
    CHECK(stand.send(flow, 2, 102 * ms) == 103 * ms);
    CHECK(flow.time().established());
    CHECK(flow.data_begin_so_far() == 100 * ms - offset);
    flow.submit({flow.next_watermark(host(103 * ms)).ticks, {}, {}});
    flow.collect_all();
    const auto& spans = stand.script.slices.back().spans;
    REQUIRE(spans.size() == 7);
    CHECK(spans[0].time_high < 7'000'000 * ms);
    for (std::size_t i = 1; i < spans.size(); ++i) {
        CHECK(spans[i].time_low <= 100 * ms);
        CHECK(spans[i].time_high >= 103 * ms);
    }
}

TEST_CASE("detector time begins with a source that is alone when no more frames can wait") {
    FlowStand stand;
    stand.options.slice_frames = 100;
    stand.tracker.expected = {1, 2};
    stand.script.decides = false;
    SliceFlow flow = stand.flow();
    for (std::uint64_t i = 0; i < 4; ++i) {
        CHECK_FALSE(flow.full());
        stand.send(flow, 1, (100 + i) * ms);
    }
    // A quarter of the pool: the frames go on, judged by the times of their source.
    CHECK(flow.full());
    flow.start_slice(host(104 * ms));
    CHECK_FALSE(flow.full());
    flow.submit({flow.next_watermark(host(104 * ms)).ticks, {}, {}});
    CHECK(stand.script.slices.back().spans.front().time_low == 0);
    CHECK(stand.script.slices.back().spans.front().time_high == 104 * ms + stand.tracker.max_jump);
    CHECK_FALSE(flow.time().established());
    // 400 singles wait in the pipeline, and 500 may.
    stand.send(flow, 1, 104 * ms);
    CHECK(flow.full());
    flow.start_slice(host(105 * ms));
    CHECK(flow.time().established());
}

TEST_CASE("detector time starts again after everything has been decided") {
    FlowStand stand;
    stand.script.decides = false;
    SliceFlow flow = stand.flow();
    stand.send(flow, 1, 100 * ms);
    flow.submit({flow.next_watermark(host(101 * ms)).ticks, {}, {}});
    stand.send(flow, 1, 101 * ms);
    CHECK(flow.restart_time(host(102 * ms)));
    CHECK(stand.script.resets == 1);
    CHECK(stand.script.slices.back().close_at == UINT64_MAX);
    CHECK(stand.script.slices.back().frames == 100);
    CHECK(stand.feed->watermark() == 0);
    CHECK_FALSE(flow.newest());
    CHECK(flow.total(Account::ReadingMode::one_moment).open_identities().empty());
    CHECK(flow.total(Account::ReadingMode::quick).singles.decided == 200);
}

TEST_CASE("the ledger closes at any moment, and when the pipeline fails") {
    const std::string call = GENERATE("submit", "collect", "reset");
    const int at = GENERATE(1, 2, 3);
    CAPTURE(call, at);
    FlowStand stand;
    stand.script.decides = false;
    stand.script.failing_call = call;
    stand.script.fail_at = at;
    SliceFlow flow = stand.flow();
    const auto closes = [&] {
        return flow.total(Account::ReadingMode::one_moment).open_identities().empty();
    };
    for (std::uint64_t i = 0; i < 5; ++i) {
        stand.send(flow, 1, (100 + i) * ms);
        CHECK(closes());
        const std::uint64_t watermark = flow.next_watermark(host((101 + i) * ms)).ticks;
        flow.submit({std::max(watermark, stand.feed->watermark()), {}, {}});
        CHECK(closes());
        if (i % 2 == 1 || call == "reset") {
            const bool restarted = flow.restart_time(host((101 + i) * ms));
            CHECK(restarted != stand.feed->failed());
            CHECK(closes());
        }
    }
    CHECK(stand.feed->failed() == (call != "reset" || at <= 5));
    flow.give_back_batches();
    CHECK(stand.pool.free_count() == 16);
    CHECK_FALSE(stand.script.used_after_failure);
}

TEST_CASE("the loss of a run is what was noticed in it, also when an earlier datagram arrives") {
    FlowStand stand;
    SliceFlow flow = stand.flow();
    const auto send = [&](std::uint64_t number) {
        stand.sequence[1] = number;
        stand.send(flow, 1, number * ms);
    };
    send(5);
    send(7);  // 6 is missing when the run starts
    flow.mark_sources();
    const Ledger at_start = flow.total(Account::ReadingMode::one_moment);
    CHECK(at_start.datagrams.lost == 1);
    send(9);
    send(6);
    const Ledger total = flow.total(Account::ReadingMode::one_moment);
    const Ledger run = total - at_start;
    CHECK(total.datagrams.lost == 1);
    CHECK(run.datagrams.lost == 1);
    CHECK(run.datagrams.recovered == 1);
    CHECK(run.datagrams.reordered == 1);
}
