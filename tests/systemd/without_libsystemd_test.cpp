// A build without libsystemd reports what it cannot do, and logs in a format that the journal understands.
#include <sys/stat.h>

#include <csignal>

#include "daemon/system/journal.hpp"
#include "tests/support/catch.hpp"
#include "tests/systemd/supervised.hpp"

using namespace petacq;
using namespace petacq::test;

TEST_CASE("without libsystemd the daemon refuses inherited sockets", "[systemd]") {
    const Site site;
    const Udp socket;
    Supervised daemon(site, {nullptr, {}, {socket.descriptor()}});
    CHECK(daemon.wait() == 78);
    CHECK(contains(daemon.log(), "passes sockets, but petacqd was built without libsystemd"));
}

TEST_CASE("without libsystemd a line for the journal starts with its priority", "[systemd]") {
    const Site site;
    write_file(site.directory() / "petacqd.err", "");
    struct stat file {};
    REQUIRE(::stat((site.directory() / "petacqd.err").c_str(), &file) == 0);
    const std::string stream = std::to_string(file.st_dev) + ":" + std::to_string(file.st_ino);
    Supervised daemon(site, {nullptr, {"JOURNAL_STREAM=" + stream}});
    REQUIRE(daemon.says(" ready: "));
    CHECK(daemon.log().starts_with("<6>"));
    CHECK(contains(daemon.log(), "\n<6>petacqd "));
    daemon.signal(SIGTERM);
    CHECK(daemon.wait() == 0);
}
