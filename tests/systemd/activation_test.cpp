// Sockets that the service manager opens and keeps open over restarts of the daemon.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>

#include "tests/support/catch.hpp"
#include "tests/systemd/supervised.hpp"

using namespace petacq;
using namespace petacq::test;
using nlohmann::json;

namespace {

json sockets(std::initializer_list<std::uint16_t> ports) {
    json all = json::array();
    for (const std::uint16_t port : ports)
        all.push_back({{"address", "127.0.0.1"}, {"port", port}});
    return {{"receive", {{"sockets", all}}}};
}

json datagrams(Supervised& daemon) {
    return daemon.call("status")["total"]["datagrams"];
}

/// Waits until that many datagrams have arrived, and checks that the daemon accounts for all of them.
void check_received(Supervised& daemon, std::uint64_t number) {
    CHECK(eventually([&] { return datagrams(daemon)["received"] == number; }));
    CHECK(eventually([&] { return daemon.call("status")["total"]["closed"] == true; }));
}

}  // namespace

TEST_CASE("the daemon uses an inherited socket, and discards and counts the datagrams that waited in it",
          "[systemd][activation]") {
    const Udp socket;
    const Site site(sockets({socket.port()}));
    NotifySocket notify(site.directory() / "notify");
    const Supervision supervision{&notify, {}, {socket.descriptor()}};
    const Udp sender;
    sender.connect(socket.port());
    std::uint64_t sequence = 0;
    const auto send = [&](int count) {
        for (int i = 0; i < count; ++i)
            CHECK(sender.send(heartbeat(1, sequence++)));
    };

    send(10);
    {
        Supervised first(site, supervision, "first");
        REQUIRE(notify.until("READY=1"));
        CHECK(eventually([&] { return datagrams(first)["discarded_backlog"] == 10; }));
        CHECK(datagrams(first)["received"] == 0);
        send(5);
        check_received(first, 5);
        CHECK(datagrams(first)["accepted"] == 5);
        CHECK(datagrams(first)["lost"] == 0);
        first.signal(SIGKILL);
        CHECK(first.wait() == -SIGKILL);
    }
    // The port stays open without a daemon: the kernel refuses no datagram.
    send(7);
    // The daemon enabled joined datagrams, and the socket keeps the option: each datagram counts.
    const bool joined = sender.send_joined(heartbeat(1, sequence++), 20);
    send(1);
    {
        Supervised second(site, supervision, "second");
        REQUIRE(notify.until("READY=1", 2));
        CHECK(eventually([&] { return datagrams(second)["discarded_backlog"] == (joined ? 28 : 8); }));
        CHECK(datagrams(second)["dropped_kernel"] == 0);
        send(3);
        check_received(second, 3);
        second.signal(SIGTERM);
        CHECK(second.wait() == 0);
    }
    // A clean stop leaves the socket open, too.
    send(1);
}

TEST_CASE("a whole run over an inherited socket", "[systemd][activation]") {
    const Udp socket;
    const Site site(sockets({socket.port()}));
    NotifySocket notify(site.directory() / "notify");
    Supervised daemon(site, {&notify, {}, {socket.descriptor()}});
    REQUIRE(notify.until("READY=1"));
    daemon.call("start", {{"run", "r1"}});
    const json sent =
        simulate(site, {"--cylinder", "0,0,0,10,20,0.45", "--sources", "4", "--flush-us", "4000",
                        "--duration-s", "0.3", "--to", "127.0.0.1:" + std::to_string(socket.port())});
    CHECK(eventually([&] {
        return daemon.call("status")["ledger"]["datagrams"]["received"] ==
               sent["total"]["expected"]["datagrams_received"];
    }));
    const json end = daemon.call("stop");
    CHECK(end["ledger_closed"] == true);
    CHECK(end["ledger"]["datagrams"]["lost"] == 0);
    CHECK(end["ledger"]["datagrams"]["discarded_backlog"] == 0);
    CHECK(end["prompts"] > 0);
    daemon.signal(SIGTERM);
    CHECK(daemon.wait() == 0);
}

TEST_CASE("several inherited sockets are assigned by their order", "[systemd][activation]") {
    const Udp a;
    const Udp b;
    const Site site(sockets({b.port(), a.port()}));
    NotifySocket notify(site.directory() / "notify");
    {
        Supervised daemon(site, {&notify, {}, {b.descriptor(), a.descriptor()}});
        REQUIRE(notify.until("READY=1"));
        const json status = daemon.call("status");
        CHECK(status["sockets"][0]["port"] == b.port());
        CHECK(status["sockets"][1]["port"] == a.port());
        daemon.signal(SIGTERM);
        CHECK(daemon.wait() == 0);
    }
    Supervised crossed(site, {nullptr, {}, {a.descriptor(), b.descriptor()}}, "crossed");
    CHECK(crossed.wait() == 78);
}

TEST_CASE("port 0 accepts an inherited socket with any port", "[systemd][activation]") {
    const Udp socket;
    const Site site(sockets({0}));
    NotifySocket notify(site.directory() / "notify");
    Supervised daemon(site, {&notify, {}, {socket.descriptor()}});
    REQUIRE(notify.until("READY=1"));
    CHECK(daemon.call("status")["sockets"][0]["port"] == socket.port());
    daemon.signal(SIGTERM);
    CHECK(daemon.wait() == 0);
}

TEST_CASE("sockets that do not fit the configuration are refused", "[systemd][activation]") {
    const Udp socket;
    const Udp other;
    const Site site(sockets({socket.port()}));
    const auto refused = [&](const Supervision& supervision, const std::string& why) {
        Supervised daemon(site, supervision);
        CHECK(daemon.wait() == 78);
        INFO(daemon.log());
        CHECK(contains(daemon.log(), why));
    };
    refused({nullptr, {}, {socket.descriptor(), other.descriptor()}}, "passes 2 sockets");
    refused({nullptr, {}, {socket.descriptor()}, "petacqd.socket"}, "named \"petacqd.socket\"; expected");
    refused({nullptr, {}, {other.descriptor()}}, "is 127.0.0.1:" + std::to_string(other.port()));

    const int stream = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    refused({nullptr, {}, {stream}}, "is not a UDP socket");
    ::close(stream);
    const int unix_socket = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    refused({nullptr, {}, {unix_socket}}, "is not an IPv4 socket");
    ::close(unix_socket);
    const int unbound = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    refused({nullptr, {}, {unbound}}, "has no port");
    ::close(unbound);
    refused({nullptr, {}, {0}}, "is not a socket");

    sockaddr_in anywhere{};
    anywhere.sin_family = AF_INET;
    const int any = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    REQUIRE(::bind(any, reinterpret_cast<const sockaddr*>(&anywhere), sizeof anywhere) == 0);
    refused({nullptr, {}, {any}}, "is 0.0.0.0:");
    ::close(any);
}
