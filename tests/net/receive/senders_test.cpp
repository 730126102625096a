// Who may send: the table of senders, the admission by id and address, and what is kept of unknown senders.
#include <random>
#include <set>

#include "net/endpoint.hpp"
#include "net/receive/admission.hpp"
#include "net/receive/unknown_senders.hpp"
#include "tests/net/loopback.hpp"
#include "tests/support/catch.hpp"

namespace petacq::test {

namespace {

net::Admitted judged(const net::Admission& admission, net::Endpoint sender, const Bytes& payload) {
    net::DatagramHeader header;
    return admission.judge(sender, payload.data(), payload.size(), header);
}

Bytes datagram(std::uint16_t id, const std::vector<std::uint8_t>& bdms) {
    Bytes bytes(net::header_bytes + bdms.size() * net::frame_bytes);
    net::encode_header({0, id, 1}, bytes.data(), net::FrameVersion::one);
    for (std::size_t i = 0; i < bdms.size(); ++i) {
        net::Frame frame{};
        frame.head_marker = net::default_head_marker;
        frame.tail_marker = net::default_tail_marker;
        frame.bdm = bdms[i];
        net::encode_frame(frame, bytes.data() + net::header_bytes + i * net::frame_bytes,
                          net::FrameVersion::one);
    }
    return bytes;
}

}  // namespace

TEST_CASE("a table of senders agrees with a map") {
    std::mt19937 random(3);
    net::SenderTable table(64);
    std::map<net::Endpoint, std::uint16_t> map;
    std::uint64_t erased = 0;
    for (int i = 0; i < 200'000; ++i) {
        const net::Endpoint sender{0x0A000000U + static_cast<std::uint32_t>(random() % 9),
                                   static_cast<std::uint16_t>(random() % 16)};
        if (random() % 2 == 0) {
            erased += map.erase(sender);
            table.erase(sender);
        } else if (map.size() < 64 && map.count(sender) == 0) {
            const auto number = static_cast<std::uint16_t>(random() % 4096);
            map[sender] = number;
            table.insert(sender, number);
        }
        const net::Endpoint asked{0x0A000000U + static_cast<std::uint32_t>(random() % 9),
                                  static_cast<std::uint16_t>(random() % 16)};
        const auto found = map.find(asked);
        REQUIRE(table.find(asked) == (found == map.end() ? net::SenderTable::none : found->second));
        REQUIRE(table.size() == map.size());
    }
    CHECK(erased > 10'000);
}

TEST_CASE("a listed id may be bound to an address") {
    net::ReceiverOptions options;
    options.allowed_sources = {{7, {}}, {9, {0x0A000002, 0}}};
    const net::Admission admission(options);
    using net::Admitted;
    CHECK(judged(admission, {0x0A000001, 5}, datagram(7, {1})) == Admitted::yes);
    CHECK(judged(admission, {0x0A000002, 5}, datagram(9, {1})) == Admitted::yes);
    CHECK(judged(admission, {0x0A000001, 5}, datagram(9, {1})) == Admitted::unknown_source);
    CHECK(judged(admission, {0x0A000001, 5}, datagram(0, {1})) == Admitted::unknown_source);
    CHECK(judged(admission, {0x0A000001, 5}, Bytes(5)) == Admitted::malformed);
}

TEST_CASE("with bare framing the listed addresses and ports may send, and whatever others send is unknown") {
    net::ReceiverOptions options;
    options.framing = net::Framing::bare;
    options.allowed_sources = {{0, {0x0A000001, 5000}}, {0, {0x0A000001, 5001}}};
    const net::Admission admission(options);
    using net::Admitted;
    CHECK(judged(admission, {0x0A000001, 5001}, Bytes(32)) == Admitted::yes);
    CHECK(judged(admission, {0x0A000001, 5001}, Bytes(33)) == Admitted::malformed);
    CHECK(judged(admission, {0x0A000001, 5002}, Bytes(32)) == Admitted::unknown_source);
    CHECK(judged(admission, {0x0A000002, 5000}, Bytes(33)) == Admitted::unknown_source);
}

TEST_CASE("unknown senders: identity, counts, modules and times") {
    net::UnknownSenders unknown_senders(net::ReceiverOptions{});
    const Bytes five = datagram(40, {1, 2, 3, 4, 5});
    for (int i = 0; i < 5; ++i)
        unknown_senders.heard({0x0A000001, 7}, five.data(), five.size(), 100 + i);
    unknown_senders.heard({0x0A000001, 8}, five.data(), five.size(), 200);  // another port, the same source
    const Bytes garbage(5);
    unknown_senders.heard({0x0A000001, 7}, garbage.data(), garbage.size(), 300);
    Bytes wrong = datagram(41, {9});
    wrong[net::header_bytes] = std::byte{0};
    unknown_senders.heard({0x0A000001, 7}, wrong.data(), wrong.size(), 400);
    CHECK(unknown_senders.published().empty());
    unknown_senders.publish();
    const auto all = unknown_senders.published();
    REQUIRE(all.size() == 3);
    CHECK(all[0].id == 40);
    CHECK(all[0].sender == net::Endpoint{0x0A000001, 8});
    CHECK(all[0].datagrams == 6);
    CHECK(all[0].frames == 30);
    CHECK(all[0].bdms.count() == 5);
    CHECK(all[0].first_ns == 100);
    CHECK(all[0].latest_ns == 200);
    CHECK_FALSE(all[1].id);
    CHECK(all[1].frames == 0);
    CHECK(all[2].id == 41);
    CHECK(all[2].bdms.none());  // without the markers of a frame
}

TEST_CASE("unknown senders: a fixed number is kept, those heard last") {
    net::UnknownSenders unknown_senders(net::ReceiverOptions{});
    for (std::uint16_t id = 0; id < 1000; ++id) {
        for (const std::uint16_t from : {id, std::uint16_t{5}}) {  // 5 is heard all the time
            const Bytes d = datagram(from, {1});
            unknown_senders.heard({0x0A000001, 7}, d.data(), d.size(), id);
        }
    }
    unknown_senders.publish();
    std::set<std::uint16_t> ids;
    std::uint64_t of_five = 0;
    for (const net::UnknownSender& s : unknown_senders.published()) {
        ids.insert(s.id.value());
        if (s.id == 5) of_five = s.datagrams;
    }
    CHECK(ids.size() == net::UnknownSenders::most);
    CHECK(ids.count(999) == 1);
    CHECK(ids.count(998 - net::UnknownSenders::most) == 0);
    CHECK(of_five == 1001);
}

TEST_CASE("unknown senders take no room in batches, with a capture neither") {
    net::ReceiverOptions options;
    options.allowed_sources = {{1, {}}};
    options.keep_rejected = true;
    Loopback loop(options);
    loop.receiver.start();
    PlainSender sender("127.0.0.1", loop.receiver.port());
    for (int i = 0; i < 100; ++i)
        sender.send(datagram(2, {1, 2}));
    sender.send(datagram(1, {3}));
    REQUIRE(loop.wait_received(101));
    REQUIRE(loop.collect_datagrams(1));
    loop.receiver.stop();
    CHECK(loop.received.size() == 1);
    CHECK(loop.received[0].record.first_bdm == 3);
    CHECK(loop.counters().datagrams_unknown_source.value() == 100);
    const auto unknown_senders = loop.receiver.unknown_senders();
    REQUIRE(unknown_senders.size() == 1);
    CHECK(unknown_senders[0].id == 2);
    CHECK(unknown_senders[0].datagrams == 100);
    CHECK(unknown_senders[0].sender.port == sender.port());
}

}  // namespace petacq::test
