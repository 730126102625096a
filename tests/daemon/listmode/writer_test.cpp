#include <sys/resource.h>

#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>

#include "daemon/listmode/reader.hpp"
#include "daemon/listmode/writer.hpp"
#include "tests/daemon/listmode/set_support.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/faulty_disk.hpp"
#include "tests/support/read_listmode.hpp"
#include "tests/support/thread_cores.hpp"

using namespace petacq;
using namespace petacq::daemon;
using namespace petacq::test;

namespace {

ListModeOptions small_blocks(std::uint32_t block_bytes = 4096) {
    ListModeOptions options;
    options.block_bytes = block_bytes;
    options.queue_blocks = 8;
    options.sync_interval_ms = never_ms;
    return options;
}

struct Gate {
    std::mutex mutex;
    std::condition_variable opened;
    bool open = false;
    void let_through() {
        const std::scoped_lock lock(mutex);
        open = true;
        opened.notify_all();
    }
    void wait() {
        std::unique_lock lock(mutex);
        opened.wait(lock, [this] { return open; });
    }
};

}  // namespace

TEST_CASE("Coincidences come back as they were appended", "[listmode]") {
    const TemporaryDirectory directory;
    const auto file = directory / "a.plm";
    const nlohmann::json description = {{"run_id", "r1"}, {"tick_ps", 20}, {"note", "caf\xC3\xA9"}};
    const auto all = pairs(100'000);
    ListModeWriter writer(file, small_blocks(), description);
    append_in_pieces(writer, all, 1);
    const auto counts = writer.finish();

    CHECK(writer.failure().empty());
    CHECK(counts.appended == 100'000);
    CHECK(counts.written == 100'000);
    CHECK(counts.write_failed == 0);
    CHECK(counts.queue_blocks == 0);
    CHECK(counts.blocks == (100'000 + 125) / 126);  // (4096 - 64) / 32 in each
    CHECK(counts.bytes == std::filesystem::file_size(file));
    CHECK(same(read_coincidences(file), all));

    ListModeReader reader(file);
    CHECK(reader.description() == description);
    CHECK(reader.kind() == RecordKind::coincidences);
    CHECK_THROWS_AS(reader.singles(), std::logic_error);
    REQUIRE(reader.trailer());
    CHECK(reader.trailer()->records == 100'000);
}

TEST_CASE("Singles come back as they were appended", "[listmode]") {
    const TemporaryDirectory directory;
    const auto file = directory / "s.plm";
    gpu::RecordVector<gpu::Single> all;
    for (std::uint32_t i = 0; i < 1000; ++i)
        all.push_back({UINT64_MAX - 2000 + i, i * 7, 0.1F * static_cast<float>(i)});
    auto options = small_blocks();
    options.kind = RecordKind::singles;
    ListModeWriter writer(file, options);
    writer.append(std::vector(all));
    CHECK_THROWS_AS(writer.append(pairs(1)), std::logic_error);
    CHECK(writer.finish().written == 1000);
    CHECK_THROWS_AS(writer.append(std::vector(all)), std::logic_error);

    const auto back = read_singles(file);
    REQUIRE(back.size() == all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
        CHECK((back[i].time == all[i].time && back[i].crystal == all[i].crystal &&
               back[i].energy == all[i].energy));
    }
    CHECK_THROWS_AS(read_coincidences(file), std::logic_error);
}

TEST_CASE("Every block but the last is full and exactly block_bytes long", "[listmode]") {
    const TemporaryDirectory directory;
    const std::uint32_t block_bytes = GENERATE(128U, 192U, 4096U);
    const std::uint64_t full = (block_bytes - 64) / 32;
    for (const std::uint64_t count : std::set<std::uint64_t>{0, 1, full - 1, full, full + 1, 3 * full}) {
        const auto file = directory / (std::to_string(block_bytes) + "-" + std::to_string(count) + ".plm");
        ListModeWriter writer(file, small_blocks(block_bytes));
        writer.append(pairs(count));
        writer.finish();
        CHECK(same(read_coincidences(file), pairs(count)));

        ListModeReader reader(file);
        std::uint64_t offset = 4096;
        for (std::uint64_t block = 0; reader.next(); ++block) {
            CHECK(reader.block_offset() == offset);
            CHECK(reader.block().number == block);
            CHECK(reader.block().first_record == block * full);
            CHECK(reader.block().records == std::min(full, count - block * full));
            CHECK(reader.block().first_time == reader.coincidences().front().time);
            CHECK(reader.block().last_time == reader.coincidences().back().time);
            offset += block_bytes;
        }
        CHECK(reader.condition().state == FileState::complete);
        CHECK(reader.condition().blocks == (count + full - 1) / full);
    }
}

TEST_CASE("The file does not depend on the sizes of the appends", "[listmode]") {
    const TemporaryDirectory directory;
    const auto all = pairs(20'000);
    for (const unsigned seed : {1U, 2U, 3U}) {
        ListModeWriter writer(directory / std::to_string(seed), small_blocks());
        append_in_pieces(writer, all, seed);
        writer.finish();
    }
    CHECK(read_file(directory / "1") == read_file(directory / "2"));
    CHECK(read_file(directory / "1") == read_file(directory / "3"));
}

TEST_CASE("Records of a quiet run reach the file without a full block", "[listmode]") {
    const TemporaryDirectory directory;
    const auto file = directory / "quiet.plm";
    std::atomic<int> syncs = 0;
    ListModeOptions options;
    options.sync_interval_ms = 20;
    options.queue_blocks = 2;
    FaultyDisk disk;
    disk->sync = [&](int handle) {
        ++syncs;
        return ::fdatasync(handle);
    };
    ListModeWriter writer(file, options);
    for (std::uint64_t round = 1; round <= 3; ++round) {
        writer.append(pairs(5, (round - 1) * 5));
        const auto arrived = [&] {
            ListModeReader reader(file);
            gpu::RecordVector<gpu::Coincidence> found;
            while (reader.next()) {
                found.insert(found.end(), reader.coincidences().begin(), reader.coincidences().end());
            }
            CHECK(reader.condition().state != FileState::damaged);
            return same(found, pairs(round * 5));
        };
        CHECK(eventually(arrived));
        // One for the header, one for each flush.
        CHECK(eventually([&] { return syncs >= static_cast<int>(round) + 1; }));
    }
    CHECK(writer.finish().blocks == 3);
    CHECK(same(read_coincidences(file), pairs(15)));
}

TEST_CASE("A slow disk holds the producer back and loses nothing", "[listmode]") {
    const TemporaryDirectory directory;
    Gate gate;
    std::atomic<bool> header_written = false;
    auto options = small_blocks(128);
    options.queue_blocks = 3;
    FaultyDisk disk;
    disk->write = [&](int file, const iovec* pieces, int count) {
        if (header_written.exchange(true)) gate.wait();
        return ::writev(file, pieces, count);
    };
    ListModeWriter writer(directory / "slow.plm", options);
    std::atomic<bool> returned = false;
    std::thread producer([&] {
        for (std::uint64_t i = 0; i < 50; ++i)
            writer.append(pairs(2, 2 * i));
        returned = true;
    });
    CHECK(eventually([&] { return writer.counts().stalls == 1; }));
    CHECK_FALSE(returned);
    CHECK(writer.counts().queue_blocks == 3);
    CHECK(writer.counts().written == 0);
    gate.let_through();
    producer.join();
    const auto counts = writer.finish();
    CHECK(counts.written == 100);
    CHECK(counts.queue_high_water == 3);
    CHECK(counts.queue_blocks == 0);
    CHECK(same(read_coincidences(directory / "slow.plm"), pairs(100)));
}

TEST_CASE("A full disk leaves every whole block readable", "[listmode]") {
    const TemporaryDirectory directory;
    const auto file = directory / "full.plm";
    const std::size_t room = GENERATE(4096U, 4097U, 4096U + 64U, 4096U + 3 * 4096U - 1U, 4096U + 3 * 4096U);
    FaultyDisk disk;
    disk.take(room);
    ListModeWriter writer(file, small_blocks());
    append_in_pieces(writer, pairs(5000), 1);
    CHECK(eventually([&] { return !writer.failure().empty(); }));
    writer.append(pairs(1000, 5000));
    const auto counts = writer.finish();

    const std::uint64_t whole = (room - 4096) / 4096;
    CHECK(writer.failure().find("No space left on device") != std::string::npos);
    CHECK(writer.failure().find("full.plm") != std::string::npos);
    CHECK(counts.appended == 6000);
    CHECK(counts.written == 126 * whole);
    CHECK(counts.write_failed == 6000 - 126 * whole);
    CHECK(counts.blocks == whole);

    ListModeReader reader(file);
    gpu::RecordVector<gpu::Coincidence> found;
    while (reader.next())
        found.insert(found.end(), reader.coincidences().begin(), reader.coincidences().end());
    CHECK(reader.condition().state == FileState::truncated);
    CHECK(reader.condition().tail_bytes == 0);
    CHECK(same(found, pairs(126 * whole)));
}

TEST_CASE("After one write that fails the file is closed with its index", "[listmode]") {
    const TemporaryDirectory directory;
    const auto file = directory / "hiccup.plm";
    FaultyDisk disk;
    disk->write = [calls = 0](int handle, const iovec* pieces, int count) mutable -> ssize_t {
        ++calls;
        // Half of the second block, then nothing.
        if (calls == 3) return ::write(handle, pieces->iov_base, pieces->iov_len / 2);
        if (calls == 4) {
            errno = EIO;
            return -1;
        }
        return ::writev(handle, pieces, count);
    };
    ListModeWriter writer(file, small_blocks());
    writer.append(pairs(126 * 4));
    CHECK(writer.finish().written == 126);
    CHECK(writer.failure().find("Input/output error") != std::string::npos);
    CHECK(same(read_coincidences(file), pairs(126)));
}

TEST_CASE("A sync that fails stops the writing", "[listmode]") {
    const TemporaryDirectory directory;
    const auto file = directory / "sync.plm";
    auto options = small_blocks();
    options.sync_interval_ms = 10;
    FaultyDisk disk;
    disk->sync = [calls = 0](int) mutable {
        errno = EIO;
        return ++calls == 2 ? -1 : 0;
    };
    ListModeWriter writer(file, options);
    writer.append(pairs(10));
    CHECK(eventually([&] { return !writer.failure().empty(); }));
    writer.append(pairs(10, 10));
    const auto counts = writer.finish();
    CHECK(writer.failure().find("sync failed") != std::string::npos);
    CHECK(counts.written == 10);
    CHECK(counts.write_failed == 10);
    CHECK(same(read_coincidences(file), pairs(10)));
}

TEST_CASE("A limit on the file size is a failing write and not a signal", "[listmode]") {
    const TemporaryDirectory directory;
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
    rlimit limited = before;
    limited.rlim_cur = 20'000;
    ListModeCounts counts;
    std::string failure;
    {
        REQUIRE(::setrlimit(RLIMIT_FSIZE, &limited) == 0);
        ListModeWriter writer(directory / "limited.plm", small_blocks());
        writer.append(pairs(2000));
        counts = writer.finish();
        failure = writer.failure();
        REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
    }
    CHECK(failure.find("File too large") != std::string::npos);
    CHECK(counts.written == 3 * 126);
    CHECK(counts.written + counts.write_failed == 2000);
    CHECK(same(read_coincidences(directory / "limited.plm"), pairs(3 * 126)));
}

TEST_CASE("A writer that cannot start names the reason and leaves nothing behind", "[listmode]") {
    const TemporaryDirectory directory;
    write_file(directory / "there.plm", "kept");
    CHECK_THROWS_AS(ListModeWriter(directory / "there.plm", small_blocks()), std::system_error);
    CHECK(read_file(directory / "there.plm") == "kept");
    CHECK_THROWS_AS(ListModeWriter(directory / "no/such.plm", small_blocks()), std::system_error);

    for (const std::uint32_t bytes : {0U, 64U, 100U, 1U << 31U}) {
        CHECK_THROWS_AS(ListModeWriter(directory / "new.plm", small_blocks(bytes)), std::invalid_argument);
    }
    auto options = small_blocks();
    options.queue_blocks = 1;
    CHECK_THROWS_AS(ListModeWriter(directory / "new.plm", options), std::invalid_argument);
    FaultyDisk disk;
    disk.take(100);
    CHECK_THROWS_AS(ListModeWriter(directory / "new.plm", small_blocks()), std::system_error);
    CHECK_FALSE(std::filesystem::exists(directory / "new.plm"));
}

TEST_CASE("When the next file of a series cannot be created, the finished ones are whole", "[listmode]") {
    const TemporaryDirectory directory;
    write_file(directory / "s-0003.plm", "in the way");
    auto options = small_blocks();
    options.split.bytes = 3 * 4096;  // the header and two blocks
    ListModeWriter writer(directory / "s.plm", options);
    writer.append(pairs(126 * 6));
    const auto counts = writer.finish();
    CHECK(counts.written == 126 * 4);
    CHECK(counts.write_failed == 126 * 2);
    CHECK_THAT(writer.failure(), contains("s-0003.plm") && contains("File exists"));

    const auto parts = writer.parts();
    REQUIRE(parts.size() == 2);
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        CHECK(parts[i].name == "s-000" + std::to_string(i + 1) + ".plm");
        CHECK(parts[i].bytes == std::filesystem::file_size(directory / parts[i].name));
        CHECK(same(read_coincidences(directory / parts[i].name), pairs(126 * 2, i * 126 * 2)));
        bytes += parts[i].bytes;
    }
    CHECK(counts.bytes == bytes);
}

TEST_CASE("the writing threads run on the cores that are asked for", "[listmode]") {
    const net::Cores own = own_cores();
    ListModeOptions options = small_blocks();
    options.files = 2;
    options.cores = {own.back()};
    const TemporaryDirectory directory;
    const ListModeWriter writer(directory / "r.plm", options);
    CHECK(cores_of("listmode") == net::to_text(options.cores));
    CHECK(own_cores() == own);
}
