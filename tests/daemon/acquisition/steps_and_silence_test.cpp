// All boards step together, or some of them are silent for a while: no run ends, and what comes after is in
// time.
#include <cstring>

#include "tests/daemon/acquisition/acquisition_stand.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using namespace petacq::daemon;
using namespace petacq::test;

namespace {

constexpr std::uint64_t powered_on = 7'200'000 * ms;

/// Boards that send 100 frames in each millisecond, `ahead` of where their clocks began.
struct Boards : AcquisitionStand {
    explicit Boards(std::uint16_t count, std::uint64_t memory = 1U << 20)
        : AcquisitionStand({}, 1024), boards(count) {
        tracker.jump_confirmations = 3;
        tracker.expected.clear();
        for (std::uint16_t id = 1; id <= boards; ++id)
            tracker.expected.push_back(id);
        options.slice_frames = 2'000;
        options.max_pending_singles = memory;
        between_ns = static_cast<std::int64_t>(ms / boards);
        script.on_span = [this](const gpu::FrameSpan& span, std::uint64_t watermark) {
            std::uint64_t time = 0;
            std::memcpy(&time, span.frames, sizeof time);
            const bool believed = span.time_low <= time && time + ms <= span.time_high;
            (believed && time >= watermark + offset ? in_time : rejected) += span.count;
        };
        make();
    }
    /// The first `silent` boards send nothing.
    void send_for(std::uint64_t milliseconds, std::uint16_t silent = 0) {
        for (std::uint64_t i = 0; i < milliseconds; ++i, at += ms) {
            if (silent > 0) host_ns += static_cast<std::int64_t>(ms) / boards * silent;
            for (std::uint16_t id = static_cast<std::uint16_t>(silent + 1); id <= boards; ++id)
                send(at, id);
        }
    }

    const std::uint16_t boards;
    std::uint64_t at = powered_on;
    std::uint64_t in_time = 0;
    std::uint64_t rejected = 0;
};

}  // namespace

TEST_CASE("all clocks step ahead together by any amount: the run goes on") {
    const std::uint64_t by =
        GENERATE(100U, 200U, 300U, 500U, 700U, 900U, 990U, 1'010U, 1'200U, 1'500U, 1'800U, 1'990U, 2'010U,
                 2'500U, 3'000U, 5'000U, 10'000U, 20'000U, 50'000U, 100'000U);
    const std::uint16_t boards = GENERATE(as<std::uint16_t>(), 1, 2, 3, 8);
    CAPTURE(by, boards);
    Boards stand(boards);
    stand.begin();
    stand.send_for(100);
    stand.at += by * ms;
    stand.send_for(200);
    stand.stop();
    CHECK(stand.rejected == 0);
    CHECK(stand.in_time == std::uint64_t{boards} * 300 * 100);
}

TEST_CASE("a board that steps ahead alone is refused, and costs the others nothing") {
    constexpr std::uint16_t boards = 8;
    const std::uint64_t datagrams = GENERATE(1U, 2U, 5U, 40U, 1'500U);
    CAPTURE(datagrams);
    Boards stand(boards);
    stand.begin();
    stand.send_for(100);
    for (std::uint64_t i = 0; i < 1'500; ++i, stand.at += ms)
        for (std::uint16_t id = 1; id <= boards; ++id)
            stand.send(id == boards && i < datagrams ? stand.at + 5'000 * ms : stand.at, id);
    stand.stop();
    CHECK(stand.rejected == datagrams * 100);
    CHECK(stand.in_time == (1'600 * boards - datagrams) * 100);
    CHECK(stand.acquisition->snapshot()->sources.sources[boards - 1].jumped_datagrams == datagrams);
    CHECK(stand.pool.free_count() == stand.pool.count());
}

TEST_CASE("any boards may be silent for any time, also where memory is short: what comes is in time") {
    constexpr std::uint16_t boards = 8;
    const std::uint16_t silent = GENERATE(as<std::uint16_t>(), 1, 3, 4, 5, 7);
    const std::uint64_t during = GENERATE(20U, 100U, 300U, 450U, 600U, 1'500U, 3'000U);
    const std::uint64_t memory = GENERATE(20'000U, 1U << 20);
    CAPTURE(silent, during, memory);
    Boards stand(boards, memory);
    stand.begin();
    stand.send_for(50);
    stand.send_for(during, silent);
    stand.send_for(100);
    stand.stop();
    CHECK(stand.rejected == 0);
    CHECK(stand.in_time == (150 * boards + during * (boards - silent)) * 100);
}

TEST_CASE("some or most boards may be silent for a hundred seconds") {
    constexpr std::uint16_t boards = 8;
    const std::uint16_t silent = GENERATE(as<std::uint16_t>(), 1, 4, 7);
    const std::uint64_t during = GENERATE(10'000U, 100'000U);
    CAPTURE(silent, during);
    Boards stand(boards, 20'000);
    stand.begin();
    stand.send_for(50);
    stand.send_for(during, silent);
    stand.send_for(100);
    stand.stop();
    CHECK(stand.rejected == 0);
    CHECK(stand.in_time == (150 * boards + during * (boards - silent)) * 100);
}
