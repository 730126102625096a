// The raw capture on a disk that fills up or fails.
#include "daemon/run/capture.hpp"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <future>
#include <string>
#include <thread>

#include "daemon/space/disk_space.hpp"
#include "net/pcap/pcap_reader.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/faulty_disk.hpp"
#include "tests/support/files.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace petacq;

namespace {

constexpr std::size_t payload_bytes = 8192;
constexpr std::size_t datagrams_of_a_batch = 64;
constexpr std::chrono::milliseconds sync_interval{1};

void offer_one(daemon::Capture& capture, net::BatchPool& pool) {
    net::Batch* batch = nullptr;
    while ((batch = pool.take()) == nullptr)
        std::this_thread::yield();
    batch->used = payload_bytes;
    std::memset(batch->data, 0x5A, payload_bytes);
    batch->to = {0x7F000001, 9601};
    for (std::size_t i = 0; i < datagrams_of_a_batch; ++i) {
        net::Datagram d;
        d.bytes = payload_bytes;
        d.address = 0x0A000005;
        d.port = 40001;
        batch->datagrams.push_back(d);
    }
    capture.offer(*batch, batch->datagrams);
    pool.put(batch);
}

}  // namespace

TEST_CASE("a capture stops while there is room for the list-mode, and is whole up to there", "[capture]") {
    // In memory, where no other program writes or frees much.
    const std::filesystem::path memory = "/dev/shm";
    const auto space = daemon::disk_space(memory);
    constexpr std::uint64_t mib = 1U << 20;
    if (!space || space->free_bytes < 256 * mib) {
        WARN("skipped: /dev/shm has no room");
        return;
    }
    const test::TemporaryDirectory directory(memory);
    net::BatchPool pool(8, 65536, net::make_host_memory({false, false}));
    const auto file = directory.path() / "raw.pcap";
    daemon::CaptureCounts counts;
    {
        daemon::Capture capture(file, net::Framing::bare, net::FrameVersion::one, pool, 4,
                                space->free_bytes - 32 * mib, sync_interval);
        // Until it has ended, or far more has been written than there is room for.
        while (capture.counts().written * payload_bytes < 256 * mib && capture.failure().empty())
            offer_one(capture, pool);
        // Later datagrams are only counted.
        offer_one(capture, pool);
        capture.finish();
        counts = capture.counts();
        CHECK(capture.failure().find("health.min_disk_free_bytes") != std::string::npos);
        CHECK(capture.failure().find(file.string()) == 0);
    }
    CHECK(counts.offered == counts.written + counts.dropped);
    CHECK(counts.written > 0);
    CHECK(counts.dropped > 0);
    CHECK(counts.bytes == std::filesystem::file_size(file));
    CHECK(counts.bytes < 80 * mib);
    CHECK(pool.free_count() == pool.count());

    net::PcapReader reader(file.string(), {});
    net::CapturedDatagram d;
    while (reader.next(d))
        REQUIRE(d.payload.size() == payload_bytes);
    CHECK(reader.counts().datagrams == counts.written);
}

TEST_CASE("a capture whose disk fails is whole up to there", "[capture]") {
    const test::TemporaryDirectory directory;
    const auto file = directory / "raw.pcap";
    net::BatchPool pool(8, 65536, net::make_host_memory({false, false}));
    test::FaultyDisk disk;
    disk.take(2'000'000);  // three batches and a part of the fourth
    daemon::CaptureCounts counts;
    {
        daemon::Capture capture(file, net::Framing::bare, net::FrameVersion::one, pool, 4, 0, sync_interval);
        while (capture.failure().empty())
            offer_one(capture, pool);
        offer_one(capture, pool);
        capture.finish();
        counts = capture.counts();
        CHECK(capture.failure() == file.string() + ": write failed: No space left on device");
    }
    CHECK(counts.offered == counts.written + counts.dropped);
    CHECK(counts.written == 3 * datagrams_of_a_batch);
    CHECK(counts.bytes == std::filesystem::file_size(file));
    CHECK(pool.free_count() == pool.count());

    net::PcapReader reader(file.string(), {});
    net::CapturedDatagram d;
    while (reader.next(d))
        REQUIRE(d.payload.size() == payload_bytes);
    CHECK(reader.counts().datagrams == counts.written);
}

TEST_CASE("a capture that another thread finishes has all that still waits", "[capture]") {
    const auto waiting = GENERATE(1U, 2U, 3U);
    const test::TemporaryDirectory directory;
    net::BatchPool pool(8, 65536, net::make_host_memory({false, false}));
    test::FaultyDisk disk;
    daemon::Capture capture(directory / "raw.pcap", net::Framing::bare, net::FrameVersion::one, pool, 8, 0,
                            sync_interval);
    std::promise<void> gate;
    disk->write = [open = gate.get_future().share(), write = disk->write](auto&&... arguments) {
        open.wait();
        return write(arguments...);
    };
    for (std::uint32_t i = 0; i < 1 + waiting; ++i)
        offer_one(capture, pool);
    std::promise<pid_t> started;
    std::thread finishing([&] {
        started.set_value(::gettid());
        capture.finish();
    });
    // It has nothing left to do but to wait for the disk.
    const std::string thread = "/proc/self/task/" + std::to_string(started.get_future().get()) + "/stat";
    CHECK(test::eventually([&] { return test::read_file(thread).find(") S ") != std::string::npos; }));
    gate.set_value();
    finishing.join();
    CHECK(capture.failure().empty());
    CHECK(capture.counts().offered == (1 + waiting) * datagrams_of_a_batch);
    CHECK(capture.counts().written == capture.counts().offered);
    CHECK(pool.free_count() == pool.count());
}

TEST_CASE("a capture is synced while it is written, and at its end", "[capture]") {
    const test::TemporaryDirectory directory;
    const auto file = directory / "raw.pcap";
    net::BatchPool pool(8, 65536, net::make_host_memory({false, false}));
    test::FaultyDisk disk;
    std::atomic<std::uint64_t> synced_bytes{0};
    disk->sync = [&](int) {
        synced_bytes = std::filesystem::file_size(file);
        return 0;
    };
    daemon::Capture capture(file, net::Framing::bare, net::FrameVersion::one, pool, 4, 0, sync_interval);
    offer_one(capture, pool);
    CHECK(test::eventually([&] { return synced_bytes >= payload_bytes * datagrams_of_a_batch; }));
    offer_one(capture, pool);
    capture.finish();
    CHECK(synced_bytes == std::filesystem::file_size(file));
    CHECK(capture.failure().empty());
}

TEST_CASE("a capture that cannot be synced has failed", "[capture]") {
    const test::TemporaryDirectory directory;
    const auto file = directory / "raw.pcap";
    net::BatchPool pool(8, 65536, net::make_host_memory({false, false}));
    test::FaultyDisk disk;
    disk->sync = [](int) {
        errno = EIO;
        return -1;
    };
    daemon::Capture capture(file, net::Framing::bare, net::FrameVersion::one, pool, 4, 0, sync_interval);
    offer_one(capture, pool);
    capture.finish();
    CHECK(capture.failure() == file.string() + ": sync failed: Input/output error");
}
