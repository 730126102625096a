// The protocol over a real socket.
#include "daemon/control/server.hpp"

#include <memory>
#include <string>
#include <thread>

#include "daemon/system/logging.hpp"
#include "tests/daemon/control/fixture.hpp"
#include "tests/support/catch.hpp"

using namespace petacq::daemon;
using namespace petacq::test;
using nlohmann::json;

namespace {

/// The error answer to a call.
template <class Function>
RpcError error_from(Function function) {
    try {
        function();
    } catch (const RpcError& error) {
        return error;
    }
    FAIL("expected an error answer");
    return {0, ""};
}

}  // namespace

TEST_CASE("control: start hands its parameters over", "[control]") {
    TestServer server;
    ControlClient client(server.socket());
    CHECK(client.call("start", {{"run", "r1"}, {"duration_s", 1.5}, {"note", "caf\u00e9"}}) ==
          json{{"run", "r1"}});
    CHECK(server.handler.last_start().run == "r1");
    CHECK(server.handler.last_start().duration_s == 1.5);
    CHECK(server.handler.last_start().note == "caf\u00e9");
    CHECK(client.call("start", {{"nuclide", "F-18"}, {"bed_mm", 12}, {"keys", {{"tracer", "FDG"}}}}) ==
          json{{"run", "unnamed"}});
    CHECK(server.handler.last_start().operator_data.nuclide.value().name == "F-18");
    CHECK(server.handler.last_start().operator_data.bed_mm == 12);
    CHECK(server.handler.last_start().operator_data.keys.at("tracer") == "FDG");
    CHECK(client.call("start") == json{{"run", "unnamed"}});
    CHECK_FALSE(server.handler.last_start().run.has_value());
    CHECK_FALSE(server.handler.last_start().duration_s.has_value());
    CHECK_FALSE(server.handler.last_start().note.has_value());
}

TEST_CASE("control: every kind of error has its code and its reason", "[control]") {
    TestServer server;
    ControlClient client(server.socket());
    const auto code = [&](std::string_view line) {
        const json answer = ask(client, line);
        CHECK(answer["jsonrpc"] == "2.0");
        CHECK_FALSE(answer["error"]["message"].get<std::string>().empty());
        return answer["error"]["code"].get<int>();
    };
    CHECK(code("{") == -32700);
    CHECK(code("\"\xff\"") == -32700);
    CHECK(code(std::string("{}\0", 3)) == -32700);
    CHECK(code(std::string(100'000, '[')) == -32700);
    CHECK(code("[]") == -32600);
    CHECK(code(R"({"jsonrpc":"2.0","id":1,"method":"launch"})") == -32601);
    CHECK(code(R"({"jsonrpc":"2.0","id":1,"method":"stop","params":{"now":true}})") == -32602);
    CHECK(server.statistics().errors == 7);

    const auto message = [&](const char* method, const json& params) {
        const RpcError error = error_from([&] { client.call(method, params); });
        CHECK(error.code() == -32602);
        return std::string(error.what());
    };
    CHECK(message("start", {{"Run", "x"}}) ==
          "unknown parameter 'Run': start takes run, duration_s, start_ticks, stop_ticks, note, nuclide, "
          "half_life_s, branching_ratio, nuclide_source, activity_MBq, assay_utc, bed_mm, subject, keys");
    CHECK(message("start", {{"activity_MBq", 1}, {"nuclide", "F-18"}}) ==
          "activity_MBq: needs assay_utc, the time at which it was measured");
    CHECK(message("start", {{"run", 1}}) == "run: expected a string, found number");
    CHECK(message("start", {{"duration_s", 0}}) ==
          "duration_s: expected a number of seconds above 0, at most 1e9, found 0");
    CHECK(message("start", {{"duration_s", "1"}}) ==
          "duration_s: expected a number of seconds above 0, at most 1e9, found string");
    for (const json& bad : {json(-1), json(1.5), json("1"), json(2e19)}) {
        CHECK(message("start", {{"start_ticks", bad}}) ==
              "start_ticks: expected a whole number of ticks from 0 to 18446744073709551615, found " +
                  bad.dump());
    }
    CHECK(message("start", {{"stop_ticks", 0}}) == "stop_ticks: expected more than start_ticks = 0, found 0");
    CHECK(message("start", {{"start_ticks", 7}, {"stop_ticks", 7}}) ==
          "stop_ticks: expected more than start_ticks = 7, found 7");
    CHECK(message("start", {{"stop_ticks", 7}, {"duration_s", 1}}) ==
          "stop_ticks: expected none together with duration_s");
    CHECK(message("subscribe", json::object()) ==
          "interval_s: missing, expected a number of seconds from 0.1 to 3600");
    CHECK(message("subscribe", {{"interval_s", 0.05}}) ==
          "interval_s: expected a number of seconds from 0.1 to 3600, found 0.05");

    const RpcError used = error_from([&] { client.call("start", {{"run", "used"}}); });
    CHECK(used.code() == rpc_refused);
    CHECK(std::string(used.what()) == "run id 'used' is used already");
    const RpcError thrown = error_from([&] { client.call("start", {{"run", "throw"}}); });
    CHECK(thrown.code() == -32603);
    CHECK(std::string(thrown.what()) == "thrown by start");
    CHECK(error_from([&] { client.call("start", {{"run", "forget"}}); }).code() == -32603);
    CHECK(client.call("start", {{"run", "twice"}}) == json{{"run", "first"}});
    server.handler.set_status("throw");
    CHECK(std::string(error_from([&] { client.call("status"); }).what()) == "thrown by status");
    server.handler.set_status({{"state", "idle"}});
    CHECK(client.call("status") == json{{"state", "idle"}});
}

TEST_CASE("control: requests in one packet, in pieces, with CR LF and empty lines", "[control]") {
    TestServer server;
    ControlClient client(server.socket());
    std::string packet;
    for (int i = 0; i < 500; ++i) {
        packet += R"({"jsonrpc":"2.0","id":)" + std::to_string(i) + R"(,"method":"status"})" +
                  (i % 2 ? "\n" : "\r\n\r\n");
    }
    client.send_bytes(packet);
    for (int i = 0; i < 500; ++i)
        CHECK(json::parse(client.read_line().value())["id"] == i);

    const std::string request = R"({"jsonrpc":"2.0","id":"piece by piece","method":"status"})";
    for (const char c : request)
        client.send_bytes({&c, 1});
    CHECK(ask(client, "")["id"] == "piece by piece");
}

TEST_CASE("control: notifications are carried out and not answered", "[control]") {
    TestServer server;
    ControlClient client(server.socket());
    client.send_bytes(R"({"jsonrpc":"2.0","method":"start","params":{"run":"silent"}})"
                      "\n"
                      R"({"jsonrpc":"2.0","method":"no such method"})"
                      "\n"
                      R"([{"jsonrpc":"2.0","method":"status"},{"jsonrpc":"2.0","method":"status"}])"
                      "\n");
    CHECK(ask(client, R"({"jsonrpc":"2.0","id":null,"method":"status"})") ==
          json{{"jsonrpc", "2.0"}, {"id", nullptr}, {"result", {{"state", "idle"}}}});
    CHECK(server.handler.last_start().run == "silent");
    CHECK(server.handler.status_calls() == 3);
}

TEST_CASE("control: a batch is answered at once, in order, when its last call is", "[control]") {
    TestServer server;
    ControlClient client(server.socket());
    client.send_bytes(R"([{"jsonrpc":"2.0","id":1,"method":"stop"},{"jsonrpc":"2.0","method":"status"},7,)"
                      R"({"jsonrpc":"2.0","id":"s","method":"status"}])"
                      "\n");
    const Reply reply = server.handler.take_stop();
    CHECK(ask(client, R"({"jsonrpc":"2.0","id":2,"method":"status"})")["id"] == 2);
    reply.result({{"prompts", 5}});
    const json batch = json::parse(client.read_line().value());
    REQUIRE(batch.size() == 3);
    CHECK(batch[0]["result"]["prompts"] == 5);
    CHECK(batch[1]["error"]["code"] == -32600);
    CHECK(batch[2]["id"] == "s");
    CHECK(ask(client, "[7]").is_array());
}

TEST_CASE("control: while a stop takes its time everybody is served", "[control]") {
    TestServer server;
    ControlClient client(server.socket());
    ControlClient other(server.socket());
    client.send_bytes(R"({"jsonrpc":"2.0","id":"stop","method":"stop"})"
                      "\n");
    const Reply reply = server.handler.take_stop();
    CHECK(other.call("status")["state"] == "idle");
    CHECK(ask(client, R"({"jsonrpc":"2.0","id":1,"method":"status"})")["id"] == 1);
    std::thread([&] { reply.result({{"run", "r"}}); }).join();
    CHECK(json::parse(client.read_line().value())["id"] == "stop");
}

TEST_CASE("control: a late reply finds its client or the server gone", "[control]") {
    std::unique_ptr<Reply> later;
    {
        TestServer server;
        {
            ControlClient client(server.socket());
            client.send_bytes(R"({"jsonrpc":"2.0","id":1,"method":"stop"})"
                              "\n");
            later = std::make_unique<Reply>(server.handler.take_stop());
        }
        CHECK(eventually([&] { return server.statistics().clients == 0; }));
        later->result({{"run", "r"}});
        ControlClient client(server.socket());
        CHECK(client.call("status")["state"] == "idle");
        client.send_bytes(R"({"jsonrpc":"2.0","id":1,"method":"stop"})"
                          "\n");
        later = std::make_unique<Reply>(server.handler.take_stop());
        server.close();
        CHECK_THROWS_AS(client.read_line(), ControlUnavailable);
    }
    later->result({{"run", "r"}});
}

TEST_CASE("control: a subscriber gets status at its interval until it unsubscribes", "[control]") {
    TestServer server;
    ControlClient client(server.socket());
    CHECK(client.call("subscribe", {{"interval_s", 3600}}) == json{{"state", "idle"}});
    CHECK(client.call("subscribe", {{"interval_s", 0.1}}) == json{{"state", "idle"}});
    for (int i = 0; i < 3; ++i) {
        const auto notification = client.next_notification(std::chrono::seconds(60));
        REQUIRE(notification.has_value());
        CHECK(*notification ==
              json{{"jsonrpc", "2.0"}, {"method", "status"}, {"params", {{"state", "idle"}}}});
    }
    CHECK(client.call("unsubscribe") == json::object());
    const std::uint64_t calls = server.handler.status_calls();
    // Another subscriber's notifications show that time passes; ours did not subscribe.
    ControlClient other(server.socket());
    other.call("subscribe", {{"interval_s", 0.1}});
    for (int i = 0; i < 5; ++i)
        REQUIRE(other.next_notification(std::chrono::seconds(60)).has_value());
    // Another may have come since.
    other.call("unsubscribe");
    std::uint64_t more = 0;
    while (other.next_notification(std::chrono::milliseconds(0)))
        ++more;
    CHECK(server.handler.status_calls() == calls + 6 + more);
    while (client.next_notification(std::chrono::milliseconds(0))) {
    }
    CHECK(client.call("status")["state"] == "idle");
}

TEST_CASE("control: a client that closes its sending side still gets its answers", "[control]") {
    TestServer server;
    ControlClient client(server.socket());
    client.send_bytes(R"({"jsonrpc":"2.0","id":1,"method":"stop"})"
                      "\n{\"half");
    client.finish_sending();
    const Reply reply = server.handler.take_stop();
    // The server sees the end of the stream and must keep the connection.
    ControlClient other(server.socket());
    for (int i = 0; i < 10; ++i)
        other.call("status");
    reply.result({{"run", "r"}});
    CHECK(json::parse(client.read_line().value())["result"]["run"] == "r");
    CHECK_THROWS_AS(client.read_line(), ControlUnavailable);
    CHECK(server.statistics().requests == 11);
}

TEST_CASE("control: runs and ledgers are asked for by their parameters", "[control]") {
    TestServer server;
    ControlClient client(server.socket());
    json all = json::array();
    for (int i = 0; i < 150; ++i)
        all.push_back({{"run", std::to_string(i)}});
    server.handler.set_runs(all);
    server.handler.set_ledger({{"run", nullptr}, {"ledger", {{"closed", true}}}});
    CHECK(client.call("runs")["runs"].size() == 100);
    CHECK(client.call("runs", {{"limit", 1000}})["runs"] == all);
    CHECK(client.call("runs", {{"limit", 2}, {"before", "7"}}) ==
          json{{"data_dir", "/data"}, {"earlier", 5}, {"runs", {all[5], all[6]}}});
    CHECK(client.call("ledger") == json{{"run", nullptr}, {"ledger", {{"closed", true}}}});
    CHECK(client.call("ledger", {{"run", "r"}})["run"] == "r");
    for (const auto& [method, wrong] :
         {std::pair{"runs", json{{"limit", 0}}}, std::pair{"runs", json{{"limit", 1001}}},
          std::pair{"runs", json{{"limit", 1.5}}}, std::pair{"runs", json{{"before", 5}}},
          std::pair{"runs", json{{"after", "r"}}}, std::pair{"ledger", json{{"run", 5}}},
          std::pair{"ledger", json{{"id", "r"}}}, std::pair{"log_level", json{{"level", "loud"}}},
          std::pair{"log_level", json{{"level", 3}}}, std::pair{"log_level", json{{"word", "info"}}}}) {
        CAPTURE(method, wrong.dump());
        CHECK(error_from([&, m = method, w = wrong] { client.call(m, w); }).code() == -32602);
    }
    CHECK(error_from([&] { client.call("ledger", {{"run", "missing"}}); }).code() == -32000);
    CHECK(client.call("reload")["changed"] == json::array());
    CHECK(client.call("acknowledge", {{"run", "r"}})["run"] == "r");
    CHECK(error_from([&] { client.call("acknowledge"); }).code() == -32602);
    CHECK(error_from([&] { client.call("acknowledge", {{"run", "complete"}}); }).code() == -32000);
}

TEST_CASE("control: the log level can be queried and set", "[control]") {
    TestServer server;
    ControlClient client(server.socket());
    set_log_level(LogLevel::info);
    CHECK(client.call("log_level") == json{{"level", "info"}});
    CHECK(client.call("log_level", {{"level", "error"}}) == json{{"level", "error"}, {"previous", "info"}});
    CHECK(log_level() == LogLevel::error);
    CHECK(client.call("log_level", {{"level", "info"}}) == json{{"level", "info"}, {"previous", "error"}});
}
