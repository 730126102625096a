// Messages of the control protocol, without a socket.
#include "daemon/control/json_rpc.hpp"

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/catch.hpp"

using namespace petacq::daemon;
using nlohmann::json;

namespace {

int error_of(const std::string& line) {
    const RpcMessage message = parse_rpc_message(line);
    REQUIRE(message.calls.size() == 1);
    CHECK_FALSE(message.batch);
    return message.calls[0].error ? message.calls[0].error->code() : 0;
}

std::string nested(std::size_t levels) {
    return std::string(levels, '[') + std::string(levels, ']');
}

}  // namespace

TEST_CASE("rpc: a call keeps its id, method and parameters", "[control]") {
    for (const json& id : {json(7), json(-1.5), json("seven"), json()}) {
        const json request = {{"jsonrpc", "2.0"}, {"id", id}, {"method", "m"}, {"params", {{"a", 1}}}};
        const RpcMessage message = parse_rpc_message(request.dump());
        REQUIRE(message.calls.size() == 1);
        CHECK_FALSE(message.calls[0].error.has_value());
        CHECK_FALSE(message.calls[0].notification);
        CHECK(message.calls[0].id == id.dump());
        CHECK(message.calls[0].method == "m");
        REQUIRE(message.calls[0].params);
        CHECK(*message.calls[0].params == json{{"a", 1}});
    }
    CHECK(parse_rpc_message(R"({"jsonrpc":"2.0","method":"m"})").calls[0].notification);
}

TEST_CASE("rpc: what is not JSON is a parse error", "[control]") {
    using namespace std::string_literals;
    for (const std::string& line :
         {"{"s, ""s, "{} {}"s, "nonsense"s, R"({"jsonrpc":"2.0","id":1,"method":"m"},)"s, "\"\xff\xfe\""s,
          "\"\xc0\xaf\""s, "\"\xed\xa0\x80\""s, "[1e999]"s, "{}\0"s, "{\"a\":\"\0\"}"s, "[NaN]"s, "'m'"s}) {
        INFO(line);
        CHECK(error_of(line) == rpc_parse_error);
    }
}

TEST_CASE("rpc: nesting is bounded, brackets in strings are not nesting", "[control]") {
    CHECK(error_of(R"({"jsonrpc":"2.0","id":1,"method":"m","params":)" + nested(rpc_max_depth - 1) + "}") ==
          0);
    CHECK(error_of(R"({"jsonrpc":"2.0","id":1,"method":"m","params":)" + nested(rpc_max_depth) + "}") ==
          rpc_parse_error);
    CHECK(error_of(std::string(1'000'000, '[')) == rpc_parse_error);
    CHECK(error_of(R"({"jsonrpc":"2.0","id":1,"method":"\"\\)" + std::string(1000, '[') + "\"}") == 0);
}

TEST_CASE("rpc: JSON that is no request is an invalid request", "[control]") {
    for (const char* line :
         {"1", "null", "\"m\"", "[]", R"({"jsonrpc":"2.0","id":[],"method":"m"})", R"({"id":1,"method":"m"})",
          R"({"jsonrpc":2.0,"id":1,"method":"m"})", R"({"jsonrpc":"1.0","id":1,"method":"m"})",
          R"({"jsonrpc":"2.0","id":1})", R"({"jsonrpc":"2.0","id":1,"method":1})",
          R"({"jsonrpc":"2.0","id":1,"method":"m","params":1})",
          R"({"jsonrpc":"2.0","id":1,"method":"m","params":null})",
          R"({"jsonrpc":"2.0","id":true,"method":"m"})"}) {
        INFO(line);
        CHECK(error_of(line) == rpc_invalid_request);
    }
    // The reply repeats the id if it is readable; otherwise it is null.
    CHECK(parse_rpc_message(R"({"jsonrpc":"2.0","id":"x","method":1})").calls[0].id == "\"x\"");
    CHECK(parse_rpc_message(R"({"jsonrpc":"2.0","id":{},"method":"m"})").calls[0].id == "null");
    // A request without an id is answered, too: it may not be a notification.
    CHECK_FALSE(parse_rpc_message(R"({"jsonrpc":"2.0"})").calls[0].notification);
}

TEST_CASE("rpc: a batch is taken apart, up to its limit", "[control]") {
    const RpcMessage mixed = parse_rpc_message(R"([{"jsonrpc":"2.0","id":1,"method":"m"},1,{"foo":"bar"}])");
    CHECK(mixed.batch);
    REQUIRE(mixed.calls.size() == 3);
    CHECK_FALSE(mixed.calls[0].error.has_value());
    CHECK(mixed.calls[1].error->code() == rpc_invalid_request);
    CHECK(mixed.calls[2].error->code() == rpc_invalid_request);

    json many = json::array();
    for (std::size_t i = 0; i < rpc_max_batch; ++i)
        many.push_back({{"jsonrpc", "2.0"}, {"id", i}, {"method", "m"}});
    CHECK(parse_rpc_message(many.dump()).calls.size() == rpc_max_batch);
    many.push_back(1);
    CHECK(error_of(many.dump()) == rpc_invalid_request);
}

TEST_CASE("rpc: parameters are checked by name and type", "[control]") {
    RpcCall call;
    call.method = "start";
    const auto give = [&](json params) { call.params = std::make_shared<const json>(std::move(params)); };
    const auto message_of = [&](const auto& check) {
        try {
            check(RpcParams(call, {"run", "duration_s"}));
        } catch (const RpcError& error) {
            CHECK(error.code() == rpc_invalid_params);
            return std::string(error.what());
        }
        return std::string();
    };
    const auto number = [](const RpcParams& params) {
        static_cast<void>(params.number("duration_s", 0.5, 2, "half to two"));
    };
    const auto text = [](const RpcParams& params) { static_cast<void>(params.text("run")); };

    give({{"run", "a"}, {"duration_s", 2}});
    CHECK(RpcParams(call, {"run", "duration_s"}).text("run") == "a");
    CHECK(RpcParams(call, {"run", "duration_s"}).number("duration_s", 0.5, 2, "") == 2.0);
    CHECK(message_of([](const RpcParams& params) { CHECK_FALSE(params.text("other").has_value()); }).empty());

    give({{"rum", "a"}});
    CHECK(message_of(text) == "unknown parameter 'rum': start takes run, duration_s");
    give({{"run", 5}});
    CHECK(message_of(text) == "run: expected a string, found number");
    give({{"run", std::string("a\0b", 3)}});
    CHECK(message_of(text) == "run: expected text without a NUL");
    for (const json& bad : {json("2"), json(true), json(), json(2.1), json(0.4), json(-1)}) {
        give({{"duration_s", bad}});
        CHECK(message_of(number).starts_with("duration_s: expected half to two, found "));
    }
    const auto whole = [](const RpcParams& params) { static_cast<void>(params.whole("run", 1, 9)); };
    for (const json& good : {json(1), json(9), json(4.0)}) {
        give({{"run", good}});
        CHECK(RpcParams(call, {"run"}).whole("run", 1, 9) == good.get<std::uint32_t>());
    }
    for (const json& bad : {json(0), json(10), json(1.5), json(-1), json("1"), json(1e300), json()}) {
        give({{"run", bad}});
        CHECK(message_of(whole).starts_with("run: expected a whole number from 1 to 9, found "));
    }
    give(json::array({1}));
    CHECK(message_of(text) == "params: expected an object (parameters by name), found an array");
    give(json::array());
    CHECK(message_of(text).empty());
    call.params = nullptr;
    CHECK(message_of(text).empty());
}

TEST_CASE("rpc: a message has its parts in a fixed order", "[control]") {
    CHECK(rpc_result_text("7", "{}") == R"({"jsonrpc":"2.0","id":7,"result":{}})");
    CHECK(rpc_error_text("null", RpcError(5, "no")) ==
          R"({"error":{"code":5,"message":"no"},"id":null,"jsonrpc":"2.0"})");
}

TEST_CASE("rpc: text that is not UTF-8 does not break an answer", "[control]") {
    const std::string text = rpc_result_text("1", rpc_text({{"file", "caf\xe9"}}));
    CHECK(json::parse(text)["result"]["file"] == "caf\xef\xbf\xbd");
    CHECK(json::parse(rpc_error_text("\"id\"", RpcError(5, "bad \xff")))["error"]["code"] == 5);
    CHECK(text.find('\n') == std::string::npos);
}
