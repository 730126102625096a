// Which daemon owns the path of the control socket.
#include "daemon/system/sockets/listening_socket.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/daemon/control/fixture.hpp"
#include "tests/support/catch.hpp"

using namespace petacq::daemon;
using namespace petacq::test;
namespace fs = std::filesystem;

namespace {

/// Why there is no control socket at this path, or "".
std::string socket_refusal(const fs::path& path) {
    try {
        const ListeningSocket socket("control socket", path);
    } catch (const std::runtime_error& error) {
        return error.what();
    }
    return "";
}

/// A listening socket made without our code; closing it leaves its file behind.
int foreign_listener(const fs::path& path) {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.native().size());
    REQUIRE(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(::listen(fd, 1) == 0);
    return fd;
}

}  // namespace

TEST_CASE("control socket: open to user and group, gone when closed", "[control]") {
    const TemporaryDirectory directory;
    const fs::path path = directory.path() / "c.sock";
    const mode_t before = ::umask(0077);
    {
        const ListeningSocket socket("control socket", path);
        struct stat found {};
        REQUIRE(::stat(path.c_str(), &found) == 0);
        CHECK(S_ISSOCK(found.st_mode));
        CHECK((found.st_mode & 07777) == 0660);
        const ControlClient client(path);
    }
    ::umask(before);
    CHECK_FALSE(fs::exists(path));
    CHECK(socket_refusal(path).empty());
}

TEST_CASE("control socket: each obstacle has its own message", "[control]") {
    const TemporaryDirectory directory;
    const fs::path path = directory.path() / "c.sock";

    CHECK(contains(socket_refusal(directory.path() / "none" / "c.sock"), "none does not exist"));
    CHECK(contains(socket_refusal(directory.path() / std::string(200, 'x')),
                   "too long for a socket, expected at most 107"));
    CHECK(contains(socket_refusal(""), "empty"));

    std::ofstream(path) << "precious";
    CHECK(contains(socket_refusal(path), "not a socket"));
    CHECK(fs::file_size(path) == 8);
    fs::remove(path);
    fs::create_directory(path);
    CHECK(contains(socket_refusal(path), "not a socket"));
    fs::remove(path);
    const fs::path target = directory.path() / "target";
    fs::create_symlink(target, path);
    CHECK(contains(socket_refusal(path), "not a socket"));
    CHECK_FALSE(fs::exists(target));
    fs::remove(path);

    const std::string another = "another petacqd is listening on " + path.string();
    {
        const ListeningSocket first("control socket", path);
        CHECK(contains(socket_refusal(path), another));
        const ControlClient still_there(path);
    }
    // Another program listens without holding the lock.
    const int foreign = foreign_listener(path);
    CHECK(contains(socket_refusal(path), another));
    ::close(foreign);
    CHECK(fs::exists(path));
    CHECK(socket_refusal(path).empty());  // stale now: taken over, and removed at the end
    CHECK_FALSE(fs::exists(path));
}

TEST_CASE("control socket: somebody else's socket is not removed on closing", "[control]") {
    const TemporaryDirectory directory;
    const fs::path path = directory.path() / "c.sock";
    int foreign = -1;
    {
        const ListeningSocket socket("control socket", path);
        fs::remove(path);
        foreign = foreign_listener(path);
    }
    CHECK(fs::exists(path));
    const ControlClient client(path);
    ::close(foreign);
}

TEST_CASE("control socket: of many that start at once over a stale socket, one gets it", "[control]") {
    const TemporaryDirectory directory;
    const fs::path path = directory.path() / "c.sock";
    for (int round = 0; round < 30; ++round) {
        ::close(foreign_listener(path));
        std::vector<std::unique_ptr<ListeningSocket>> sockets(8);
        std::vector<std::thread> threads;
        std::atomic<bool> go{false};
        std::atomic<int> refused{0};
        for (auto& socket : sockets) {
            threads.emplace_back([&] {
                go.wait(false);
                try {
                    socket = std::make_unique<ListeningSocket>("control socket", path);
                } catch (const std::runtime_error& error) {
                    refused += contains(error.what(), "another petacqd is listening on") ? 1 : 0;
                }
            });
        }
        go = true;
        go.notify_all();
        for (std::thread& thread : threads)
            thread.join();
        CHECK(refused == 7);
        const ControlClient client(path);  // the socket is the winner's
        sockets.clear();
        REQUIRE_FALSE(fs::exists(path));
    }
}
