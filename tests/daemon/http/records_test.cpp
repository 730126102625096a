// What the page shows of earlier runs and earlier hours: reports, the list of runs, the rates of the last
// day.
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <stdexcept>

#include "daemon/control/control_token.hpp"
#include "daemon/http/history.hpp"
#include "tests/daemon/http/site.hpp"
#include "tests/support/configuration.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/files.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace petacq::test;
using namespace petacq::daemon;
using nlohmann::json;

namespace {

LongHistory::Time at_second(std::int64_t seconds) {
    return LongHistory::Time(std::chrono::seconds(seconds));
}

json status_with(double rate, const char* run = nullptr) {
    json status = {{"rates", {{"prompts_per_s", rate}, {"lost_fraction", rate / 1e6}}}, {"run", nullptr}};
    if (run != nullptr) status["run"] = {{"id", run}, {"start_utc", nullptr}};
    return status;
}

std::string refusal_of(const std::filesystem::path& file) {
    try {
        read_control_token(file);
    } catch (const std::runtime_error& error) {
        return error.what();
    }
    return "";
}

}  // namespace

TEST_CASE("reports of runs are served, and no other file is", "[http][reports]") {
    const TemporaryDirectory data;
    std::filesystem::create_directories(data / "m1" / "plot" / "folder.html");
    std::filesystem::create_directories(data / "elsewhere");
    write_file(data / "m1" / "plot" / "report.html", "<h1>m1</h1>");
    write_file(data / "m1" / "plot" / "rates.png", "png");
    write_file(data / "m1" / "plot" / "key.pem", "secret");
    write_file(data / "m1" / "run.json", "{}");
    write_file(data / "elsewhere" / "report.html", "secret");
    std::filesystem::create_symlink(data / "elsewhere" / "report.html", data / "m1" / "plot" / "link.html");
    std::filesystem::create_directories(data / "m2");
    std::filesystem::create_directory_symlink(data / "elsewhere", data / "m2" / "plot");
    std::filesystem::create_directory_symlink(data / "m1", data / "m3");
    REQUIRE(::mkfifo((data / "m1" / "plot" / "pipe.html").c_str(), 0600) == 0);
    HttpOptions options;
    options.data_dir = data.path();
    const Site site(options);

    const HttpAnswer report = http_get(site.port, "/reports/m1/report.html");
    CHECK(report.status == 200);
    CHECK(report.body == "<h1>m1</h1>");
    CHECK(report.headers.at("content-type") == "text/html; charset=utf-8");
    CHECK(report.headers.at("content-security-policy").find("default-src 'none'") == 0);
    CHECK(report.headers.at("content-security-policy").find("sandbox") != std::string::npos);
    CHECK(report.headers.at("content-security-policy").find("script") == std::string::npos);
    CHECK(http_get(site.port, "/reports/m1/rates.png").headers.at("content-type") == "image/png");
    CHECK(http(site.port, "POST", "/reports/m1/report.html").status == 405);
    for (const char* path : {"/reports/",
                             "/reports/m1",
                             "/reports/m1/",
                             "/reports/m1/run.json",
                             "/reports/m1/key.pem",
                             "/reports/m1/../run.json",
                             "/reports/m1/..%2frun.json",
                             "/reports/m1/%2e%2e/run.json",
                             "/reports/../m1/report.html",
                             "/reports/./report.html",
                             "/reports//report.html",
                             "/reports/m1//report.html",
                             "/reports/m1/plot/report.html",
                             "/reports/m1/.html",
                             "/reports/m1/link.html",
                             "/reports/m1/pipe.html",
                             "/reports/m1/folder.html",
                             "/reports/m2/report.html",
                             "/reports/m3/report.html",
                             "/reports/none/report.html",
                             "/reports/m1/report.html/",
                             "/reports/m1/report.html%00.html",
                             "/reports/m1\\plot/report.html"}) {
        INFO(path);
        CHECK(http_get(site.port, path).status == 404);
    }
    CHECK(http_get(site.port, "/reports/" + std::string(5000, 'm') + "/report.html").status == 404);
    const Site without;
    CHECK(http_get(without.port, "/reports/m1/report.html").status == 404);
}

TEST_CASE("the disk is asked once for the runs, however many clients ask", "[http][runs]") {
    auto asked = std::make_shared<std::vector<Reply>>();
    HttpControl control;
    control.runs = [asked](const RunsRequest&, const Reply& reply) { asked->push_back(reply); };
    Site site({}, control);
    HttpClient first(site.port);
    HttpClient second(site.port);
    const std::string request = "GET /runs HTTP/1.1\r\nHost: localhost\r\n\r\n";
    REQUIRE(first.send(request));
    REQUIRE(second.send(request));
    CHECK(shows_uptime(site.port, 101));  // others are answered meanwhile
    REQUIRE(eventually([&] { return asked->size() == 1; }));
    asked->front().result({{"runs", json::array()}});
    CHECK(json::parse(first.answer().body) == json{{"runs", json::array()}});
    CHECK(second.answer().status == 200);
    CHECK(http_get(site.port, "/runs").status == 200);
    CHECK(http_get(site.port, "/control").body.find("false") != std::string::npos);
    CHECK(http(site.port, "POST", "/control/stop", {{"Content-Type", "application/json"}}, "{}").status ==
          403);
    site.server.close();
    CHECK(asked->size() == 1);
}

TEST_CASE("a disk that hangs uses up no connections", "[http][runs]") {
    auto asked = std::make_shared<std::vector<Reply>>();
    HttpControl control;
    control.runs = [asked](const RunsRequest&, const Reply& reply) { asked->push_back(reply); };
    control.start = [asked](const StartRequest&, const Reply& reply) { asked->push_back(reply); };
    control.stop = [asked](const StopRequest&, const Reply& reply) { asked->push_back(reply); };
    HttpOptions options;
    options.request_timeout = std::chrono::milliseconds(400);
    options.control_timeout = std::chrono::milliseconds(1);
    options.control_token = "a token for the test";
    Site site(options, control);
    const HttpAnswer runs = http_get(site.port, "/runs");
    CHECK(runs.status == 503);
    CHECK(runs.headers.at("connection") == "close");
    CHECK(json::parse(runs.body)["error"] == "no answer in time: the disk may hang");
    // The next client is not made to wait.
    CHECK(eventually([&] {
        const HttpAnswer next = http_get(site.port, "/runs");
        return next.status == 503 &&
               json::parse(next.body)["error"] == "the list of runs does not come: the disk may hang";
    }));
    for (const char* path : {"/control/start", "/control/stop"}) {
        const HttpAnswer answer = http(
            site.port, "POST", path,
            {{"Content-Type", "application/json"}, {"Authorization", "Bearer a token for the test"}}, "{}");
        CHECK(answer.status == 503);
    }
    // All clients have gone.
    CHECK(eventually([&] { return site.server.statistics().connections == 0; }));
    for (const Reply& late : *asked)
        late.result({{"runs", json::array()}});
    CHECK(eventually([&] { return http_get(site.port, "/runs").status == 200; }));
    site.server.close();
    CHECK(asked->size() == 3);
}

TEST_CASE("the day has a mean for each half minute, the largest loss, and the runs", "[http][history]") {
    LongHistory day;
    for (std::int64_t s = 0; s < 90; ++s)
        day.add(status_with(static_cast<double>(s), s >= 40 && s < 70 ? "night" : nullptr),
                at_second(300'000 + s));
    const json document = json::parse(day.text(at_second(300'090)));
    CHECK(document["time"] == json::array({300'000, 300'030}));
    CHECK(document["prompts_per_s"] == json::array({14.5, 44.5}));
    CHECK(document["lost_fraction"] == json::array({29e-6, 59e-6}));
    CHECK(document["singles_per_s"] == json::array({nullptr, nullptr}));
    const json night = {{"run", "night"},
                        {"start", 300'040.0},
                        {"stop", 300'070.0},
                        {"interrupted", false},
                        {"failed", false}};
    CHECK(document["runs"] == json::array({night}));
    // A clock that was set back.
    day.add(status_with(1), at_second(300'000));
    CHECK(json::parse(day.text(at_second(300'000)))["time"].empty());
}

TEST_CASE("columns of the day are means over the same time", "[http][history]") {
    LongHistory day;
    for (std::int64_t s = 0; s < 60; ++s) {
        json status = status_with(s < 15 ? 0 : 100);
        // Nobody knows the share of the randoms as long as there are no prompts.
        status["rates"]["net_trues_per_s"] = s < 15 ? json() : json(90);
        day.add(status, at_second(300'000 + s));
    }
    const json document = json::parse(day.text(at_second(300'060)));
    CHECK(document["prompts_per_s"][0] == 50);
    CHECK(document["net_trues_per_s"][0] == 45);
}

TEST_CASE("the day is bounded", "[http][history]") {
    LongHistory day;
    for (std::int64_t i = 0; i < 3000; ++i)
        day.add(status_with(1, i % 2 == 0 ? "even" : "odd"), at_second(30 * i));
    const json document = json::parse(day.text(at_second(90'000)));
    CHECK(document["time"].size() <= LongHistory::max_rows);
    CHECK(document["time"].back() == 30 * 2998);
    CHECK(document["runs"].size() == LongHistory::max_runs);
    CHECK(day.file_text().size() < History::max_file_bytes / 8);
}

TEST_CASE("the day survives a restart, and a damaged file does no harm", "[http][history]") {
    LongHistory before;
    for (std::int64_t s = 0; s < 100; ++s)
        before.add(status_with(7, "night"), at_second(300'000 + s));
    const std::string text = before.file_text();
    LongHistory after;
    after.read(text, at_second(300'500));
    json document = json::parse(after.text(at_second(300'500)));
    CHECK(document["prompts_per_s"] == json::array({7, 7, 7}));
    CHECK(document["runs"][0]["stop"] == 300'090.0);
    // The daemon that starts again finds out that the run was interrupted.
    json status = status_with(1);
    status["interrupted"] = {{"count", 1}, {"runs", {{{"id", "night"}}}}};
    after.add(status, at_second(300'501));
    CHECK(json::parse(after.text(at_second(300'501)))["runs"][0]["interrupted"] == true);
    // A file that a version with fewer columns wrote, in another order.
    json earlier = json::parse(text);
    earlier["columns"] = {"frames_per_s", "prompts_per_s"};
    for (json& row : earlier["rows"])
        row = {row[0], nullptr, 5};
    LongHistory updated;
    updated.read(earlier.dump(), at_second(300'500));
    const json kept = json::parse(updated.text(at_second(300'500)));
    CHECK(kept["prompts_per_s"] == json::array({5, 5, 5}));
    CHECK(kept["triples_per_s"] == json::array({nullptr, nullptr, nullptr}));
    // Too old, or in the future.
    after.read(text, at_second(300'000 + 90'000));
    CHECK(json::parse(after.text(at_second(390'000)))["time"].empty());
    after.read(text, at_second(200'000));
    CHECK(json::parse(after.text(at_second(200'000)))["runs"].empty());

    std::vector<std::string> damaged{"",
                                     "{",
                                     "null",
                                     "[]",
                                     "{}",
                                     std::string("\0\xff", 2),
                                     std::string(100'000, '['),
                                     R"({"petacqd_history":2})"};
    for (std::size_t n = 1; n < text.size(); n += 37)
        damaged.push_back(text.substr(0, n));
    json other = json::parse(text);
    other["rows"][0][0] = "x";
    damaged.push_back(other.dump());
    other = json::parse(text);
    other["columns"] = "x";
    damaged.push_back(other.dump());
    other = json::parse(text);
    other["columns"].erase(0);
    damaged.push_back(other.dump());
    other = json::parse(text);
    other["rows"][1][0] = other["rows"][0][0];
    damaged.push_back(other.dump());
    other = json::parse(text);
    other["runs"][0]["run"] = "../x";
    damaged.push_back(other.dump());
    for (const std::string& bad : damaged) {
        LongHistory day;
        CHECK_THROWS_AS(day.read(bad, at_second(300'500)), std::runtime_error);
        CHECK(json::parse(day.text(at_second(300'500)))["time"].empty());
    }
}

TEST_CASE("the server keeps the day in its file, and replaces a damaged one", "[http][history]") {
    const TemporaryDirectory data;
    HttpOptions options;
    options.history_file = data / "history.json";
    for (const char* damaged : {"", "{", "[[["}) {
        write_file(options.history_file, damaged);
        const Site site(options);
        CHECK(http_get(site.port, "/history/day").status == 200);
    }
    LongHistory before;
    const auto now = std::chrono::system_clock::now();
    for (int s = 0; s < 300; ++s)
        before.add(status_with(5), now - std::chrono::seconds(600 - s));
    write_file(options.history_file, before.file_text());
    const Site site(options);
    CHECK(json::parse(http_get(site.port, "/history/day").body)["prompts_per_s"].size() >= 9);
}

TEST_CASE("hosts that share a data directory keep a day each", "[http][history]") {
    std::array<char, 256> host{};
    REQUIRE(::gethostname(host.data(), host.size() - 1) == 0);
    CHECK(http_options(configuration_with()).history_file ==
          std::string("/data/.petacqd-history-") + host.data() + ".json");
}

TEST_CASE("the file knows a run as soon as it has started, so that a crash loses none", "[http][history]") {
    const TemporaryDirectory data;
    HttpOptions options;
    options.history_file = data / "history.json";
    const Site site(options);
    CHECK(eventually([&] {
        if (!std::filesystem::exists(options.history_file)) return false;
        LongHistory next;
        const auto now = std::chrono::system_clock::now();
        next.read(read_file(options.history_file), now);
        const json runs = json::parse(next.text(now))["runs"];
        return runs.size() == 1 && runs[0]["run"] == "mouse-7";
    }));
}

TEST_CASE("a token file that others can read, or without a token, is refused by name", "[http][control]") {
    const TemporaryDirectory directory;
    const auto file = directory / "token";
    const auto with = [&](const std::string& text, mode_t mode) {
        std::filesystem::remove(file);
        write_file(file, text);
        REQUIRE(::chmod(file.c_str(), mode) == 0);
        return refusal_of(file);
    };
    const std::string token(32, 'k');
    for (const mode_t mode : {0600U, 0400U, 0640U, 0440U})
        CHECK(with(token + "\n", mode).empty());
    CHECK(read_control_token(file) == token);
    for (const mode_t mode : {0604U, 0660U, 0644U, 0602U})
        CHECK(with(token, mode).find(file.string() + ": expected a file that only its owner can write") !=
              std::string::npos);
    if (::geteuid() == 0) {  // nobody else gives a file away
        constexpr uid_t somebody = 4321;
        write_file(file, token);
        REQUIRE(::chmod(file.c_str(), 0600) == 0);
        REQUIRE(::chown(file.c_str(), somebody, static_cast<gid_t>(-1)) == 0);
        CHECK(
            refusal_of(file).find("expected a file of root or of the daemon's user, found the owner 4321") !=
            std::string::npos);
    }
    for (const std::string& bad :
         {std::string(), std::string("\n"), std::string(15, 'k'), std::string(257, 'k'),
          std::string(100'000, 'k'), token + " " + token, token + "\n\n", token + "\n" + token,
          "\xc3\xa4" + token, token + std::string(1, '\0')}) {
        const std::string refusal = with(bad, 0600);
        CHECK(refusal.find("expected one line of 16 to 256") != std::string::npos);
        CHECK(refusal.find("kkkk") == std::string::npos);  // a secret is in no message
    }
    std::filesystem::remove(file);
    CHECK(refusal_of(file).find(file.string() + ": No such file or directory; (umask 077; openssl rand") !=
          std::string::npos);
    CHECK_FALSE(refusal_of(directory.path()).empty());
    REQUIRE(::mkfifo(file.c_str(), 0600) == 0);
    CHECK_FALSE(refusal_of(file).empty());
    CHECK_FALSE(is_authorised("Bearer ", ""));
}
