// Reading the answer of the other host of a pair, and the URL under which it is asked.
#include "daemon/peer/answer.hpp"

#include "config/http_url.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using namespace petacq::daemon;

TEST_CASE("an answer of a peer is read from its status") {
    const PeerAnswer runs = peer_answer_from(
        R"({"state":"running","recording":{"state":"recording","run_id":"x"},"run":{"marks":[{"id":"y"}],"id":"mouse-7"}})");
    CHECK(runs.failure.empty());
    CHECK(runs.run == "mouse-7");
    CHECK(runs.recording == "recording");
    const PeerAnswer rests = peer_answer_from(R"({"run":null,"recording":{"state":"no_data"}})");
    CHECK(rests.failure.empty());
    CHECK(rests.run.empty());
    CHECK(rests.recording == "no_data");
}

TEST_CASE("an answer that is no status is a failure") {
    const std::string nested(100'000, '[');
    for (const std::string& text : {
             std::string(),
             std::string("<html>"),
             std::string("[1,2]"),
             std::string("7"),
             std::string("{}"),
             std::string(R"({"run":null})"),
             std::string(R"({"run":null,"recording":null})"),
             std::string(R"({"run":null,"recording":{"state":7}})"),
             std::string(R"({"run":null,"recording":{"state":"<b>"}})"),
             std::string(R"({"recording":{"state":"recording"}})"),
             std::string(R"({"run":7,"recording":{"state":"recording"}})"),
             std::string(R"({"run":[],"recording":{"state":"recording"}})"),
             std::string(R"({"run":{},"recording":{"state":"recording"}})"),
             std::string(R"({"run":{"id":7},"recording":{"state":"recording"}})"),
             std::string(R"({"run":{"id":""},"recording":{"state":"recording"}})"),
             std::string(R"({"run":{"id":"../a"},"recording":{"state":"recording"}})"),
             std::string(R"({"run":null,"recording":{"state":"recording"})"),
             nested,
             R"({"run":)" + nested,
         }) {
        INFO(text.substr(0, 100));
        const PeerAnswer answer = peer_answer_from(text);
        CHECK(answer.failure == "its answer is no status of petacqd");
        CHECK(answer.run.empty());
        CHECK(answer.recording.empty());
    }
}

TEST_CASE("the address of a peer is a URL of HTTP") {
    const auto named = config::http_url_from("http://host-B.lab_2:9680/");
    REQUIRE(named);
    CHECK(named->host == "host-B.lab_2");
    CHECK(named->port == 9680);
    const auto numeric = config::http_url_from("http://[fe80::1]:1");
    REQUIRE(numeric);
    CHECK(numeric->host == "fe80::1");
    CHECK(numeric->port == 1);
    CHECK(config::http_url_from("http://10.0.0.2").value().port == 80);
    for (const char* text :
         {"", "hostB:9680", "https://hostB:9680", "http://", "http:///", "http://:9680",
          "http://hostB:", "http://hostB:0", "http://hostB:65536", "http://hostB:96x", "http://hostB:-1",
          "http://a@hostB:1", "http://hostB:9680/status", "http://-hostB", "http://host B", "http://[::1",
          "http://[]:1", "http://[::1]9680", "http://a;b"}) {
        INFO(text);
        CHECK_FALSE(config::http_url_from(text));
    }
}
