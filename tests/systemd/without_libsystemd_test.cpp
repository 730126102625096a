// A build without libsystemd: it says what it cannot do, and logs so that the journal understands.
#include <sys/stat.h>

#include <csignal>

#include "daemon/journal.hpp"
#include "tests/catch.hpp"
#include "tests/systemd/supervised.hpp"

using namespace petacq;
using namespace petacq::test;

TEST_CASE("without libsystemd notification is missed, sockets are refused", "[systemd]") {
    const Site site;
    {
        NotifySocket notify(site.directory() / "notify");
        Supervised daemon(site, {&notify});
        REQUIRE(daemon.says(" ready: "));
        CHECK(contains(daemon.log(), "built without libsystemd: use Type=exec"));
        CHECK(notify.messages().empty());
        daemon.signal(SIGTERM);
        CHECK(daemon.wait() == 0);
    }
    const Udp socket;
    Supervised daemon(site, {nullptr, {}, {socket.descriptor()}});
    CHECK(daemon.wait() == 78);
    CHECK(contains(daemon.log(), "hands over sockets, but petacqd was built without libsystemd"));
}

TEST_CASE("without libsystemd a line for the journal begins with its priority", "[systemd]") {
    const Site site;
    write_file(site.directory() / "petacqd.err", "");
    struct stat file {};
    REQUIRE(::stat((site.directory() / "petacqd.err").c_str(), &file) == 0);
    const std::string stream = std::to_string(file.st_dev) + ":" + std::to_string(file.st_ino);
    Supervised daemon(site, {nullptr, {{"JOURNAL_STREAM", stream}}});
    REQUIRE(daemon.says(" ready: "));
    CHECK(daemon.log().starts_with("<6>"));
    CHECK(contains(daemon.log(), "\n<6>petacqd "));
    daemon.signal(SIGTERM);
    CHECK(daemon.wait() == 0);
}
