#include "net/sender.hpp"

#include <stdexcept>
#include <system_error>

#include "tests/net/loopback.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

std::string sender_refusal(const net::SenderOptions& options) {
    try {
        const net::Sender sender(options);
    } catch (const std::runtime_error& e) {
        return e.what();
    }
    return {};
}

}  // namespace

TEST_CASE("runs of any shape arrive as they were sent") {
    const bool gso = GENERATE(true, false);
    CAPTURE(gso);
    Loopback loop;
    loop.receiver.start();
    auto sender = loop.sender(gso);
    if (!gso) CHECK(!sender.gso());
    std::mt19937_64 random(30);
    std::vector<Bytes> sent;
    // Longer than one GSO send takes in number (64) and in bytes; a shorter last one; a longer one behind.
    for (const std::size_t frames : std::vector<std::size_t>{1, 91, 559, 4000}) {
        const std::size_t count = frames == 4000 ? 3 : 150;
        for (std::size_t i = 0; i < count; ++i)
            sent.push_back(sequenced_datagram(1, sent.size(), frames, random));
        sent.push_back(sequenced_datagram(1, sent.size(), frames / 2, random));
        sent.push_back(sequenced_datagram(1, sent.size(), frames, random));
    }
    std::size_t done = 0;
    for (std::size_t i = 0; i < sent.size(); i += 100) {
        const auto end = sent.begin() + static_cast<std::ptrdiff_t>(std::min(i + 100, sent.size()));
        sender.send(Burst({sent.begin() + static_cast<std::ptrdiff_t>(i), end}).views());
        done = static_cast<std::size_t>(end - sent.begin());
        CHECK(sender.datagrams_sent() == done);
        REQUIRE(loop.wait_received(done));
    }
    REQUIRE(loop.collect_datagrams(sent.size()));
    CHECK(same(sent, loop.received));
}

TEST_CASE("payloads apart in memory keep their order") {
    Loopback loop;
    loop.receiver.start();
    auto sender = loop.sender();
    std::mt19937_64 random(31);
    std::vector<Bytes> sent;
    std::vector<std::span<const std::byte>> views;
    for (std::uint64_t i = 0; i < 200; ++i)
        sent.push_back(sequenced_datagram(1, i, i % 7, random));
    for (const Bytes& b : sent)
        views.emplace_back(b);
    sender.send(views);
    REQUIRE(loop.collect_datagrams(sent.size()));
    CHECK(same(sent, loop.received));
}

TEST_CASE("sending to a closed port is no error, and nothing is lost once it is open") {
    std::mt19937_64 random(32);
    std::vector<Bytes> sent;
    for (std::uint64_t i = 0; i < 30; ++i)
        sent.push_back(sequenced_datagram(1, i, 5, random));
    // A port that was free a moment ago; another program may take it, so more than one attempt.
    for (int attempt = 0; attempt < 10; ++attempt) {
        const std::uint16_t port = Loopback().receiver.port();
        net::Sender sender({"127.0.0.1", port});
        for (const Bytes& b : sent)
            sender.send(Burst({b}).views());
        sender.send(Burst(sent).views());
        REQUIRE(sender.datagrams_sent() == 2 * sent.size());
        net::ReceiverOptions options;
        options.port = port;
        std::unique_ptr<Loopback> loop;
        try {
            loop = std::make_unique<Loopback>(options);
        } catch (const std::runtime_error&) {
            continue;
        }
        loop->receiver.start();
        sender.send(Burst(sent).views());
        REQUIRE(loop->collect_datagrams(sent.size()));
        CHECK(same(sent, loop->received));
        return;
    }
    FAIL("no free port in ten attempts");
}

TEST_CASE("a payload beyond the largest datagram is an error with a clear message") {
    const Loopback loop;
    auto sender = loop.sender();
    CHECK_THROWS_AS(sender.send(Burst({Bytes(65508)}).views()), std::system_error);
    sender.send(Burst({Bytes(65507)}).views());
    CHECK(sender.datagrams_sent() == 1);
}

TEST_CASE("invalid destinations are refused with the reason") {
    CHECK(sender_refusal({"127.0.0.1", 0}) == "cannot send to 127.0.0.1:0: no port; expected 1 to 65535");
    CHECK(sender_refusal({"board 7", 9}).find("'board 7' is not an address") != std::string::npos);
}
