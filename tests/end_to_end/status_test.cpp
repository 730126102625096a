// The status document of a running daemon, compared with the truth and with the manual.
#include <algorithm>
#include <cmath>
#include <csignal>
#include <map>
#include <regex>
#include <set>
#include <span>
#include <sstream>

#include "net/sender.hpp"
#include "net/wire.hpp"
#include "tests/end_to_end/daemon_fixture.hpp"
#include "tests/end_to_end/truth_counts.hpp"
#include "tests/support/catch.hpp"

using namespace petacq::test;
using nlohmann::json;

namespace {

/// The count behind a rate of `average`.
std::uint64_t count_behind(const json& status, const char* rate) {
    const json& average = status["average"];
    INFO(rate);
    return static_cast<std::uint64_t>(
        std::llround(average.at(rate).get<double>() * average["interval_s"].get<double>()));
}

std::size_t times(const std::string& text, const std::string& part) {
    std::size_t n = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
        ++n;
    return n;
}

/// Type of every field by its path: "rates.interval_s" -> "number", "sources[].id" -> "integer or null".
std::map<std::string, std::string> documented_fields() {
    std::map<std::string, std::string> fields;
    std::istringstream page(read_file(std::filesystem::path(PETACQ_SOURCE_DIR) / "docs/reference/status.md"));
    const std::regex heading("## `([^`]+)`");
    const std::regex row("\\| `([^`]+)` \\| ([a-z ]+) \\| .*");
    std::string prefix;
    bool fields_here = true;
    std::smatch match;
    for (std::string line; std::getline(page, line);) {
        if (line.starts_with("## ")) {
            fields_here = std::regex_match(line, match, heading);
            if (fields_here) prefix = match[1].str() + ".";
        } else if (fields_here && std::regex_match(line, match, row)) {
            fields[prefix + match[1].str()] = match[2].str();
        }
    }
    // The same fields, in one table.
    std::map<std::string, std::string> average;
    for (const auto& [path, type] : fields) {
        if (path.starts_with("rates.")) average["average." + path.substr(6)] = type;
    }
    fields.merge(average);
    return fields;
}

bool has_type(const json& value, const std::string& type) {
    if (value.is_null()) return type.ends_with(" or null");
    const std::string word = type.substr(0, type.find(' '));
    if (word == "integer") return value.is_number_integer();
    if (word == "number") return value.is_number();
    return word == value.type_name();
}

/// Checks the type of every field of the object and notes its path.
void check_fields(const json& object, const std::string& prefix,
                  const std::map<std::string, std::string>& documented, std::set<std::string>& seen) {
    for (const auto& [key, value] : object.items()) {
        const std::string path = prefix + key;
        seen.insert(path);
        INFO(path << " = " << value.dump());
        const auto type = documented.find(path);
        REQUIRE(type != documented.end());
        CHECK(has_type(value, type->second));
        if (path == "ledger" || path == "total") continue;  // docs/reference/ledger.md
        if (path == "network") continue;                    // those that the kernel has
        if (path == "reception.described") continue;        // as in reception.listed
        if (value.is_object()) check_fields(value, path + ".", documented, seen);
        if (value.is_array()) {
            for (const json& item : value)
                check_fields(item, path + "[].", documented, seen);
        }
    }
}

}  // namespace

TEST_CASE("the status agrees with what was sent", "[e2e][status]") {
    const Site site(json{{"estimates", {{"dead_time_ns", 2000}, {"scatter_fraction", 0.25}}}});
    Daemon daemon(site);
    daemon.start("r");
    const std::vector<std::string> stream = short_stream(daemon, {"--duration-s", "4"});
    std::vector<std::string> arguments = petsim_arguments(site, stream);
    const std::string base = (site.directory() / "petsim").string();
    arguments.insert(arguments.end(), {"--truth", base + ".truth", "--summary", base + ".json"});
    Process petsim(PETSIM_PROGRAM, arguments, base);

    // While data arrive.
    json status;
    REQUIRE(daemon.until([&](const json& s) {
        status = s;
        const bool all = std::all_of(s["modules"].begin(), s["modules"].end(), [](const json& m) {
            return m["singles_per_s"].is_number() && m["singles_per_s"] > 0;
        });
        return all && s["sources"].size() == 4 && s["rates"]["prompts_per_s"] > 0 &&
               s["rates"]["net_trues_per_s"].is_number() && s["latency"]["samples"] > 10 &&
               s["disk"]["write_bytes_per_s"] > 0;
    }));
    INFO(status.dump(1));
    CHECK(status["rates"]["interval_s"] > 0.8);
    CHECK(status["rates"]["singles_raw_per_s"] > status["rates"]["singles_per_s"]);
    CHECK(status["rates"]["singles_per_s"] > status["rates"]["prompts_per_s"]);
    CHECK(status["rates"]["net_trues_per_s"] > 0);
    CHECK(status["rates"]["necr_per_s"] > 0);
    CHECK(status["rates"]["necr_per_s"] < status["rates"]["net_trues_per_s"]);
    CHECK(status["rates"]["necr_scatter_fraction"] == 0.25);
    CHECK(status["rates"]["bytes_per_s"] > 0);
    CHECK(status["rates"]["lost_fraction"] == 0);
    for (const json& source : status["sources"]) {
        CHECK(source["datagrams_per_s"] > 0);
        CHECK(source["frames_per_s"] > source["datagrams_per_s"]);
        CHECK(source["lost_per_s"] == 0);
        CHECK(source["lost_fraction"] == 0);
        CHECK(source["skew_us"].is_number());
    }
    for (const json& module : status["modules"]) {
        CHECK(module["health"] == "ok");
        CHECK(module["mean_keV"] > 200);
        CHECK(module["mean_keV"] < 520);
        CHECK(std::abs(module["peak_keV"].get<double>() - 511) < 40);
        CHECK(std::abs(module["temperature_C"].get<double>() - 25) < 5);
        CHECK(module["dead_time_fraction"] > 0);
        CHECK(module["dead_time_fraction"] < 0.1);
    }
    CHECK(status["dead_time"]["fraction"] > 0);
    CHECK(status["dead_time"]["fraction"] < 0.1);
    CHECK(status["latency"]["p50_ms"] > 0);
    CHECK(status["latency"]["p50_ms"] <= status["latency"]["p99_ms"]);
    CHECK(status["latency"]["p99_ms"] <= status["latency"]["max_ms"]);
    CHECK(status["latency"]["max_ms"] < 60'000);
    CHECK(status["disk"]["path"] == (site.directory() / "data").string());
    CHECK(status["disk"]["free_bytes"] > 0);
    CHECK(status["disk"]["free_bytes"] <= status["disk"]["total_bytes"]);
    CHECK(status["disk"]["time_left_s"] > 0);
    CHECK(status["queues"]["free_batches_low_water"] <= status["queues"]["batches"]);
    CHECK(status["queues"]["pending_singles_high_water"] > 0);
    std::vector<std::string> stages;
    for (const json& stage : status["stages"]) {
        stages.push_back(stage["name"]);
        CHECK(stage["state"] != "stalled");
        CHECK(stage["utilisation"] >= 0);
        CHECK(stage["utilisation"] <= 1);
    }
    CHECK(stages == std::vector<std::string>{"receiver 0", "acquisition", "pipeline", "second sums", "writer",
                                             "writer seconds"});
    CHECK(status["queues"]["seconds_waiting"] <= 4);
    CHECK(status["queues"]["seconds_stalls"].is_number_unsigned());

    // After the last datagram: the average since the start of the run covers all data.
    CHECK(petsim.wait() == 0);
    const json summary = json::parse(read_file(base + ".json"));
    const TruthCounts truth = count_truth(base + ".truth");
    const auto datagrams = summary["total"]["expected"]["datagrams_received"].get<std::uint64_t>();
    bool known = true;  // in every status read
    REQUIRE(daemon.until([&](const json& s) {
        status = s;
        known = known && std::all_of(s["modules"].begin(), s["modules"].end(), [](const json& m) {
                    return m["singles_per_s"].is_number() && m["dead_time_fraction"].is_number();
                });
        return s["ledger"]["singles"]["decided"] == truth.accepted &&
               s["total"]["datagrams"]["received"] == datagrams;
    }));
    CHECK(known);
    CHECK(count_behind(status, "datagrams_per_s") == datagrams);
    CHECK(count_behind(status, "frames_per_s") == truth.received);
    CHECK(count_behind(status, "singles_raw_per_s") == truth.received - truth.unreadable);
    CHECK(count_behind(status, "singles_per_s") == truth.accepted);
    std::uint64_t frames = 0;
    for (const json& source : status["sources"]) {
        frames += source["frames"].get<std::uint64_t>();
        CHECK(source["lost"] == 0);
    }
    CHECK(frames == truth.received);
    const json singles = status["ledger"]["singles"];
    const auto prompts = singles["prompts"].get<std::uint64_t>();
    const auto delayeds = singles["delayeds"].get<std::uint64_t>();
    REQUIRE(prompts > delayeds);
    REQUIRE(delayeds > 0);
    CHECK(count_behind(status, "prompts_per_s") == prompts);
    CHECK(count_behind(status, "delayeds_per_s") == delayeds);
    CHECK(count_behind(status, "multiples_per_s") ==
          singles["in_dropped_multiples"].get<std::uint64_t>() +
              singles["in_oversize_multiples"].get<std::uint64_t>());

    // All files that grow.
    CHECK(daemon.until([&](const json& s) {
        std::uintmax_t bytes = 0;
        for (const char* file : {"coincidences.plm", "seconds.plm"})
            bytes += std::filesystem::file_size(site.run("r") / file);
        return s["recording"]["bytes"] == bytes;
    }));

    // After the run: averages since the start of the daemon, and nothing written.
    const double run_s = status["average"]["interval_s"];
    daemon.stop();
    status = daemon.status();
    CHECK(status["average"]["interval_s"] > run_s);
    CHECK(status["latency"]["samples"] == 0);
    CHECK(status["latency"]["p99_ms"].is_null());
    CHECK(daemon.until([](const json& s) {
        return s["disk"]["write_bytes_per_s"] == 0 && s["disk"]["time_left_s"].is_null() &&
               s["rates"]["frames_per_s"] == 0;
    }));
    CHECK(daemon.terminate() == 0);
}

TEST_CASE("prompts less randoms are the net trues in every status, also when data are slow or wait",
          "[e2e][status]") {
    const Site site;
    Daemon daemon(site);
    daemon.start("r");
    // The board sends at half the pace of detector time.
    Process petsim(PETSIM_PROGRAM,
                   petsim_arguments(site, short_stream(daemon, {"--duration-s", "1.6", "--pace", "0.5"})),
                   (site.directory() / "petsim").string());
    const auto consistent = [](const json& rates) {
        INFO(rates.dump(1));
        const double prompts = rates["prompts_per_s"];
        if (!rates["net_trues_per_s"].is_number()) return false;
        CHECK(prompts - rates["expected_randoms_per_s"].get<double>() ==
              Approx(rates["net_trues_per_s"].get<double>()).margin(1e-6));
        CHECK(rates["net_trues_per_s"] <= prompts);
        CHECK(rates["necr_per_s"].is_null());  // nothing says how much scatters
        return prompts > 0;
    };
    const auto both = [&](const json& s) {
        const bool now = consistent(s["rates"]);
        return consistent(s["average"]) && now;
    };
    REQUIRE(daemon.until(both));
    daemon.process().signal(SIGSTOP);
    CHECK(petsim.wait() == 0);
    daemon.process().signal(SIGCONT);  // what has come meanwhile is counted in a rush
    REQUIRE(daemon.until([&](const json& s) {
        both(s);
        return s["rates"]["frames_per_s"] == 0 && s["rates"]["net_trues_per_s"] == 0;
    }));
    CHECK(daemon.terminate() == 0);
}

TEST_CASE("the manual lists exactly the fields of the status, with their types", "[e2e][status]") {
    // Colder than any detector: health has a reason at once.
    const Site site(json{{"estimates", {{"dead_time_ns", 2000}}},
                         {"health", {{"max_temperature_C", -100}}},
                         {"listmode", {{"write_raw", true}}},
                         {"peer", {{"url", "http://127.0.0.1:1"}}},  // nobody listens there
                         {"tap", {{"socket", "tap"}}}});
    std::filesystem::create_directory(site.run("old"));
    write_file(site.run("old") / ".reserve", "");
    write_file(site.run("old") / "run.json",
               R"({"state": "running", "start_utc": "2026-03-01T00:00:00.000Z"})");
    const auto documented = documented_fields();
    CHECK(documented.size() > 100);
    Daemon daemon(site);
    REQUIRE(daemon.until([](const json& s) { return s["interrupted"]["count"] == 1; }));
    std::set<std::string> seen;
    json status = daemon.status();  // idle, before any data
    check_fields(status, "", documented, seen);
    daemon.start("r");
    daemon.call("mark", {{"text", "FDG injected"}});
    simulate(site, short_stream(daemon));
    petacq::net::Sender unknown_sender({"127.0.0.1", daemon.ports().front(), false});
    std::vector<std::byte> heartbeat(petacq::net::header_bytes);
    petacq::net::encode_header({0, 999, 0}, heartbeat.data(), petacq::net::FrameVersion::one);
    const std::span<const std::byte> one(heartbeat);
    unknown_sender.send({&one, 1});
    REQUIRE(daemon.until([&](const json& s) {
        status = s;
        return !s["modules"].empty() && s["modules"][0]["health"] == "degraded" &&
               s["stages"].back()["name"] == "capture" && !s["unknown_sources"].empty() &&
               s["run"]["capture"]["datagrams_written"] > 0;
    }));
    CHECK(status["queues"]["capture_high_water"] > 0);
    CHECK(status["stages"].back()["state"] != "stalled");
    check_fields(status, "", documented, seen);
    CHECK(status["health"]["state"] == "degraded");
    daemon.stop();
    check_fields(daemon.status(), "", documented, seen);
    for (const auto& [path, type] : documented) {
        INFO(path);
        // tags/tags_test.cpp; tests/daemon/synchrony
        if (path.starts_with("tags[].") || path.starts_with("synchrony.")) continue;
        CHECK(seen.count(path) == 1);
    }
    CHECK(daemon.terminate() == 0);
}

TEST_CASE("the log reports once that a source falls silent and once that it returns", "[e2e][status]") {
    const Site site;
    Daemon daemon(site);
    Process petsim(
        PETSIM_PROGRAM,
        petsim_arguments(site, short_stream(daemon, {"--duration-s", "60", "--silent", "1@0.5-9"})),
        site.directory() / "petsim");
    const auto reason = [](const json& s) {
        for (const json& r : s["health"]["reasons"]) {
            if (r["code"] == "source_silent") return r;
        }
        return json();
    };
    json status;
    REQUIRE(daemon.until([&](const json& s) {
        status = s;
        return reason(s).is_object();
    }));
    CHECK(contains(reason(status)["message"], "source 1 has been silent for"));
    CHECK(reason(status)["severity"] == "degraded");
    for (const json& source : status["sources"]) {
        const bool silent = source["id"] == 1;
        CHECK(source["health"] == (silent ? "degraded" : "ok"));
        CHECK(source["reason"] == (silent ? reason(status)["message"] : json()));
    }
    REQUIRE(daemon.until([&](const json& s) { return reason(s).is_null(); }));
    petsim.signal(SIGTERM);
    CHECK(petsim.wait() == 0);
    CHECK(daemon.terminate() == 0);
    CHECK(times(daemon.log(), "degraded: source 1 has been silent") == 1);
    CHECK(times(daemon.log(), "recovered: source_silent after ") == 1);
}
