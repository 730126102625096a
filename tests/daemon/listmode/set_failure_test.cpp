// One file of several fails, hangs, is lost, or the program is killed.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <thread>

#include "tests/daemon/listmode/set_support.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/faulty_disk.hpp"
#include "tests/support/read_listmode.hpp"

using namespace petacq;
using namespace petacq::daemon;
using namespace petacq::test;

namespace {

/// Whether the descriptor is that of the file of this name.
bool is_file(int descriptor, const std::string& name) {
    std::error_code ignored;
    const auto path = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(descriptor), ignored);
    return path.filename() == name;
}

}  // namespace

TEST_CASE("When one file of a set fails, all stop and everything written stays readable", "[listmode][set]") {
    const TemporaryDirectory directory;
    const int fails_at = GENERATE(1, 2, 3, 7);  // the first is the header
    std::atomic<int> writes = 0;
    FaultyDisk disk;
    disk->write = [&](int file, const iovec* pieces, int count) -> ssize_t {
        if (is_file(file, "r.2.plm") && writes++ == fails_at) {
            errno = EIO;
            return -1;
        }
        return ::writev(file, pieces, count);
    };
    const auto all = pairs(400);
    ListModeWriter writer(directory / "r.plm", set_options(3));
    append_in_pieces(writer, all, 3, 40);
    const ListModeCounts counts = writer.finish();
    CHECK_THAT(writer.failure(), contains("r.2.plm") && contains("Input/output error"));
    CHECK(counts.appended == 400);
    CHECK(counts.written + counts.write_failed == 400);
    CHECK(counts.queue_blocks == 0);

    // Every file is closed. All blocks before the one that failed are there, and perhaps some after it.
    const std::uint64_t before = 4 * (1 + 3 * (static_cast<std::uint64_t>(fails_at) - 1));
    const FoundRecords found = read_what_is_there(directory / "r.plm");
    CAPTURE(found.condition.summary());
    CHECK(found.records.size() == counts.written);
    CHECK(found.condition.blocks == counts.blocks);
    CHECK(found.condition.has_index);
    std::uint64_t next = 0;
    std::uint64_t missing = 0;
    for (const auto& record : found.records) {
        const std::uint64_t number = (record.time - 1000) / 10;
        CHECK(same(record, all[number]));
        CHECK((number == next || number >= before + 4));
        CHECK((number < before || number >= before + 4));
        missing += number - next;
        next = number + 1;
    }
    CHECK(found.records.size() >= before);
    CHECK(found.condition.missing_records == missing);
    CHECK((found.condition.state == FileState::complete) == (missing == 0));
    std::uint64_t records = 0;
    for (const ListModePart& part : writer.parts())
        records += part.records;
    CHECK(records == counts.written);
}

TEST_CASE("A file of a set that cannot be created leaves nothing behind", "[listmode][set]") {
    const TemporaryDirectory directory;
    write_file(directory / "r.3.plm", "in the way");
    CHECK_THROWS_AS(ListModeWriter(directory / "r.plm", set_options(4)), std::system_error);
    CHECK(std::distance(std::filesystem::directory_iterator(directory.path()), {}) == 1);
    CHECK_THROWS_AS(ListModeWriter(directory / "s.plm", set_options(0)), std::invalid_argument);
    CHECK_THROWS_AS(ListModeWriter(directory / "s.plm", set_options(17)), std::invalid_argument);
}

TEST_CASE("When a file of the next part cannot be created, the finished parts are whole", "[listmode][set]") {
    const TemporaryDirectory directory;
    const std::string in_the_way = GENERATE("s-0003.1.plm", "s-0003.2.plm");
    write_file(directory / in_the_way, "in the way");
    ListModeOptions options = set_options(2);
    options.split.bytes = 4096 + 2 * 192;
    ListModeWriter writer(directory / "s.plm", options);
    writer.append(pairs(4 * 12));
    const ListModeCounts counts = writer.finish();
    CHECK(counts.written + counts.write_failed == 48);
    CHECK(counts.written >= 32);
    CHECK_THAT(writer.failure(), contains(in_the_way) && contains("File exists"));
    std::uint64_t records = 0;
    for (const ListModePart& part : writer.parts())
        records += part.records;
    CHECK(records == counts.written);
    CHECK(same(read_coincidences(directory / "s-0001.plm"), pairs(16)));
    CHECK(same(read_coincidences(directory / "s-0002.plm"), pairs(16, 16)));
}

TEST_CASE("A part whose last sync fails has one index", "[listmode][set]") {
    const TemporaryDirectory directory;
    std::atomic<int> syncs = 0;
    FaultyDisk disk;
    disk->sync = [&](int file) {
        // The first is that of the header.
        if (is_file(file, "s-0001.plm") && syncs++ == 1) {
            errno = EIO;
            return -1;
        }
        return ::fdatasync(file);
    };
    ListModeOptions options = set_options(1);
    options.split.bytes = 4096 + 2 * 192;
    ListModeWriter writer(directory / "s.plm", options);
    writer.append(pairs(4 * 6));
    const ListModeCounts counts = writer.finish();
    CHECK_THAT(writer.failure(), contains("s-0001.plm") && contains("Input/output error"));
    CHECK(counts.written == 8);
    CHECK(counts.written + counts.write_failed == 24);
    const FoundRecords found = read_what_is_there(directory / "s-0001.plm");
    CAPTURE(found.condition.summary());
    CHECK(found.condition.state == FileState::complete);
    CHECK(same(found.records, pairs(8)));
}

TEST_CASE("One file that hangs holds the producer back and shows as its thread", "[listmode][set]") {
    const TemporaryDirectory directory;
    std::atomic<bool> hangs = true;
    FaultyDisk disk;
    disk->write = [&, writes = std::make_shared<std::atomic<int>>(0)](int file, const iovec* pieces,
                                                                      int count) {
        if (is_file(file, "r.2.plm") && (*writes)++ > 0) hangs.wait(true);
        return ::writev(file, pieces, count);
    };
    ListModeWriter writer(directory / "r.plm", set_options(3));
    std::thread producer([&] {
        for (std::uint64_t i = 0; i < 100; ++i)
            writer.append(pairs(4, 4 * i));
    });
    // The producer goes on when there is room for two blocks.
    CHECK(eventually([&] {
        const auto threads = writer.threads();
        return writer.counts().queue_blocks >= 7 && threads[1].waiting && !threads[0].waiting &&
               !threads[2].waiting;
    }));
    CHECK(writer.counts().stalls != 0);
    CHECK(writer.threads()[1].calls == 0);
    CHECK(writer.threads()[0].calls != 0);
    hangs = false;
    hangs.notify_all();
    producer.join();
    CHECK(writer.finish().written == 400);
    CHECK(writer.counts().queue_high_water == 8);
    CHECK(same(read_coincidences(directory / "r.plm"), pairs(400)));
}

TEST_CASE("A writer that loses one file of several fails", "[listmode][set]") {
    const TemporaryDirectory directory;
    ListModeWriter writer(directory / "r.plm", set_options(3));
    writer.append(pairs(24));
    REQUIRE(eventually([&] { return writer.counts().written == 24; }));
    std::filesystem::remove(directory / "r.3.plm");
    CHECK(eventually([&] { return !writer.failure().empty(); }));
    CHECK_THAT(writer.failure(), contains("r.3.plm") && contains("has removed or renamed it"));
    writer.append(pairs(24, 24));
    const ListModeCounts counts = writer.finish();
    CHECK(counts.written == 24);
    CHECK(counts.write_failed == 24);
    CHECK(writer.identities().size() == 3);
}

TEST_CASE("A killed program leaves every whole block of a set", "[listmode][set]") {
    const TemporaryDirectory directory;
    const auto file = directory / "r.plm";
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        ListModeOptions options = set_options(3, 4096);
        options.sync_interval_ms = 5;
        ListModeWriter writer(file, options);
        for (std::uint64_t i = 0;; i += 50)
            writer.append(pairs(50, i));
    }
    const bool grown = eventually([&] { return bytes_of_files(file) > 600'000; });
    ::kill(child, SIGKILL);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(grown);
    const FoundRecords found = read_what_is_there(file);
    CAPTURE(found.condition.summary());
    CHECK(found.condition.state == FileState::truncated);
    CHECK(found.condition.tail_bytes < 3 * 4096);
    CHECK(found.records.size() > 15'000);
    // All there up to the last blocks, which wait in a queue of 8.
    const std::uint64_t last = (found.records.back().time - 1000) / 10;
    CHECK(found.condition.missing_records == last + 1 - found.records.size());
    CHECK(found.condition.missing_records <= 8 * 126);
}
