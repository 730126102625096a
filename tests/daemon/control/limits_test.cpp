// Clients that misbehave, stop reading, are too many or send too much.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "daemon/control/server.hpp"
#include "tests/daemon/control/fixture.hpp"
#include "tests/support/catch.hpp"

using namespace petacq::daemon;
using namespace petacq::test;
using nlohmann::json;

namespace {

const std::string status_request = R"({"jsonrpc":"2.0","id":1,"method":"status"})";

json large_status() {
    return {{"state", "idle"}, {"filling", std::string(200'000, 'x')}};
}

/// Sends data that the server may refuse.
void send_all(ControlClient& client, const std::string& bytes) {
    try {
        client.send_bytes(bytes);
    } catch (const ControlUnavailable&) {
    }
}

}  // namespace

TEST_CASE("control: a line of 10 MB gets an error and the door", "[control]") {
    TestServer server;
    for (const bool complete : {false, true}) {
        ControlClient client(server.socket());
        send_all(client, std::string(10'000'000, ' ') + (complete ? "\n" : ""));
        const json answer = json::parse(client.read_line().value());
        CHECK(answer["error"]["code"] == -32600);
        CHECK(answer["error"]["message"] == "invalid request: longer than 1048576 bytes");
        CHECK_THROWS_AS(client.read_line(), ControlUnavailable);
    }
    CHECK(server.statistics().dropped == 2);
    CHECK(ControlClient(server.socket()).call("status")["state"] == "idle");
}

TEST_CASE("control: the longest request is served, one byte more is not", "[control]") {
    petacq::config::Control options = configuration_with().control;
    options.max_request_bytes = 1000;
    TestServer server(options);
    ControlClient client(server.socket());
    std::string line = status_request + std::string(1000 - status_request.size(), ' ');
    CHECK(ask(client, line)["id"] == 1);
    // Both lines in one packet: the limit applies to complete lines, too.
    client.send_bytes(line + "\n" + line + " \n");
    CHECK(json::parse(client.read_line().value())["id"] == 1);
    CHECK(json::parse(client.read_line().value())["error"]["code"] == -32600);
    CHECK_THROWS_AS(client.read_line(), ControlUnavailable);
}

TEST_CASE("control: clients above the limit are refused with a reason", "[control]") {
    TestServer server;
    std::vector<std::unique_ptr<ControlClient>> clients;
    int served = 0;
    int refused = 0;
    for (int i = 0; i < 200; ++i) {
        clients.push_back(std::make_unique<ControlClient>(server.socket()));
        try {
            served += clients.back()->call("status")["state"] == "idle" ? 1 : 0;
            // A client that waits for an answer keeps its place.
            clients.back()->send_bytes(R"({"jsonrpc":"2.0","id":1,"method":"stop"})"
                                       "\n");
            REQUIRE(eventually([&] { return server.handler.stops() == static_cast<std::size_t>(served); }));
        } catch (const RpcError& error) {
            refused += std::string(error.what()) == "too many clients, at most 128" ? 1 : 0;
        }
    }
    CHECK(served == 128);
    CHECK(refused == 72);
    CHECK(server.statistics().clients == 128);
    CHECK(server.statistics().refused == 72);
    clients.clear();
    CHECK(eventually([&] { return server.statistics().clients == 0; }));
    CHECK(ControlClient(server.socket()).call("status")["state"] == "idle");
}

TEST_CASE("control: idle clients give way to others, the one idle for longest first", "[control]") {
    petacq::config::Control options = configuration_with().control;
    options.max_clients = 3;
    TestServer server(options);
    ControlClient subscriber(server.socket());
    subscriber.call("subscribe", {{"interval_s", 3600}});
    ControlClient second(server.socket());
    second.call("status");
    ControlClient third(server.socket());
    third.call("status");
    second.call("status");  // now the third has been idle for longer

    ControlClient operator_(server.socket());
    CHECK(operator_.call("status")["state"] == "idle");
    CHECK(second.call("status")["state"] == "idle");
    const json reason = json::parse(third.read_line().value());
    CHECK(reason["error"]["message"] ==
          "disconnected: others need the connection, and this one was not in use");
    CHECK_THROWS_AS(third.read_line(), ControlUnavailable);
    CHECK(server.statistics().dropped == 1);
    CHECK(server.statistics().refused == 0);

    // A client that waits for its answer is not idle.
    second.send_bytes(R"({"jsonrpc":"2.0","id":1,"method":"stop"})"
                      "\n");
    operator_.send_bytes(R"({"jsonrpc":"2.0","id":1,"method":"stop"})"
                         "\n");
    REQUIRE(eventually([&] { return server.handler.stops() == 2; }));
    // Where no client is idle, a subscriber gives way; where there is none either, nobody does.
    ControlClient served(server.socket());
    CHECK(served.call("status")["state"] == "idle");
    CHECK_THROWS_AS(subscriber.call("status"), RpcError);
    served.send_bytes(R"({"jsonrpc":"2.0","id":1,"method":"stop"})"
                      "\n");
    REQUIRE(eventually([&] { return server.handler.stops() == 3; }));
    ControlClient refused(server.socket());
    CHECK_THROWS_AS(refused.call("status"), RpcError);
    CHECK(server.statistics().clients == 3);
}

TEST_CASE("control: a subscriber that never reads is skipped, nothing piles up", "[control]") {
    TestServer server;
    server.handler.set_status(large_status());
    ControlClient stuck(server.socket());
    stuck.send_bytes(R"({"jsonrpc":"2.0","id":1,"method":"subscribe","params":{"interval_s":0.1}})"
                     "\n");
    REQUIRE(eventually([&] { return server.statistics().skipped >= 1; }));
    const std::uint64_t calls = server.handler.status_calls();
    REQUIRE(eventually([&] { return server.statistics().skipped >= 5; }));
    // The server requests no new status while the previous one waits.
    CHECK(server.handler.status_calls() == calls);
    ControlClient other(server.socket());
    for (int i = 0; i < 20; ++i)
        CHECK(other.call("status")["state"] == "idle");
    // The client is served again once it reads.
    CHECK(json::parse(stuck.read_line().value()).contains("result"));
    for (int i = 0; i < 3; ++i)
        CHECK(stuck.next_notification(std::chrono::seconds(60)).has_value());
}

TEST_CASE("control: a client that takes nothing for long is disconnected", "[control]") {
    TestServer server(configuration_with().control, std::chrono::milliseconds(200));
    server.handler.set_status(large_status());
    ControlClient stuck(server.socket());
    stuck.send_bytes(R"({"jsonrpc":"2.0","id":1,"method":"subscribe","params":{"interval_s":0.1}})"
                     "\n");
    CHECK(eventually([&] { return server.statistics().dropped == 1; }));
    CHECK(server.statistics().clients == 0);
    CHECK(ControlClient(server.socket()).call("status")["state"] == "idle");
}

TEST_CASE("control: requests wait while their client does not read the answers", "[control]") {
    petacq::config::Control options = configuration_with().control;
    options.send_buffer_bytes = 1'000'000;
    TestServer server(options);
    server.handler.set_status(large_status());
    ControlClient client(server.socket());
    std::string packet;
    for (int i = 0; i < 100; ++i)
        packet += status_request + "\n";
    client.send_bytes(packet);
    ControlClient other(server.socket());
    for (int i = 0; i < 30; ++i)
        other.call("status");
    // Half the send buffer and the kernel's buffer: far below 100.
    CHECK(server.handler.status_calls() < 30 + 20);
    for (int i = 0; i < 100; ++i)
        CHECK(json::parse(client.read_line().value())["id"] == 1);
    CHECK(server.statistics().dropped == 0);
}

TEST_CASE("control: late answers that pile up unread cost the connection", "[control]") {
    petacq::config::Control options = configuration_with().control;
    options.send_buffer_bytes = 1'000'000;
    TestServer server(options);
    ControlClient client(server.socket());
    for (int i = 0; i < 20; ++i) {
        client.send_bytes(R"({"jsonrpc":"2.0","id":1,"method":"stop"})"
                          "\n");
    }
    REQUIRE(eventually([&] { return server.handler.stops() == 20; }));
    for (int i = 0; i < 20; ++i)
        server.handler.take_stop().result(large_status());
    CHECK(eventually([&] { return server.statistics().dropped == 1; }));
    CHECK(eventually([&] { return server.statistics().clients == 0; }));
}

TEST_CASE("control: an answer is sent whatever its size, those of a batch if they fit into the send buffer",
          "[control]") {
    petacq::config::Control options = configuration_with().control;
    options.send_buffer_bytes = 100'000;
    TestServer server(options);
    server.handler.set_status(large_status());
    ControlClient client(server.socket());
    CHECK(client.call("status") == large_status());
    // Also while one that is as large is on its way.
    client.call("subscribe", {{"interval_s", 0.1}});
    for (int i = 0; i < 20; ++i)
        CHECK(client.call("status") == large_status());
    client.call("unsubscribe");

    server.handler.set_status({{"filling", std::string(40'000, 'x')}});
    json batch = json::array();
    for (int i = 0; i < 4; ++i)
        batch.push_back(json::parse(status_request));
    const json answers = ask(client, batch.dump());
    REQUIRE(answers.size() == 4);
    CHECK(answers[1].contains("result"));
    CHECK(answers[2]["error"]["code"] == -32603);
    CHECK(answers[3]["error"]["code"] == -32603);
}

TEST_CASE("control: a subscriber that is slow to read an answer is told the status behind it", "[control]") {
    petacq::config::Control options = configuration_with().control;
    options.send_buffer_bytes = 100'000;
    TestServer server(options);
    ControlClient client(server.socket());
    // The only notification is the one that this test asks for: an earlier one would delay the request.
    client.call("subscribe", {{"interval_s", 3600}});
    // More than the kernel takes: the answer is on its way as long as nobody reads.
    const json status = {{"filling", std::string(10'000'000, 'x')}};
    server.handler.set_status(status);
    const std::uint64_t before = server.handler.status_calls();
    client.send_bytes(status_request + std::string("\n"));
    REQUIRE(eventually([&] { return server.handler.status_calls() == before + 1; }));
    server.tell_subscribers();
    REQUIRE(eventually([&] { return server.handler.status_calls() == before + 2; }));
    bool answered = false;
    bool told = false;
    while (!answered || !told) {
        const json line = json::parse(client.read_line().value());
        answered = answered || (line.contains("id") && line["result"] == status);
        told = told || (answered && line.contains("method") && line["params"] == status);
    }
    CHECK(server.statistics().dropped == 0);
}

TEST_CASE("control: calls that wait for an answer are bounded", "[control]") {
    TestServer server;
    ControlClient client(server.socket());
    std::string packet;
    for (int i = 0; i < 200; ++i)
        packet += R"({"jsonrpc":"2.0","id":1,"method":"stop"})"
                  "\n";
    client.send_bytes(packet);
    REQUIRE(eventually([&] { return server.handler.stops() == 64; }));
    ControlClient other(server.socket());
    for (int i = 0; i < 20; ++i)
        other.call("status");
    CHECK(server.handler.stops() == 64);
    for (int i = 0; i < 200; ++i)
        server.handler.take_stop().result(i);
    for (int i = 0; i < 200; ++i)
        CHECK(json::parse(client.read_line().value())["result"] == i);
}
