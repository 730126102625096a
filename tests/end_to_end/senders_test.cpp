// Who may send: with a list of sources, nothing that unknown senders send at any moment changes a run.
#include <span>

#include "net/sender.hpp"
#include "net/wire.hpp"
#include "tests/end_to_end/daemon_fixture.hpp"
#include "tests/support/catch.hpp"

using namespace petacq::test;
using nlohmann::json;
namespace net = petacq::net;

namespace {

/// A datagram with two frames of a module at one time.
std::vector<std::byte> datagram(std::uint16_t id, std::uint64_t sequence, std::uint64_t time,
                                std::uint8_t bdm, std::uint8_t head_marker = net::default_head_marker) {
    std::vector<std::byte> bytes(net::header_bytes + 2 * net::frame_bytes);
    net::encode_header({0, id, sequence}, bytes.data(), net::FrameVersion::one);
    net::Frame frame{};
    frame.head_marker = head_marker;
    frame.tail_marker = net::default_tail_marker;
    frame.bdm = bdm;
    frame.time = time;
    frame.energy = 1000;
    for (const std::size_t at : {net::header_bytes, net::header_bytes + net::frame_bytes})
        net::encode_frame(frame, bytes.data() + at, net::FrameVersion::one);
    return bytes;
}

class UnknownSenders {
  public:
    explicit UnknownSenders(Daemon& daemon)
        : daemon_(daemon), sender_({"127.0.0.1", daemon.ports().front(), false}) {}

    void send(const std::vector<std::byte>& bytes) {
        const std::span<const std::byte> one(bytes);
        sender_.send({&one, 1});
        ++sent;
    }
    /// `count` made-up ids from 1000 on send two datagrams each. Waits until the daemon has counted them.
    void invade(std::uint32_t count, std::uint64_t time) {
        for (std::uint32_t i = 0; i < count; ++i) {
            for (std::uint64_t sequence = 0; sequence < 2; ++sequence)
                send(datagram(static_cast<std::uint16_t>(1000 + i), sequence, time, 3));
            if (i % 200 == 199) REQUIRE(counted());
        }
        REQUIRE(counted());
    }
    bool counted() {
        return daemon_.until(
            [&](const json& s) { return s["total"]["datagrams"]["unknown_source"] == sent; });
    }

    std::uint64_t sent = 0;

  private:
    Daemon& daemon_;
    net::Sender sender_;
};

std::vector<std::string> codes(const json& status) {
    std::vector<std::string> all;
    for (const json& reason : status["health"]["reasons"])
        all.push_back(reason["code"]);
    return all;
}

}  // namespace

TEST_CASE("unknown senders before, in and after a run cost nothing and are reported", "[e2e][senders]") {
    const std::vector<std::string> stream{"--seed", "33", "--start-time-s", "3600"};
    const std::string undisturbed = undisturbed_payload(stream);
    REQUIRE(undisturbed.size() > 10'000);

    const Site site(json{{"listmode", {{"write_raw", true}}}});
    Daemon daemon(site);
    UnknownSenders unknown_senders(daemon);
    // The newest time and time 0, with wrong markers and with right ones.
    unknown_senders.send(datagram(7777, 0, UINT64_MAX, 3, 0));
    unknown_senders.send(datagram(7777, 1, UINT64_MAX, 3));
    unknown_senders.send(datagram(7778, 0, 0, 3));
    unknown_senders.invade(5000, 0);  // more than the table of sources has room for
    daemon.start("r");
    unknown_senders.send(datagram(7777, 2, UINT64_MAX, 3));
    REQUIRE(unknown_senders.counted());

    std::vector<std::string> arguments = short_stream(daemon, stream);
    arguments.insert(arguments.end(), {"--summary", (site.directory() / "summary.json").string()});
    Process petsim(PETSIM_PROGRAM, petsim_arguments(site, arguments), site.directory() / "petsim");
    REQUIRE(daemon.until([](const json& s) { return s["ledger"]["frames"]["received"] > 0; }));
    const std::uint64_t hour = 3'600'000'000'000'000 / 15625 * 1000;
    unknown_senders.invade(9, 0);
    unknown_senders.invade(9, 2 * hour);
    REQUIRE(petsim.wait() == 0);
    unknown_senders.invade(9, 3 * hour);

    const json status = daemon.status();
    CHECK(status["sources"].size() == 4);
    CHECK(status["unknown_sources"].size() == 16);
    CHECK(status["unknown_sources"][0]["bdms"] == "3");
    CHECK(daemon.until([](const json& s) { return codes(s) == std::vector<std::string>{"unknown_source"}; }));
    const Outcome heard =
        run_program(PETCTL_PROGRAM, {"--socket", site.socket().string(), "sources", "--json"});
    INFO(heard.out);
    REQUIRE(heard.status == 0);
    const json list = json::parse(heard.out);
    CHECK(list.size() == 4 + 16);
    CHECK(list[1] == json{{"id", 1}, {"bdms", {6, 7, 8, 9, 10, 11}}});

    const json summary = json::parse(read_file(site.directory() / "summary.json"));
    const auto of_boards = summary["total"]["expected"]["datagrams_received"].get<std::uint64_t>();
    REQUIRE(daemon.received(of_boards + unknown_senders.sent));
    CHECK(daemon.stop()["ledger_closed"] == true);
    const json ledger = site.run_json("r")["ledger"];
    INFO(ledger.dump(1));
    CHECK(ledger["datagrams"]["unknown_source"] == unknown_senders.sent - 3 - 10'000);
    CHECK(ledger["datagrams"]["accepted"] == of_boards);
    CHECK(site.run_json("r")["capture"]["datagrams_offered"] == of_boards);
    CHECK(payload_of(site.run("r") / "coincidences.plm") == undisturbed);
    CHECK_FALSE(contains(daemon.log(), "7777"));  // no line for each datagram
    CHECK(daemon.terminate() == 0);
}

TEST_CASE("a module that is not its source's is a bad address", "[e2e][senders]") {
    // Other sources than the scanner description lists: 0 to 23 with a module each.
    const Site site(json{{"watermark", {{"source_timeout_ms", 500}}}});
    Daemon daemon(site);
    daemon.start("r");
    const json summary = simulate(site, {"--cylinder", "0,0,0,10,20,0.45", "--sources", "24", "--duration-s",
                                         "0.1", "--to", daemon.address()});
    REQUIRE(daemon.received(summary["total"]["expected"]["datagrams_received"]));
    CHECK(daemon.stop()["ledger_closed"] == true);
    const json ledger = site.run_json("r")["ledger"];
    INFO(ledger.dump(1));
    std::uint64_t of_unknown_senders = 0;
    std::uint64_t elsewhere = 0;
    const json& sources = summary["sources"];
    for (std::size_t id = 1; id < sources.size(); ++id) {
        const json& expected = sources[id]["expected"];
        if (id < 4) elsewhere += expected["frames_received"].get<std::uint64_t>();
        if (id >= 4) of_unknown_senders += expected["datagrams_received"].get<std::uint64_t>();
    }
    CHECK(ledger["datagrams"]["unknown_source"] == of_unknown_senders);
    CHECK(ledger["frames"]["bad_address"] == elsewhere);
    CHECK(ledger["frames"]["received"] ==
          elsewhere + sources[0]["expected"]["frames_received"].get<std::uint64_t>());
    CHECK(daemon.terminate() == 0);
}

TEST_CASE("bare sources are known by address and port", "[e2e][senders]") {
    // Captures have the ports of the senders; petsim writes them into its description of the scanner.
    Site site(json{{"receive", {{"framing", "bare"}}}, {"sources", {{"accept_any", true}}}});
    const std::string file = (site.directory() / "bare.pcap").string();
    const json summary = simulate(site, {"--cylinder", "0,0,0,10,20,0.45", "--sources", "4", "--framing",
                                         "bare", "--duration-s", "0.1", "--write", file});
    REQUIRE(summary["scanner"]["sources"].size() == 4);
    CHECK(summary["scanner"]["sources"][2]["port"] == 40002);
    json scanner = summary["scanner"];
    scanner["sources"][3]["port"] = 40009;  // source 3 is unknown
    write_file(site.scanner(), scanner.dump());
    site.configure({{"receive", {{"framing", "bare"}, {"sockets", {{{"port", 0}}}}}}});
    const Outcome replay =
        run_program(PETACQD_PROGRAM, {"--config", site.configuration(), "--replay", file, "--run", "r"});
    INFO(replay.err);
    REQUIRE(replay.status == 65);  // a listed sender sends nothing
    const json ledger = site.run_json("r")["ledger"];
    INFO(ledger.dump(1));
    CHECK(ledger["datagrams"]["unknown_source"] == summary["sources"][3]["expected"]["datagrams_received"]);
    CHECK(ledger["datagrams"]["accepted"].get<std::uint64_t>() +
              ledger["datagrams"]["unknown_source"].get<std::uint64_t>() ==
          summary["total"]["expected"]["datagrams_received"]);
    CHECK(ledger["frames"]["bad_address"] == 0);
}

TEST_CASE("the check of a configuration refuses unknown senders and too many", "[e2e][senders]") {
    Site site;
    const auto check = [&] {
        return run_program(PETACQD_PROGRAM, {"--check", "--config", site.configuration()});
    };
    CHECK(check().status == 0);
    json ids = json::array();
    for (int id = 0; id < 5000; ++id)
        ids.push_back(id);
    site.configure({{"sources", {{"ids", ids}}}});
    CHECK(check().status == 78);
    CHECK(contains(check().err, "/sources/ids: expected"));
    CHECK(contains(check().err, "at most 4096"));
    json scanner = json::parse(read_file(site.scanner()));
    scanner.erase("sources");
    write_file(site.scanner(), scanner.dump());
    site.configure(json::object());
    CHECK(check().status == 78);
    CHECK(contains(check().err, "/sources: expected to find who may send"));
    site.configure({{"sources", {{"accept_any", true}}}});
    CHECK(check().status == 0);
}
