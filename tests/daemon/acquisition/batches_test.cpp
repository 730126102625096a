// The way of batches from and to the pool.
#include <vector>

#include "daemon/acquisition/batch_exchange.hpp"
#include "daemon/run/capture.hpp"
#include "net/wire.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace petacq;
using namespace petacq::daemon;
using namespace petacq::test;
using namespace std::chrono_literals;

namespace {

struct ExchangeStand {
    net::BatchPool pool{8, 32'768, net::make_host_memory({false, false})};
    net::BatchQueue filled{1, 8};
    BatchExchange batches{pool, filled};

    /// A batch in the queue.
    net::Batch* send(std::size_t datagrams) {
        net::Batch* const batch = pool.take();
        net::Datagram heartbeat;
        heartbeat.bytes = net::header_bytes;
        batch->datagrams.assign(datagrams, heartbeat);
        filled.lane(0).finish(*batch);
        return batch;
    }
    /// Takes a piece and reads this many of its datagrams.
    void read(std::size_t datagrams) {
        REQUIRE(batches.take());
        for (std::size_t i = 0; i < datagrams; ++i)
            batches.reading(1);
    }
};

}  // namespace

TEST_CASE("a filled batch is taken, and goes back to the pool") {
    ExchangeStand stand;
    CHECK_FALSE(stand.batches.take(0us));
    CHECK(stand.batches.free_low_water() == 8);
    net::Batch* const batch = stand.send(1);
    const auto piece = stand.batches.take(0us);
    REQUIRE(piece);
    CHECK(piece->batch == batch);
    CHECK(piece->last);
    stand.batches.read_completely();
    std::vector<net::Batch*> done{batch};
    stand.batches.give_back(done);
    CHECK(done.empty());
    CHECK(stand.pool.free_count() == 8);
    CHECK(stand.batches.free_low_water() == 7);
    stand.batches.restart_low_water();
    CHECK(stand.batches.free_low_water() == 8);
}

TEST_CASE("a capture gets what has been read, up to the datagram at which it ends") {
    const TemporaryDirectory directory;
    ExchangeStand stand;
    std::vector<net::Batch*> batches;
    {
        Capture capture(directory / "raw.pcap", net::Framing::sequenced, net::FrameVersion::one, stand.pool,
                        4, 0, std::chrono::seconds(1));
        const auto read = [&](std::size_t datagrams, std::size_t of) {
            batches.push_back(stand.send(of));
            stand.read(datagrams);
        };
        read(100, 100);
        stand.batches.read_completely();
        stand.batches.start_capture(&capture);
        read(3, 3);
        stand.batches.read_completely();
        read(4, 10);
        stand.batches.stop_capture();
        stand.batches.read_completely();
        read(5, 5);
        stand.batches.read_completely();
        stand.batches.give_back(batches);
        capture.finish();
        CHECK(capture.counts().offered == 7);
        CHECK(capture.counts().written == 7);
    }
    CHECK(stand.pool.free_count() == 8);
}
