// Datagrams of several receivers are taken in the order of their arrival, whatever the backlog.
#include "net/batch_queue.hpp"

#include <cstdint>
#include <random>
#include <thread>
#include <vector>

#include "tests/support/catch.hpp"

using namespace petacq::net;

namespace {

/// A receiver whose datagrams carry their lane and number.
class Feeder {
  public:
    Feeder(BatchPool& pool, BatchQueue& queue, std::uint16_t lane)
        : pool_(pool), lane_(queue.lane(lane)), source_(lane) {}

    void add(std::int64_t arrival_ns) {
        if (batch_ == nullptr) batch_ = pool_.take();
        REQUIRE(batch_ != nullptr);
        Datagram& d = batch_->datagrams.emplace_back(Datagram());
        d.source = source_;
        d.sequence = sent_++;
        d.arrival_ns = arrival_ns;
    }
    void publish() { lane_.publish(*batch_); }
    void finish() {
        lane_.finish(*batch_);
        batch_ = nullptr;
    }
    void advance(std::int64_t ns) { lane_.advance(ns); }
    void close() { lane_.close(); }
    [[nodiscard]] bool full() const {
        return batch_ != nullptr && batch_->datagrams.size() == batch_->max_datagrams;
    }
    [[nodiscard]] bool empty() const { return batch_ == nullptr; }

  private:
    BatchPool& pool_;
    BatchLane& lane_;
    const std::uint16_t source_;
    Batch* batch_ = nullptr;
    std::uint64_t sent_ = 0;
};

struct Stand {
    explicit Stand(std::size_t lanes, std::size_t batches = 8)
        : pool(batches, 4096, make_host_memory({false, false})), queue(lanes, batches) {
        for (std::size_t i = 0; i < lanes; ++i)
            feeders.emplace_back(pool, queue, static_cast<std::uint16_t>(i));
    }
    /// Arrival times of everything that can be taken now.
    std::vector<std::int64_t> take() {
        std::vector<std::int64_t> arrivals;
        while (const auto piece = queue.take()) {
            for (const Datagram& d : piece->datagrams)
                arrivals.push_back(d.arrival_ns);
            if (piece->last) pool.put(piece->batch);
        }
        return arrivals;
    }

    BatchPool pool;
    BatchQueue queue;
    std::vector<Feeder> feeders;
};

using Times = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("the datagrams of a batch can be taken before it is full") {
    Stand stand(1);
    Feeder& feeder = stand.feeders[0];
    CHECK(stand.take().empty());
    feeder.add(10);
    CHECK(stand.take().empty());  // not published
    feeder.publish();
    CHECK(stand.take() == Times{10});
    feeder.add(11);
    feeder.add(12);
    feeder.publish();
    CHECK(stand.take() == Times{11, 12});
    CHECK(stand.pool.free_count() == 7);
    feeder.finish();
    CHECK(stand.take().empty());
    CHECK(stand.pool.free_count() == 8);
    feeder.add(13);
    feeder.finish();
    CHECK(stand.take() == Times{13});
    CHECK(stand.pool.free_count() == 8);
}

TEST_CASE("a datagram waits until no lane can bring an older one") {
    Stand stand(2);
    Feeder& a = stand.feeders[0];
    Feeder& b = stand.feeders[1];
    a.add(100);
    a.add(200);
    a.finish();
    CHECK(stand.take().empty());
    b.advance(150);
    CHECK(stand.take() == Times{100});
    CHECK(stand.queue.taken_until_ns() == 150);
    b.add(160);
    b.add(300);
    b.publish();
    CHECK(stand.take() == Times{160, 200});
    a.advance(250);
    CHECK(stand.take().empty());
    CHECK(stand.queue.taken_until_ns() == 250);
    a.close();
    CHECK(stand.take() == Times{300});
    CHECK_FALSE(stand.queue.ended());
    b.finish();
    b.close();
    CHECK(stand.take().empty());
    CHECK(stand.queue.ended());
    CHECK(stand.pool.free_count() == 8);
}

TEST_CASE("a backlog of several lanes comes out in the order of arrival") {
    const std::uint64_t seed = GENERATE(1U, 2U, 3U);
    std::mt19937_64 random(seed);
    Stand stand(4, 64);
    Times sent;
    std::int64_t now = 0;
    for (int i = 0; i < 1500; ++i) {
        // One lane is much slower than the others, so one of its batches spans many of theirs.
        const std::size_t lane = random() % 32 == 0 ? 0 : 1 + random() % 3;
        Feeder& feeder = stand.feeders[lane];
        if (feeder.full()) feeder.finish();
        feeder.add(now += static_cast<std::int64_t>(random() % 1000));
        sent.push_back(now);
    }
    for (Feeder& feeder : stand.feeders) {
        if (!feeder.empty()) feeder.finish();
        feeder.close();
    }
    CHECK(stand.take() == sent);
    CHECK(stand.queue.ended());
    CHECK(stand.pool.free_count() == 64);
}

TEST_CASE("threads that fill lanes at their own pace lose, repeat and reorder nothing") {
    constexpr std::size_t lanes = 3;
    constexpr std::uint64_t each = 20'000;
    Stand stand(lanes, 16);
    std::atomic<std::int64_t> clock{1};
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < lanes; ++i) {
        threads.emplace_back([&, i] {
            std::mt19937_64 random(i);
            BatchLane& lane = stand.queue.lane(i);
            Batch* batch = nullptr;
            std::int64_t arrival = 0;
            for (std::uint64_t n = 0; n < each;) {
                while (batch == nullptr) {
                    // What follows gets a later time.
                    lane.advance(clock.load() - 1);
                    batch = stand.pool.take();
                }
                for (std::uint64_t k = random() % 5; k > 0 && n < each; --k) {
                    if (batch->datagrams.size() == batch->max_datagrams) break;
                    Datagram& d = batch->datagrams.emplace_back(Datagram());
                    d.source = static_cast<std::uint16_t>(i);
                    d.sequence = n++;
                    d.arrival_ns = arrival = clock.fetch_add(1);
                }
                if (batch->datagrams.size() == batch->max_datagrams ||
                    (n == each && !batch->datagrams.empty())) {
                    lane.finish(*batch);
                    batch = nullptr;
                } else {
                    lane.publish(*batch);
                }
                lane.advance(arrival);
            }
            if (batch != nullptr) stand.pool.put(batch);
            lane.close();
        });
    }
    std::uint64_t next[lanes] = {};
    std::int64_t latest = 0;
    bool ordered = true;
    bool complete = true;
    while (!stand.queue.ended()) {
        const auto piece = stand.queue.take(std::chrono::milliseconds(1));
        if (!piece) continue;
        for (const Datagram& d : piece->datagrams) {
            ordered = ordered && d.arrival_ns > latest;
            latest = d.arrival_ns;
            complete = complete && d.sequence == next[d.source]++;
        }
        if (piece->last) stand.pool.put(piece->batch);
    }
    for (std::thread& thread : threads)
        thread.join();
    CHECK(ordered);
    CHECK(complete);
    CHECK(next[0] + next[1] + next[2] == lanes * each);
    CHECK(stand.pool.free_count() == 16);
}
