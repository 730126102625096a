// The file class on a disk that fails at each of its calls.
#include "daemon/system/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>
#include <system_error>

#include "tests/support/catch.hpp"
#include "tests/support/faulty_disk.hpp"
#include "tests/support/files.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace petacq::daemon;
using namespace petacq::test;

namespace {

/// The system error that the action throws, "PATH: WHAT: REASON"; empty when it throws none.
template <class Action>
std::string failure_of(Action action) {
    try {
        action();
    } catch (const std::system_error& error) {
        return error.what();
    }
    return "";
}

iovec piece(const char* text) {
    return {const_cast<char*>(text), std::strlen(text)};
}

/// A call that fails with `error`.
auto failing(int error) {
    return [error](auto...) {
        errno = error;
        return -1;
    };
}

}  // namespace

TEST_CASE("A file holds what was appended", "[file]") {
    const TemporaryDirectory directory;
    const auto path = directory / "a";
    File file(path);
    CHECK(file.path() == path);
    file.append("one ");
    std::array pieces{piece(""), piece("two"), piece(""), piece(" three"), piece("")};
    file.append(pieces);
    file.append("");
    file.start_writeback(file.bytes());
    file.sync();
    CHECK(file.bytes() == 13);
    CHECK(file.is_open());
    file.close();
    CHECK_FALSE(file.is_open());
    CHECK(read_file(path) == "one two three");
}

TEST_CASE("An existing file is refused or overwritten", "[file]") {
    const TemporaryDirectory directory;
    const auto path = directory / "a";
    write_file(path, "previous");
    CHECK_THAT(failure_of([&] { File file(path); }),
               contains(path.string() + ": cannot be created: File exists"));
    CHECK(read_file(path) == "previous");
    File(path, IfExists::overwrite).append("new");
    CHECK(read_file(path) == "new");
    CHECK_THAT(failure_of([&] { File file(directory / "no/such"); }), contains("No such file"));
    CHECK_THAT(failure_of([&] { File(directory.path(), IfExists::overwrite); }), contains("Is a directory"));

    const mode_t mask = ::umask(0);
    ::umask(mask);
    const File file(directory / "private", IfExists::fail, 0600);
    struct stat status {};
    REQUIRE(::stat((directory / "private").c_str(), &status) == 0);
    CHECK((status.st_mode & 0777U) == (0600U & ~mask));
}

TEST_CASE("Interrupted and short writes and syncs are continued", "[file]") {
    const TemporaryDirectory directory;
    FaultyDisk disk;
    int calls = 0;
    disk->write = [&](int file, const iovec* pieces, int) -> ssize_t {
        if (++calls % 2 == 1) {
            errno = EINTR;
            return -1;
        }
        return ::write(file, pieces->iov_base, std::min<std::size_t>(pieces->iov_len, 3));
    };
    int syncs = 0;
    disk->sync = [&](int file) {
        if (++syncs < 3) return failing(EINTR)();
        return ::fdatasync(file);
    };
    File file(directory / "a");
    std::array pieces{piece("ab"), piece("cdefg"), piece("hij")};
    file.append(pieces);
    CHECK(calls == 2 * 4);  // ab cde fg hij
    file.sync();
    CHECK(syncs == 3);
    CHECK(read_file(file.path()) == "abcdefghij");
}

TEST_CASE("A write takes more pieces than one call does", "[file]") {
    const TemporaryDirectory directory;
    std::vector<iovec> pieces(3000, piece("xyz"));
    File file(directory / "a");
    file.append(pieces);
    CHECK(file.bytes() == 9000);
    CHECK(read_file(file.path()).size() == 9000);
}

TEST_CASE("A failed write cuts the file back to what was whole, and it can go on", "[file]") {
    const int error = GENERATE(ENOSPC, EIO, EDQUOT, 0);  // 0: the call writes nothing and names no error
    const TemporaryDirectory directory;
    File file(directory / "a");
    file.append("whole");
    {
        FaultyDisk disk;
        disk->write = [&, calls = 0](int handle, const iovec* pieces, int) mutable -> ssize_t {
            if (++calls <= 2) return ::write(handle, pieces->iov_base, 2);
            errno = error;
            return error == 0 ? 0 : -1;
        };
        const std::string expected = std::generic_category().message(error == 0 ? EIO : error);
        CHECK(failure_of([&] { file.append(" torn"); }) ==
              file.path().string() + ": write failed: " + expected);
    }
    CHECK(file.bytes() == 5);
    CHECK(read_file(file.path()) == "whole");
    file.append(", whole again");
    CHECK(read_file(file.path()) == "whole, whole again");
}

TEST_CASE("A failed sync is an error, unless nothing can be synced", "[file]") {
    const TemporaryDirectory directory;
    File file(directory / "a");
    file.append("text");
    FaultyDisk disk;
    disk->sync = failing(EIO);
    CHECK(failure_of([&] { file.sync(); }) == file.path().string() + ": sync failed: Input/output error");
    disk->sync = failing(EINVAL);
    CHECK(failure_of([&] { file.sync(); }).empty());
    disk->sync_directory = failing(EIO);
    CHECK(failure_of([&] { sync_directory_of(file.path()); }) ==
          directory.path().string() + ": sync failed: Input/output error");
    disk->sync_directory = failing(EINVAL);
    CHECK(failure_of([&] { sync_directory_of(file.path()); }).empty());
    CHECK_THAT(failure_of([&] { sync_directory_of(directory / "no/such"); }),
               contains("no: cannot be opened"));
}

TEST_CASE("Reserving space fails only when the disk is full", "[file]") {
    const TemporaryDirectory directory;
    File file(directory / "a");
    file.allocate(100'000);
    CHECK(std::filesystem::file_size(file.path()) == 100'000);
    FaultyDisk disk;
    for (const int error : {ENOSPC, EDQUOT}) {
        disk->allocate = [&](int, off_t, off_t) { return error; };
        CHECK_THAT(failure_of([&] { file.allocate(1); }), contains("cannot be reserved"));
    }
    disk->allocate = [](int, off_t, off_t) { return EOPNOTSUPP; };
    CHECK(failure_of([&] { file.allocate(1); }).empty());
}

TEST_CASE("A discarded file is gone", "[file]") {
    const TemporaryDirectory directory;
    File file(directory / "a");
    file.append("text");
    file.discard();
    CHECK_FALSE(file.is_open());
    CHECK(std::filesystem::is_empty(directory.path()));
}

TEST_CASE("A file is replaced as a whole or not at all, whichever call fails", "[file]") {
    const TemporaryDirectory directory;
    const auto path = directory / "document";
    const bool existed = GENERATE(false, true);
    if (existed) write_file(path, "previous");
    struct Fault {
        const char* what;
        std::function<void(FaultyDisk&)> arm;
        bool replaced;  ///< the new content has its name already
    };
    const std::vector<Fault> faults{
        {"write failed", [](FaultyDisk& disk) { disk.take(0); }, false},
        {"write failed", [](FaultyDisk& disk) { disk.take(4); }, false},
        {"write failed", [](FaultyDisk& disk) { disk->write = failing(EIO); }, false},
        {"sync failed", [](FaultyDisk& disk) { disk->sync = failing(EIO); }, false},
        {"cannot be renamed", [](FaultyDisk& disk) { disk->rename = failing(EIO); }, false},
        {"sync failed", [](FaultyDisk& disk) { disk->sync_directory = failing(EIO); }, true},
    };
    for (const Fault& fault : faults) {
        if (existed) {
            write_file(path, "previous");
        } else {
            std::filesystem::remove(path);
        }
        INFO(fault.what);
        FaultyDisk disk;
        fault.arm(disk);
        CHECK_THAT(failure_of([&] { replace_file(path, "new content"); }), contains(fault.what));
        CHECK(read_file(path) == (fault.replaced ? "new content" : existed ? "previous" : ""));
        CHECK(std::filesystem::exists(path) == (existed || fault.replaced));
        CHECK(std::distance(std::filesystem::directory_iterator(directory.path()), {}) ==
              (existed || fault.replaced ? 1 : 0));
    }
    replace_file(path, "new content");
    CHECK(read_file(path) == "new content");
    CHECK(std::distance(std::filesystem::directory_iterator(directory.path()), {}) == 1);
}

TEST_CASE("What others put beside a file is neither followed nor waited for when the file is replaced",
          "[file]") {
    const TemporaryDirectory directory;
    const auto path = directory / "run.json";
    const auto victim = directory / "victim";
    write_file(victim, "precious");
    const auto beside = path.string() + ".tmp";
    const bool link = GENERATE(true, false);
    if (link) std::filesystem::create_symlink(victim, beside);
    if (!link) REQUIRE(::mkfifo(beside.c_str(), 0600) == 0);
    replace_file(path, "new content");
    CHECK(read_file(path) == "new content");
    CHECK(std::filesystem::symlink_status(path).type() == std::filesystem::file_type::regular);
    CHECK(read_file(victim) == "precious");

    File fresh(beside, IfExists::discard);
    fresh.append("fresh");
    CHECK(read_file(victim) == "precious");
    CHECK(std::filesystem::symlink_status(beside).type() == std::filesystem::file_type::regular);
}

TEST_CASE("The new content is on the disk before it gets its name", "[file]") {
    const TemporaryDirectory directory;
    std::string order;
    FaultyDisk disk;
    disk->write = [&](int file, const iovec* pieces, int count) {
        order += "write ";
        return ::writev(file, pieces, count);
    };
    disk->sync = [&](int file) {
        order += "sync ";
        return ::fdatasync(file);
    };
    disk->rename = [&](const char* from, const char* to) {
        order += "rename ";
        return ::rename(from, to);
    };
    disk->sync_directory = [&](int file) {
        order += "directory";
        return ::fsync(file);
    };
    replace_file(directory / "a", "content");
    CHECK(order == "write sync rename directory");
}
