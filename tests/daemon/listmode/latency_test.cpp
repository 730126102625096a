// The histogram of latencies compared with exact quantiles, and the arrivals that the writer measures.
#include "daemon/listmode/latency.hpp"

#include <atomic>
#include <cmath>
#include <random>

#include "daemon/listmode/writer.hpp"
#include "tests/daemon/listmode/support.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/faulty_disk.hpp"

using namespace petacq;
using namespace petacq::daemon;
using namespace petacq::test;

namespace {

constexpr std::int64_t ms = 1'000'000;
constexpr std::int64_t s = 1'000'000'000;

/// The value that the fraction q does not exceed.
std::int64_t exact(std::vector<std::int64_t> values, double q) {
    std::sort(values.begin(), values.end());
    const auto rank = static_cast<std::size_t>(std::ceil(q * static_cast<double>(values.size())));
    return values[std::max<std::size_t>(rank, 1) - 1];
}

std::int64_t steady_ns() {
    return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

}  // namespace

TEST_CASE("quantiles are exact to one part in 64, or half a microsecond") {
    const auto seed = GENERATE(1U, 2U, 3U);
    const auto scale = GENERATE(2e3, 1e5, 1e7, 3e9, 1e12);
    std::mt19937_64 random(seed);
    std::lognormal_distribution<double> spread(std::log(scale), 1.5);
    LatencyHistogram histogram;
    std::vector<std::int64_t> values;
    for (int i = 0; i < 20'000; ++i) {
        const auto value = static_cast<std::int64_t>(std::min(spread(random), 4e12));
        values.push_back(value);
        histogram.record(value);
    }
    CHECK(histogram.samples() == values.size());
    CHECK(histogram.max_ns() == *std::max_element(values.begin(), values.end()));
    for (const double q : {0.0, 0.01, 0.25, 0.5, 0.9, 0.99, 0.999, 1.0}) {
        const auto wanted = static_cast<double>(exact(values, q));
        INFO("scale " << scale << " q " << q);
        CHECK(std::abs(static_cast<double>(histogram.quantile_ns(q)) - wanted) <=
              std::max(500.0, wanted / 64));
    }
}

TEST_CASE("every bucket has its place") {
    // Across each change of bucket width, and one by one at the bottom.
    std::vector<std::uint64_t> us;
    for (std::uint64_t i = 0; i < 300; ++i)
        us.push_back(i);
    for (unsigned bit = 8; bit < 32; ++bit) {
        for (const std::int64_t off : {-1, 0, 1})
            us.push_back((std::uint64_t{1} << bit) + static_cast<std::uint64_t>(off));
    }
    for (const std::uint64_t value : us) {
        LatencyHistogram histogram;
        histogram.record(static_cast<std::int64_t>(value * 1000 + 500));
        histogram.record(10'000 * s);  // so that the largest value does not hide the bucket's
        const double off = std::abs(static_cast<double>(histogram.quantile_ns(0.5)) -
                                    static_cast<double>(value * 1000 + 500));
        INFO(value);
        CHECK(off <= std::max(500.0, static_cast<double>(value) * 1000 / 64));
    }
}

TEST_CASE("latencies out of range are counted at its ends") {
    LatencyHistogram histogram;
    CHECK(histogram.quantile_ns(0.5) == 0);
    histogram.record(-5 * s);
    CHECK(histogram.quantile_ns(0.5) == 0);
    histogram.record(INT64_MAX);
    CHECK(histogram.samples() == 2);
    CHECK(histogram.quantile_ns(1) == INT64_MAX);
}

TEST_CASE("the last minute, and nothing older") {
    RecentLatency recent;
    CHECK(recent.summary(0).samples == 0);
    recent.record(100 * ms, 10 * s);
    recent.record(2 * ms, 20 * s);
    CHECK(recent.summary(20 * s).samples == 2);
    CHECK(recent.summary(20 * s).max_ms == Approx(100));
    recent.record(4 * ms, 45 * s);  // in the second half
    const LatencySummary both = recent.summary(45 * s);
    CHECK(both.samples == 3);
    CHECK(both.p50_ms == Approx(4).epsilon(0.02));
    CHECK(both.p99_ms == Approx(100).epsilon(0.02));
    // The half with the 100 ms ended more than half a minute ago.
    CHECK(recent.summary(71 * s).samples == 1);
    CHECK(recent.summary(71 * s).max_ms == Approx(4));
    recent.record(1 * ms, 72 * s);
    CHECK(recent.summary(72 * s).samples == 2);
    CHECK(recent.summary(72 * s).max_ms == Approx(4));
    CHECK(recent.summary(200 * s).samples == 0);
    recent.record(7 * ms, 300 * s);
    CHECK(recent.summary(300 * s).samples == 1);
    CHECK(recent.summary(300 * s).max_ms == Approx(7));
}

TEST_CASE("the writer measures latency once the records are written") {
    const TemporaryDirectory directory;
    ListModeOptions options;
    options.block_bytes = 4096;
    options.queue_blocks = 4;
    options.sync_interval_ms = 60'000;  // only full blocks leave
    ListModeWriter writer(directory / "f.plm", options);
    CHECK(writer.latency().samples == 0);

    // Everything is written already.
    const std::vector<std::int64_t> arrived{steady_ns() - 3 * s};
    writer.mark(arrived);
    REQUIRE(writer.latency().samples == 1);
    CHECK(writer.latency().max_ms >= 3000);
    CHECK(writer.latency().max_ms < 60'000);

    writer.append(pairs(10));
    const std::vector<std::int64_t> two{steady_ns() - 10 * s, steady_ns() - 5 * s};
    writer.mark(two);
    CHECK(writer.latency().samples == 1);  // the block is not full
    writer.append(pairs(200, 10));
    CHECK(eventually([&] { return writer.latency().samples == 3; }));
    CHECK(writer.latency().p50_ms >= 4900);
    CHECK(writer.latency().max_ms >= 10'000);
    CHECK(writer.counts().calls >= 1);
    CHECK_FALSE(writer.counts().in_call);
    writer.finish();
    CHECK(writer.latency().samples == 3);
}

TEST_CASE("marks beyond the bound, and those of records that cannot be written, are not counted") {
    const TemporaryDirectory directory;
    ListModeOptions options;
    options.block_bytes = 4096;
    options.queue_blocks = 4;
    options.sync_interval_ms = 60'000;
    std::atomic<bool> fails = false;
    FaultyDisk disk;
    disk->write = [&](int file, const iovec* pieces, int count) {
        if (!fails) return ::writev(file, pieces, count);
        errno = EIO;
        return ssize_t{-1};
    };
    ListModeWriter writer(directory / "f.plm", options);
    writer.append(pairs(1));
    const std::vector<std::int64_t> many(ListModeWriter::max_marks + 100, steady_ns());
    writer.mark(many);
    writer.append(pairs(126, 1));  // the block is full
    CHECK(eventually([&] { return writer.latency().samples == ListModeWriter::max_marks; }));

    CHECK(eventually([&] { return writer.counts().queue_blocks == 0; }));
    fails = true;
    writer.append(pairs(1, 200));
    writer.mark(many);
    writer.append(pairs(300, 201));
    CHECK(eventually([&] { return !writer.failure().empty(); }));
    writer.mark(many);
    writer.finish();
    CHECK(writer.latency().samples == ListModeWriter::max_marks);
}
