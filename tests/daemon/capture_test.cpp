// The raw capture beside a disk that becomes full.
#include "daemon/capture.hpp"

#include <cstring>
#include <thread>

#include "daemon/disk_space.hpp"
#include "net/pcap_reader.hpp"
#include "tests/catch.hpp"

using namespace petacq;

namespace {

/// In memory: nobody else writes and frees much there.
class Directory {
  public:
    Directory() {
        std::string name = "/dev/shm/petacq-capture-XXXXXX";
        if (::mkdtemp(name.data()) != nullptr) path_ = name;
    }
    ~Directory() {
        std::error_code ignored;
        if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
    }
    Directory(const Directory&) = delete;
    Directory& operator=(const Directory&) = delete;
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
};

constexpr std::size_t payload_bytes = 8192;
constexpr std::size_t datagrams_of_a_batch = 64;

/// False when the capture did not take it.
bool offer_one(daemon::Capture& capture, net::BatchPool& pool) {
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
    if (capture.offer(batch)) return true;
    pool.put(batch);
    return false;
}

}  // namespace

TEST_CASE("a capture ends while there is room for the list-mode, and is whole up to there", "[capture]") {
    const Directory directory;
    const auto space = directory.path().empty() ? std::nullopt : daemon::disk_space(directory.path());
    constexpr std::uint64_t mib = 1U << 20;
    if (!space || space->free_bytes < 256 * mib) {
        WARN("skipped: /dev/shm has no room");
        return;
    }
    net::BatchPool pool(8, 65536, net::make_host_memory({false, false}));
    const auto file = directory.path() / "raw.pcap";
    daemon::CaptureCounts counts;
    {
        daemon::Capture capture(file, net::Framing::bare, pool, 4, space->free_bytes - 32 * mib);
        // 128 MiB, or until it has ended.
        for (std::size_t bytes = 0; bytes < 128 * mib && capture.failure().empty();) {
            if (offer_one(capture, pool)) bytes += datagrams_of_a_batch * payload_bytes;
        }
        // What comes later is counted, nothing more.
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
