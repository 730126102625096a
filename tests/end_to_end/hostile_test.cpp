// Garbage sent to the port of the frames and to the control socket during a run is counted and has no effect.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <random>

#include "net/wire.hpp"
#include "tests/end_to_end/daemon_fixture.hpp"
#include "tests/support/catch.hpp"

using namespace petacq::test;
using nlohmann::json;

namespace {

class Socket {
  public:
    explicit Socket(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in to{};
        to.sin_family = AF_INET;
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        to.sin_port = htons(port);
        REQUIRE(::connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0);
    }
    ~Socket() { ::close(fd_); }
    Socket(const Socket&) = delete;
    Socket& operator=(const Socket&) = delete;
    void send(const std::string& bytes) const {
        REQUIRE(::send(fd_, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
    }

  private:
    int fd_;
};

std::string heartbeat(std::uint16_t source) {
    std::string bytes(petacq::net::header_bytes, '\0');
    petacq::net::encode_header({0, source, 7}, reinterpret_cast<std::byte*>(bytes.data()),
                               petacq::net::FrameVersion::one);
    return bytes;
}

struct Garbage {
    std::vector<std::string> malformed;
    std::vector<std::string> of_unknown_senders;  // well-formed, but from source ids that are not on the list
};

Garbage make_garbage() {
    Garbage garbage;
    std::mt19937 random(1);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same each time
    const auto noise = [&](std::size_t bytes) {
        std::string text(bytes, '\0');
        for (char& c : text)
            c = static_cast<char>(random());
        return text;
    };
    const std::string good = heartbeat(0);
    for (int round = 0; round < 8; ++round) {
        garbage.malformed.emplace_back();                        // empty
        garbage.malformed.push_back(good.substr(0, 1 + round));  // a truncated header
        garbage.malformed.push_back(good.substr(0, 15));
        garbage.malformed.push_back(noise(16));
        garbage.malformed.push_back(noise(1472));
        garbage.malformed.push_back(noise(65507));               // the most that UDP carries
        garbage.malformed.push_back(good + noise(16 * 90 + 3));  // half a frame
        garbage.malformed.push_back(good +
                                    noise(65507 - 16));  // the most that UDP carries, and not whole frames
        std::string version = good + noise(64);
        version[4] = 2;
        garbage.malformed.push_back(version);
        garbage.of_unknown_senders.push_back(heartbeat(99));
        garbage.of_unknown_senders.push_back(heartbeat(4) + noise(16 * 50));
    }
    return garbage;
}

}  // namespace

TEST_CASE("hostile senders and clients do not affect a run", "[e2e][hostile]") {
    const std::vector<std::string> stream{"--seed", "21", "--duration-s", "0.6"};
    const std::string undisturbed = undisturbed_payload(stream);

    const Site site;
    Daemon daemon(site);
    const std::string socket = site.socket().string();
    daemon.start("r");
    std::vector<std::string> arguments = short_stream(daemon, stream);
    arguments.insert(arguments.end(), {"--summary", (site.directory() / "summary.json").string()});
    Process petsim(PETSIM_PROGRAM, petsim_arguments(site, arguments), site.directory() / "petsim");
    REQUIRE(daemon.until([](const json& s) { return s["ledger"]["frames"]["received"] > 0; }));

    // Clients that stay to the end: one never reads, one sends half a line, one subscribes and sleeps.
    using petacq::daemon::ControlClient;
    using petacq::daemon::ControlUnavailable;
    ControlClient deaf(socket);
    for (int i = 0; i < 40; ++i)
        deaf.send_bytes(R"({"jsonrpc":"2.0","id":1,"method":"status"})"
                        "\n");
    ControlClient half(socket);
    half.send_bytes(R"({"jsonrpc":"2.0","id":1,"meth)");
    ControlClient sleeper(socket);
    sleeper.send_bytes(R"({"jsonrpc":"2.0","id":1,"method":"subscribe","params":{"interval_s":0.1}})"
                       "\n");

    const Garbage garbage = make_garbage();
    {
        const Socket first(daemon.ports().front());
        const Socket second(daemon.ports().front());
        for (std::size_t i = 0; i < garbage.malformed.size(); ++i)
            (i % 2 == 0 ? first : second).send(garbage.malformed[i]);
        for (const std::string& datagram : garbage.of_unknown_senders)
            second.send(datagram);
    }
    for (const std::string& line :
         {std::string("garbage"), std::string("\xff\xfe\x00\x01", 4), std::string("[]"),
          std::string(200, '['),
          std::string(R"({"jsonrpc":"2.0","id":1,"method":"stop","params":{"now":true}})"),
          std::string(R"({"jsonrpc":"2.0","id":1,"method":"halt"})")}) {
        ControlClient client(socket);
        client.send_bytes(line + "\n");
        const auto answer = client.read_line();
        REQUIRE(answer);
        CHECK(json::parse(*answer).contains("error"));
    }
    {
        ControlClient large(socket);
        try {
            large.send_bytes(std::string(10'000'000, 'x'));
            large.send_bytes("\n");
        } catch (const ControlUnavailable&) {
            // The daemon may disconnect before everything is sent.
        }
        CHECK_THROWS_AS(
            [&] {
                while (large.read_line()) {
                }
            }(),
            ControlUnavailable);
    }
    REQUIRE(petsim.wait() == 0);
    const json summary = json::parse(read_file(site.directory() / "summary.json"));
    const auto sent = summary["total"]["expected"]["datagrams_received"].get<std::uint64_t>();
    REQUIRE(daemon.received(sent + garbage.malformed.size() + garbage.of_unknown_senders.size()));
    CHECK(daemon.stop()["ledger_closed"] == true);
    const json ledger = site.run_json("r")["ledger"];
    INFO(ledger.dump(1));
    CHECK(ledger["closed"] == true);
    CHECK(ledger["datagrams"]["malformed"] == garbage.malformed.size());
    CHECK(ledger["datagrams"]["unknown_source"] == garbage.of_unknown_senders.size());
    CHECK(ledger["datagrams"]["accepted"] == sent);
    CHECK(ledger["datagrams"]["lost"] == 0);
    CHECK(ledger["frames"]["received"] == summary["total"]["frames"]);
    CHECK(payload_of(site.run("r") / "coincidences.plm") == undisturbed);
    CHECK(daemon.terminate() == 0);
}
