// Ten thousand simultaneous connections to HTTP and to the control socket, many of them hostile, during a
// run: they change neither its ledger nor its list-mode.
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <memory>

#include "daemon/control/json_rpc.hpp"
#include "tests/daemon/http/fixture.hpp"
#include "tests/end_to_end/daemon_fixture.hpp"
#include "tests/support/catch.hpp"

using namespace petacq::test;
using nlohmann::json;
using petacq::daemon::ControlClient;

namespace {

constexpr std::size_t crowd = 10'000;

/// Sets the soft limit of open files, and restores it at the end.
class OpenFiles {
  public:
    explicit OpenFiles(rlim_t wanted) {
        REQUIRE(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
        set(wanted);
    }
    ~OpenFiles() { ::setrlimit(RLIMIT_NOFILE, &before_); }
    OpenFiles(const OpenFiles&) = delete;
    OpenFiles& operator=(const OpenFiles&) = delete;
    void set(rlim_t wanted) const {
        const rlimit limit{std::min(wanted, before_.rlim_max), before_.rlim_max};
        REQUIRE(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
    }
    /// The number of connections that this process can hold.
    [[nodiscard]] std::size_t max_connections() const {
        return std::min<std::size_t>(crowd, before_.rlim_max - 200);
    }

  private:
    rlimit before_{};
};

std::string many_times(const std::string& request) {
    std::string all;
    for (int i = 0; i < 500; ++i)
        all += request;
    return all;
}

/// Sends what a client of this kind sends; the connection stays open.
void misbehave(HttpClient& client, std::size_t kind) {
    static const std::string ask = "GET /singles HTTP/1.1\r\nHost: localhost\r\n\r\n";
    static const std::string pipelined = many_times(ask);
    switch (kind % 8) {
        case 0:  // sends nothing
            break;
        case 1:
            client.send("GET /sta");
            break;
        case 2:
            client.send("GET /" + std::string(70'000, 'x'));
            break;
        case 3:  // reads none of the answers
            client.send(pipelined);
            break;
        case 4:
            client.send(ask);
            client.half_close();
            break;
        case 5:
            client.half_close();
            break;
        case 6:
            client.send("POST /status HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60000\r\n\r\nx");
            break;
        case 7:
            client.send(
                "POST /control/stop HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                "application/json\r\nContent-Length: 2\r\n\r\n{}");
            break;
    }
}

void misbehave(ControlClient& client, std::size_t kind) {
    static const std::string ask = R"({"jsonrpc":"2.0","id":1,"method":"status"})"
                                   "\n";
    static const std::string pipelined = many_times(ask);
    switch (kind % 8) {
        case 0:
            break;
        case 1:
            client.send_bytes(R"({"jsonrpc":"2.0","id":1,"meth)");
            break;
        case 2:
            client.send_bytes(std::string(2'000'000, 'x'));
            break;
        case 3:
            client.send_bytes(pipelined);
            break;
        case 4:
            client.send_bytes(R"({"jsonrpc":"2.0","id":1,"method":"subscribe","params":{"interval_s":0.1}})"
                              "\n");
            break;
        case 5:
            client.send_bytes(ask);
            client.finish_sending();
            break;
        case 6:
            client.send_bytes(std::string(100'000, '['));
            break;
        case 7:
            client.send_bytes(R"({"jsonrpc":"2.0","id":1,"method":"stop","params":{"now":true}})"
                              "\n");
            break;
    }
}

/// Opens that many connections and keeps them; the number that were accepted or refused with a reason.
template <class Client, class Where>
std::vector<std::unique_ptr<Client>> gather(Where where, std::size_t count, std::size_t& connected) {
    std::vector<std::unique_ptr<Client>> clients;
    clients.reserve(count);
    connected = 0;
    for (std::size_t i = 0; i < count; ++i) {
        try {
            clients.push_back(std::make_unique<Client>(where));
            ++connected;
            misbehave(*clients.back(), i);
        } catch (const std::exception&) {
            // Refused, and closed before everything was sent.
        }
    }
    return clients;
}

}  // namespace

TEST_CASE("ten thousand simultaneous connections do not affect a run", "[e2e][http][control][hostile]") {
    const OpenFiles files(64);  // the daemon starts with this limit and must raise it
    Site site(json{{"listmode", {{"write_raw", true}}}, {"receive", {{"batch_count", 128}}}});
    Daemon daemon(site);
    files.set(crowd + 200);
    const std::size_t count = files.max_connections();
    if (count < crowd) WARN("only " << count << " connections: the limit of open files is lower");
    const std::uint16_t port = daemon.http_port();
    daemon.start("r");
    std::vector<std::string> arguments = short_stream(daemon, {"--duration-s", "600", "--rate", "100000"});
    arguments.insert(arguments.end(), {"--summary", (site.directory() / "summary.json").string()});
    Process petsim(PETSIM_PROGRAM, petsim_arguments(site, arguments), site.directory() / "petsim");
    REQUIRE(daemon.until([](const json& s) { return s["ledger"]["frames"]["received"] > 10'000; }));

    const auto frames = [&] { return daemon.status()["ledger"]["frames"]["received"].get<std::uint64_t>(); };
    std::size_t connected = 0;
    {
        const auto clients = gather<HttpClient>(port, count, connected);
        CHECK(connected == count);
        // With all of them open, the operator can still use the control socket.
        const std::uint64_t before = frames();
        CHECK(daemon.until([&](const json& s) { return s["ledger"]["frames"]["received"] > before; }));
    }
    CHECK(eventually([&] { return http_get(port, "/healthz").status == 200; }));
    {
        const std::uint64_t before = frames();
        const auto clients = gather<ControlClient>(site.socket().string(), count, connected);
        CHECK(connected == count);
        CHECK(http_get(port, "/status").status == 200);
        CHECK(eventually([&] {
            const json s = json::parse(http_get(port, "/status").body);
            return s["ledger"]["frames"]["received"] > before;
        }));
    }
    // The connection of the operator was not in use, and has given way to those of the crowd.
    CHECK(eventually([&] {
        try {
            daemon.connect_again();
            return daemon.status()["state"] == "running";
        } catch (const std::exception&) {
            return false;
        }
    }));
    CHECK(petsim.running());  // all of this happened while data arrived
    petsim.signal(SIGTERM);
    CHECK(petsim.wait() == 0);

    const json summary = json::parse(read_file(site.directory() / "summary.json"));
    const auto sent = summary["total"]["expected"]["datagrams_received"].get<std::uint64_t>();
    CHECK(daemon.received(sent));
    CHECK(daemon.stop()["ledger_closed"] == true);
    CHECK(daemon.terminate() == 0);
    const json run = site.run_json("r");
    const json& ledger = run["ledger"];
    INFO(ledger.dump(1));
    CHECK(run["state"] == "complete");
    CHECK(ledger["closed"] == true);
    CHECK(ledger["datagrams"]["accepted"] == sent);
    CHECK(ledger["datagrams"]["lost"] == 0);
    CHECK(ledger["datagrams"]["dropped_kernel"] == 0);
    CHECK(ledger["datagrams"]["dropped_no_buffer"] == 0);
    CHECK(ledger["frames"]["received"] == summary["total"]["frames"]);
    CHECK(ledger["frames"]["late"] == 0);
    CHECK(run["capture"]["datagrams_dropped"] == 0);

    // The same datagrams without any client.
    const Outcome replay =
        run_program(PETACQD_PROGRAM, {"--config", site.configuration(), "--replay",
                                      (site.run("r") / "raw.pcap").string(), "--run", "in-peace"});
    CHECK(replay.status == 0);
    CHECK(payload_of(site.run("r") / "coincidences.plm") ==
          payload_of(site.run("in-peace") / "coincidences.plm"));
}
