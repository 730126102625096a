// The metrics: their format, their names, and their agreement with the status document.
#include <regex>
#include <set>

#include "daemon/http/metrics.hpp"
#include "tests/daemon/http/exposition.hpp"
#include "tests/daemon/http/fixture.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace petacq::test;
using namespace petacq::daemon;
using nlohmann::json;

TEST_CASE("metrics have the values of the status, in base units", "[http][metrics]") {
    const json status = full_status();
    const auto m = parse_exposition(daemon_metrics(status));
    CHECK(sample(m, "petacqd_build_info",
                 R"(version="1.2.3",scanner="tiny \"ring\"",backend="cpu, 4 threads")") == 1);
    CHECK(sample(m, "petacqd_state", R"(state="running")") == 1);
    CHECK(sample(m, "petacqd_state", R"(state="idle")") == 0);
    CHECK(m.at("petacqd_state").samples.size() == 5);
    CHECK(sample(m, "petacqd_health", R"(state="degraded")") == 1);
    CHECK(sample(m, "petacqd_health", R"(state="ok")") == 0);
    CHECK(sample(m, "petacqd_health_reasons", R"(reason="source_silent",severity="degraded")") == 1);
    CHECK(sample(m, "petacqd_run_info", R"(run="mouse-7")") == 1);
    CHECK(sample(m, "petacqd_datagrams_received_total") == 1000);
    CHECK(sample(m, "petacqd_datagrams_rejected_total", R"(reason="malformed")") == 2);
    CHECK(sample(m, "petacqd_datagrams_lost") == 7);
    CHECK(m.at("petacqd_datagrams_lost").type == "gauge");
    CHECK(sample(m, "petacqd_frames_rejected_total", R"(reason="late")") == 6);
    CHECK(sample(m, "petacqd_tag_value", R"(tag="3/2")") == -1500);
    CHECK(sample(m, "petacqd_tag_time_seconds", R"(tag="0/1")") == 99.25);
    CHECK(sample(m, "petacqd_prompts_total") == 1200);
    CHECK(sample(m, "petacqd_delayeds_total") == 200);
    CHECK(sample(m, "petacqd_source_datagrams_total", R"(source="3")") == 250);
    CHECK(sample(m, "petacqd_source_skew_seconds", R"(source="0")") == Approx(-1.5e-6));
    CHECK(sample(m, "petacqd_source_state", R"(source="3",state="silent")") == 1);
    CHECK(sample(m, "petacqd_source_state", R"(source="3",state="active")") == 0);
    CHECK(sample(m, "petacqd_module_energy_mean_electronvolts", R"(module="0")") == 480250);
    CHECK(sample(m, "petacqd_module_temperature_celsius", R"(module="0")") == 31.5);
    CHECK(sample(m, "petacqd_write_latency_p99_seconds") == Approx(0.031));
    CHECK(sample(m, "petacqd_disk_free_bytes") == 512e9);
    CHECK(sample(m, "petacqd_stage_stalled", R"(stage="writer")") == 1);
    CHECK(sample(m, "petacqd_stage_utilisation_ratio", R"(stage="receiver 0")") == 0.125);
    CHECK(sample(m, "petacqd_memory_bytes", R"(use="batch_pool")") == 134217728);
    CHECK(sample(m, "petacqd_lost_ratio") == 0.00125);
    CHECK(sample(m, "petacqd_source_lost_ratio", R"(source="3")") == 0);
    CHECK(sample(m, "petacqd_ledger_closed") == 1);
    CHECK(sample(m, "petacqd_pairs_written_total") == 1400);
    CHECK(sample(m, "petacqd_receive_batches_free_low_water") == 41);
    CHECK(sample(m, "petacqd_singles_pending_high_water") == 5678);
    CHECK(sample(m, "petacqd_given_up_slices_total") == 9);
    CHECK(sample(m, "petacqd_writer_blocks_queued_high_water") == 7);
    CHECK(sample(m, "petacqd_capture_datagrams_written_total") == 950);
    CHECK(sample(m, "petacqd_capture_datagrams_dropped_total") == 40);
    CHECK(sample(m, "petacqd_capture_written_bytes_total") == 1'400'000);
    CHECK(sample(m, "petacqd_capture_batches_queued") == 3);
    CHECK(sample(m, "petacqd_capture_batches_queued_high_water") == 9);
    CHECK(sample(m, "petacqd_capture_failed") == 0);
}

TEST_CASE("counters are written exactly", "[http][metrics]") {
    CHECK(daemon_metrics(full_status()).find("\npetacqd_frames_received_total 9007199254740994\n") !=
          std::string::npos);
}

TEST_CASE("unknown values are omitted, not zero", "[http][metrics]") {
    json status = full_status();
    auto m = parse_exposition(daemon_metrics(status));
    CHECK(m.count("petacqd_expected_randoms_per_second") == 0);
    CHECK(m.at("petacqd_module_temperature_celsius").samples.count(R"(module="1")") == 0);
    status["run"]["capture"]["failure"] = "No space left on device";
    CHECK(sample(parse_exposition(daemon_metrics(status)), "petacqd_capture_failed") == 1);
    status["run"]["capture"] = nullptr;
    m = parse_exposition(daemon_metrics(status));
    for (const char* name : {"petacqd_capture_failed", "petacqd_capture_datagrams_written_total"})
        CHECK(m.count(name) == 0);
    CHECK(m.count("petacqd_run_info") == 1);
    status["run"] = nullptr;
    status["dead_time"] = nullptr;
    status["latency"] = {{"samples", 0}, {"p50_ms", nullptr}, {"p99_ms", nullptr}, {"max_ms", nullptr}};
    status["total"]["datagrams"]["lost"] = nullptr;
    status.erase("disk");
    m = parse_exposition(daemon_metrics(status));
    for (const char* name :
         {"petacqd_run_info", "petacqd_dead_time_ratio", "petacqd_write_latency_p99_seconds",
          "petacqd_datagrams_lost", "petacqd_disk_free_bytes"}) {
        INFO(name);
        CHECK(m.count(name) == 0);
    }
}

TEST_CASE("names in the status cannot break the format", "[http][metrics]") {
    json status = full_status();
    status["run"]["id"] = "a\"b\\c\nd} 1\nevil 2";
    status["scanner"] = "\xff\x01";
    const auto m = parse_exposition(daemon_metrics(status));
    CHECK(sample(m, "petacqd_run_info", R"(run="a\"b\\c\nd} 1\nevil 2")") == 1);
    CHECK(m.count("evil") == 0);
}

TEST_CASE("sources without an id are labelled with their address, none twice", "[http][metrics]") {
    json status = full_status();
    for (json& source : status["sources"])
        source["id"] = nullptr;
    status["sources"][1]["address"] = status["sources"][0]["address"];
    const auto m = parse_exposition(daemon_metrics(status));
    CHECK(m.at("petacqd_source_datagrams_total").samples.size() == 3);
    CHECK(m.at("petacqd_source_datagrams_total").samples.count(R"(source="127.0.0.1:5003")") == 1);
}

TEST_CASE("any document gives valid metrics", "[http][metrics]") {
    for (const char* text :
         {"null", "{}", "[]", "3",
          R"({"sources":null,"modules":3,"health":{"reasons":["words"]},"rates":[],"total":{"frames":7}})"}) {
        INFO(text);
        CHECK_NOTHROW(parse_exposition(daemon_metrics(json::parse(text))));
    }
}

TEST_CASE("counters never decrease between two scrapes", "[http][metrics]") {
    HttpServer server({}, small_ring());
    server.publish({full_status(1), nullptr, {}});
    REQUIRE(shows_uptime(server.port(), 101));
    const auto before = parse_exposition(http_get(server.port(), "/metrics").body);
    server.publish({full_status(3), nullptr, {}});
    REQUIRE(shows_uptime(server.port(), 103));
    const auto after = parse_exposition(http_get(server.port(), "/metrics").body);
    std::size_t rising = 0;
    for (const auto& [name, family] : before) {
        if (family.type != "counter") continue;
        for (const auto& [labels, value] : family.samples) {
            INFO(name << '{' << labels << '}');
            CHECK(sample(after, name, labels) >= value);
            if (sample(after, name, labels) > value) ++rising;
        }
    }
    CHECK(rising > 20);
    CHECK(sample(after, "petacqd_http_responses_total", R"(code="200")") >= 3);
    CHECK(sample(after, "petacqd_http_connections") == 1);
    CHECK(sample(after, "petacqd_status_age_seconds") >= 0);
}

TEST_CASE("the manual lists every metric and no other", "[http][metrics]") {
    HttpServer server({}, small_ring());
    json status = full_status();
    status["rates"]["expected_randoms_per_s"] = 5.0;
    status["rates"]["expected_randoms_uncertain"] = true;
    status["peer"] = {{"state", "recording"}};
    status["tap"] = {{"clients", 1}, {"accepted", 2}, {"refused", 3}, {"sent", 4}, {"dropped", 5}};
    status["network"] = {{"UdpNoPorts", 1}};
    status["synchrony"] = {{"modules", {{{"bdm", 0}, {"offset_ns", 1.5}}}}};
    status["last_run"] = {{"verdict", "good"}};
    for (json& module : status["modules"])
        module["expected_randoms_per_s"] = 1.0;
    server.publish({status, nullptr, {}});
    REQUIRE(shows_uptime(server.port(), 101));
    const auto metrics = parse_exposition(http_get(server.port(), "/metrics").body);
    CHECK(sample(metrics, "petacqd_expected_randoms_uncertain") == 1);
    std::set<std::string> served;
    for (const auto& [name, family] : metrics)
        served.insert(name);
    std::set<std::string> listed;
    const std::string manual = read_file(PETACQ_SOURCE_DIR "/docs/reference/http.md");
    const std::regex row("\n\\| `(petacqd_[a-z0-9_]+)`");
    for (std::sregex_iterator it(manual.begin(), manual.end(), row), end; it != end; ++it)
        listed.insert((*it)[1]);
    CHECK(served == listed);
}
