// ledger.csv of runs: its rows add up to the ledger, start and end with the data, and are the same for every
// replay of a capture.
#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <map>
#include <sstream>

#include "tests/end_to_end/daemon_fixture.hpp"
#include "tests/support/catch.hpp"

using namespace petacq::test;
using nlohmann::json;

namespace {

struct Rows {
    std::vector<std::string> names;
    std::vector<std::vector<std::int64_t>> rows;

    [[nodiscard]] std::vector<std::int64_t> column(const std::string& name) const {
        const auto found = std::find(names.begin(), names.end(), name);
        REQUIRE(found != names.end());
        std::vector<std::int64_t> out;
        for (const auto& row : rows)
            out.push_back(row[static_cast<std::size_t>(found - names.begin())]);
        return out;
    }
};

Rows rows_of(const Site& site, const std::string& run) {
    std::istringstream in(read_file(site.run(run) / "ledger.csv"));
    Rows out;
    for (std::string line; std::getline(in, line);) {
        std::istringstream fields(line);
        std::vector<std::int64_t> row;
        for (std::string field; std::getline(fields, field, ',');) {
            if (out.rows.empty() && !field.empty() &&
                std::isalpha(static_cast<unsigned char>(field[0])) != 0) {
                out.names.push_back(field);
            } else {
                row.push_back(std::stoll(field));
            }
        }
        if (!row.empty()) out.rows.push_back(row);
    }
    return out;
}

/// Checks what holds for every run.
void check_rows(const Site& site, const std::string& run, const Rows& rows) {
    const json end = site.run_json(run);
    const json& ledger = end["ledger"];
    REQUIRE(!rows.rows.empty());
    CHECK(end["ledger_over_time"] ==
          json{{"file", "ledger.csv"}, {"rows", rows.rows.size()}, {"failure", nullptr}});
    const auto from = rows.column("from_ticks");
    const auto to = rows.column("to_ticks");
    CHECK(from.front() >= end["start_ticks"].get<std::int64_t>());
    CHECK(to.back() == end["stop_ticks"].get<std::int64_t>());
    for (std::size_t i = 0; i < from.size(); ++i) {
        CHECK(to[i] >= from[i]);
        if (i != 0) CHECK(from[i] == to[i - 1]);
    }
    for (const std::string& name : rows.names) {
        const auto dot = name.find('.');
        if (dot == std::string::npos) continue;
        std::int64_t sum = 0;
        for (const std::int64_t n : rows.column(name))
            sum += n;
        CAPTURE(name);
        CHECK(ledger.at(name.substr(0, dot)).at(name.substr(dot + 1)) == sum);
    }
}

Outcome replay(const Site& site, const std::string& capture, const std::string& run) {
    return run_program(PETACQD_PROGRAM,
                       {"--config", site.configuration(), "--replay", capture, "--run", run});
}

/// Copies the capture without the packets from `from_s` to `to_s`, as if a switch had been off.
void cut_out(const std::string& capture, double from_s, double to_s, const std::string& into) {
    const std::string bytes = read_file(capture);
    constexpr std::size_t file_header = 24;
    constexpr std::size_t packet_header = 16;
    std::string out = bytes.substr(0, file_header);
    std::size_t at = file_header;
    double first = -1;
    while (at + packet_header <= bytes.size()) {
        std::array<std::uint32_t, 4> header{};
        std::memcpy(header.data(), bytes.data() + at, packet_header);
        const double time = header[0] + header[1] * 1e-9;
        if (first < 0) first = time;
        const std::size_t size = packet_header + header[2];
        if (time - first < from_s || time - first >= to_s) out.append(bytes, at, size);
        at += size;
    }
    write_file(into, out);
}

}  // namespace

TEST_CASE("the rows of ledger.csv of a live run add up to its ledger", "[e2e][ledger]") {
    const Site site;
    Daemon daemon(site);
    daemon.start("empty");
    daemon.stop();
    daemon.start("live");
    const json summary =
        simulate(site, {"--to", daemon.address(), "--duration-s", "2.5", "--rate", "60000", "--sources", "4",
                        "--loss", "0.02", "--duplicate", "0.02", "--reorder", "0.05"});
    REQUIRE(daemon.received(summary["total"]["expected"]["datagrams_received"]));
    CHECK(daemon.stop()["ledger_closed"] == true);
    CHECK(daemon.terminate() == 0);
    const Rows rows = rows_of(site, "live");
    check_rows(site, "live", rows);
    CHECK(rows.rows.size() >= 2);
    CHECK(site.run_json("live")["ledger"]["datagrams"]["lost"] > 0);
    const Rows empty = rows_of(site, "empty");
    check_rows(site, "empty", empty);
    CHECK(empty.rows.size() == 1);
}

TEST_CASE("all replays of a capture write the same ledger.csv, with about one row per second",
          "[e2e][ledger]") {
    Site site;
    const std::string whole = (site.directory() / "whole.pcap").string();
    const std::string capture = (site.directory() / "cut.pcap").string();
    simulate(site,
             {"--duration-s", "6", "--rate", "40000", "--sources", "4", "--seed", "3", "--write", whole});
    cut_out(whole, 2.3, 2.9, capture);
    REQUIRE(replay(site, capture, "one").status == 65);  // a tenth of the datagrams is lost
    const Rows rows = rows_of(site, "one");
    check_rows(site, "one", rows);
    const auto to = rows.column("to_ticks");
    const auto from = rows.column("from_ticks");
    const double tick_s = site.run_json("one")["scanner"]["tick_ps"].get<double>() * 1e-12;
    CHECK(rows.rows.size() >= 5);
    CHECK(rows.rows.size() <= 7);
    // The first datagram after the gap reveals it: the row that contains 2.9 s counts the loss.
    const auto lost = rows.column("datagrams.lost");
    std::int64_t all = 0;
    for (std::size_t i = 0; i < lost.size(); ++i) {
        all += lost[i];
        const double begin_s = static_cast<double>(from[i]) * tick_s;
        const double end_s = static_cast<double>(to[i]) * tick_s;
        CAPTURE(begin_s, end_s);
        CHECK(end_s - begin_s < 1.9);  // the gap of 0.6 s may make a row longer
        if (end_s < 2.3 || begin_s > 3.2) CHECK(lost[i] == 0);
    }
    CHECK(all > 50);

    // The last row ends with the run, a few ticks after the data.
    const auto but_the_end = [](Rows of_run) {
        of_run.rows.back().at(1) = 0;
        return of_run.rows;
    };
    const auto expected = but_the_end(rows);
    int number = 0;
    for (const json& pipeline :
         {json{{"slice_frames", 777}, {"threads", 1}},
          json{{"slice_frames", 1'000'000}, {"threads", 3}, {"slice_interval_ms", 1}}}) {
        const std::string name = "way" + std::to_string(number++);
        site.configure({{"pipeline", pipeline}, {"receive", {{"batch_bytes", 131072}}}});
        REQUIRE(replay(site, capture, name).status == 65);
        CHECK(but_the_end(rows_of(site, name)) == expected);
    }
}
