// Set-up: ports, groups, buffers, and the messages when they are refused.
#include <set>
#include <stdexcept>

#include "tests/net/loopback.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

// Why the set-up of a receiver fails; empty if it does not.
std::string receiver_refusal(const net::ReceiverOptions& options) {
    net::BatchPool pool(2, std::size_t{64} << 10, net::make_host_memory({false, false}));
    net::BatchQueue queue(1, 2);
    try {
        const net::Receiver receiver(options, pool, queue.lane(0));
    } catch (const std::runtime_error& e) {
        return e.what();
    }
    return {};
}

}  // namespace

TEST_CASE("refusals name the address, the port and the reason") {
    SECTION("occupied port") {
        const Loopback loop;
        net::ReceiverOptions options;
        options.address = "127.0.0.1";
        options.port = loop.receiver.port();
        const std::string text = receiver_refusal(options);
        CHECK_THAT(text, contains("127.0.0.1:" + std::to_string(options.port)));
        CHECK_THAT(text, contains("Address already in use"));
    }
    SECTION("not an address, an IPv6 address, or an address of another host") {
        net::ReceiverOptions options;
        options.port = 4711;
        options.address = "scanner";
        CHECK_THAT(receiver_refusal(options), contains("scanner:4711: 'scanner' is not an address"));
        options.address = "192.0.2.1";
        CHECK_THAT(receiver_refusal(options), contains("192.0.2.1:4711: Cannot assign requested address"));
    }
    SECTION("not a multicast group") {
        net::ReceiverOptions options;
        options.multicast_groups = {"10.1.2.3"};
        CHECK_THAT(receiver_refusal(options),
                   contains("0.0.0.0:0: multicast group: 10.1.2.3 is not a multicast address"));
        options.multicast_groups = {"239.255.0.1"};
        options.multicast_interface = "192.0.2.1";
        CHECK_THAT(receiver_refusal(options),
                   contains("239.255.0.1 is not joined: no interface has the address 192.0.2.1"));
    }
}

TEST_CASE("a batch must hold the largest datagram") {
    net::BatchPool pool(2, std::size_t{32} << 10, net::make_host_memory({false, false}));
    net::BatchQueue queue(1, 2);
    CHECK_THROWS_AS(net::Receiver({}, pool, queue.lane(0)), std::invalid_argument);
}

TEST_CASE("a receiver can be started once, and need not be started") {
    Loopback never;
    never.receiver.stop();
    Loopback loop;
    loop.receiver.start();
    CHECK_THROWS_AS(loop.receiver.start(), std::logic_error);
    loop.receiver.stop();
    CHECK_THROWS_AS(loop.receiver.start(), std::logic_error);
}

TEST_CASE("a receive buffer below the requested size gives a warning with a remedy") {
    net::ReceiverOptions options;
    options.receive_buffer_bytes = std::size_t{4} << 30;  // more than the kernel can express
    const Loopback clipped(options);
    REQUIRE(clipped.receiver.warnings().size() == 1);
    CHECK_THAT(clipped.receiver.warnings()[0], contains("sysctl -w net.core.rmem_max=4294967296"));
    CHECK(clipped.receiver.receive_buffer_bytes() < options.receive_buffer_bytes);

    options.receive_buffer_bytes = 100'000;
    const Loopback granted(options);
    CHECK(granted.receiver.warnings().empty());
    CHECK(granted.receiver.receive_buffer_bytes() == 100'000);
}

TEST_CASE("a core that does not exist gives a warning") {
    net::ReceiverOptions options;
    options.cores = {100'000};
    Loopback loop(options);
    loop.receiver.start();
    REQUIRE(loop.receiver.warnings().size() == 1);
    CHECK_THAT(loop.receiver.warnings()[0], contains("core 100000"));
}

TEST_CASE("several receivers share a port") {
    net::ReceiverOptions options;
    options.port_use = net::PortUse::first;
    Loopback first(options);
    options.port = first.receiver.port();
    options.port_use = net::PortUse::follows;
    Loopback second(options);
    first.receiver.start();
    second.receiver.start();
    std::mt19937_64 random(20);
    constexpr std::uint16_t senders = 16;
    constexpr std::uint64_t each = 40;
    std::vector<std::vector<Bytes>> sent(senders);
    std::vector<std::unique_ptr<net::Sender>> sockets;  // open at the same time: ports of their own
    for (std::uint16_t id = 0; id < senders; ++id) {
        sockets.push_back(std::make_unique<net::Sender>(net::SenderOptions{"127.0.0.1", options.port}));
        for (std::uint64_t i = 0; i < each; ++i)
            sent[id].push_back(sequenced_datagram(id, i, i, random));
        sockets.back()->send(Burst(sent[id]).views());
    }
    REQUIRE(first.collect_until([&] {
        collect(second.queue, second.pool, second.received);
        return first.received.size() + second.received.size() == senders * each;
    }));
    for (std::uint16_t id = 0; id < senders; ++id) {
        CAPTURE(id);
        std::vector<Received> of_first;
        std::vector<Received> of_second;
        for (const Received& r : first.received) {
            if (r.record.source == id) of_first.push_back(r);
        }
        for (const Received& r : second.received) {
            if (r.record.source == id) of_second.push_back(r);
        }
        // The kernel sends the datagrams of a sender to one receiver, so their order is kept.
        CHECK(same(sent[id], of_first) != same(sent[id], of_second));
        CHECK((of_first.empty() || of_second.empty()));
    }
    CHECK(first.identity_closes());
    CHECK(second.identity_closes());
}

TEST_CASE("multicast") {
    net::ReceiverOptions options;
    options.multicast_groups = {"239.255.77.13"};
    options.multicast_interface = "127.0.0.1";
    std::unique_ptr<Loopback> loop;
    std::unique_ptr<net::Sender> sender;
    try {
        loop = std::make_unique<Loopback>(options);
        sender = std::make_unique<net::Sender>(net::SenderOptions{
            options.multicast_groups.front(), loop->receiver.port(), true, 1U << 20, "127.0.0.1"});
    } catch (const std::runtime_error& e) {
        WARN("skipped: no multicast on loopback here: " << e.what());
        return;
    }
    loop->receiver.start();
    std::mt19937_64 random(21);
    std::vector<Bytes> sent;
    for (std::uint64_t i = 0; i < 100; ++i)
        sent.push_back(sequenced_datagram(3, i, 20, random));
    sender->send(Burst(sent).views());
    REQUIRE(loop->collect_datagrams(sent.size()));
    CHECK(same(sent, loop->received));
}

TEST_CASE("IPv6 boards, and IPv4 boards on a socket of both families") {
    net::ReceiverOptions options;
    options.address = "::";
    options.allowed_sources = {{3, {net::parse_address("::1", "test"), 0}, {}},
                               {4, {net::parse_address("127.0.0.1", "test"), 0}, {}}};
    std::unique_ptr<Loopback> loop;
    std::unique_ptr<net::Sender> six;
    try {
        loop = std::make_unique<Loopback>(options);
        six = std::make_unique<net::Sender>(net::SenderOptions{"::1", loop->receiver.port()});
    } catch (const std::runtime_error& e) {
        WARN("skipped: no IPv6 here: " << e.what());
        return;
    }
    net::Sender four(net::SenderOptions{"127.0.0.1", loop->receiver.port()});
    loop->receiver.start();
    std::mt19937_64 random(22);
    const std::vector<Bytes> good{sequenced_datagram(3, 0, 20, random)};
    six->send(Burst(good).views());
    REQUIRE(loop->collect_datagrams(1));
    const std::vector<Bytes> others{sequenced_datagram(4, 0, 20, random)};
    six->send(Burst(others).views());  // an id of another address
    four.send(Burst(others).views());
    REQUIRE(loop->collect_datagrams(2));
    CHECK(net::address_text(loop->received[0].record.address) == "::1");
    CHECK(net::address_text(loop->received[1].record.address) == "127.0.0.1");
    REQUIRE(loop->wait_received(3));
    CHECK(loop->counters().datagrams_unknown_source.value() == 1);
}
