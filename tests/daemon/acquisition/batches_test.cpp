// The way of batches from and to the pool.
#include <vector>

#include "daemon/acquisition/batch_exchange.hpp"
#include "daemon/run/capture.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace petacq;
using namespace petacq::daemon;
using namespace petacq::test;
using namespace std::chrono_literals;

namespace {

struct Stand {
    net::BatchPool pool{8, 4096, net::make_host_memory({false, false})};
    net::BatchQueue filled{8, 1, 0};
    BatchExchange batches{pool, filled};

    net::Batch* batch(std::size_t datagrams) {
        net::Batch* const batch = pool.take();
        batch->datagrams.resize(datagrams);
        return batch;
    }
};

}  // namespace

TEST_CASE("a filled batch is taken, and goes back to the pool") {
    Stand stand;
    CHECK(stand.batches.wait(0us) == nullptr);
    CHECK(stand.batches.free_low_water() == 8);
    net::Batch* const batch = stand.batch(1);
    stand.filled.enqueue(batch);
    CHECK(stand.batches.wait(0us) == batch);
    std::vector<net::Batch*> done{batch};
    stand.batches.give_back(done);
    CHECK(done.empty());
    CHECK(stand.pool.free_count() == 8);
    CHECK(stand.batches.free_low_water() == 7);
    stand.batches.restart_low_water();
    CHECK(stand.batches.free_low_water() == 8);
}

TEST_CASE("a capture gets what comes back, and of the batch being read the part that has been") {
    const TemporaryDirectory directory;
    Stand stand;
    {
        Capture capture(directory / "raw.pcap", net::Framing::sequenced, stand.pool, 4, 0);
        std::vector<net::Batch*> before{stand.batch(100)};
        stand.batches.give_back(before);
        stand.batches.start_capture(&capture);
        std::vector<net::Batch*> during{stand.batch(3), stand.batch(2)};
        stand.batches.give_back(during);
        net::Batch* const reading = stand.batch(10);
        stand.batches.reading(*reading, 4);
        stand.batches.stop_capture();
        stand.batches.read_completely();
        std::vector<net::Batch*> after{reading};
        stand.batches.give_back(after);
        capture.finish();
        CHECK(capture.counts().offered == 9);
    }
    CHECK(stand.pool.free_count() == 8);
}

TEST_CASE("a batch that has been read completely is no part of what a capture lacks") {
    const TemporaryDirectory directory;
    Stand stand;
    Capture capture(directory / "raw.pcap", net::Framing::sequenced, stand.pool, 4, 0);
    stand.batches.start_capture(&capture);
    net::Batch* const batch = stand.batch(10);
    stand.batches.reading(*batch, 10);
    stand.batches.read_completely();
    stand.batches.stop_capture();
    CHECK(capture.counts().offered == 0);
    stand.pool.put(batch);
}
