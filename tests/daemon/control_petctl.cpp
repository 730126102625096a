// petctl as a real process, against a server with a fake handler.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/daemon/control_fixture.hpp"

using namespace petacq::daemon;
using namespace petacq::test;
using nlohmann::json;

namespace {

std::string contents(const std::filesystem::path& file) {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

/// A petctl process with its output in files.
class Petctl {
  public:
    explicit Petctl(std::vector<std::string> arguments, const std::vector<std::string>& environment = {},
                    const std::string& terminal = "") {
        arguments.insert(arguments.begin(), PETCTL_PROGRAM);
        std::vector<char*> argv;
        for (std::string& argument : arguments)
            argv.push_back(argument.data());
        argv.push_back(nullptr);
        std::vector<std::string> kept = environment;
        for (char** variable = environ; *variable != nullptr; ++variable) {
            if (!std::string(*variable).starts_with("PETACQ_SOCKET=")) kept.emplace_back(*variable);
        }
        std::vector<char*> envp;
        for (std::string& variable : kept)
            envp.push_back(variable.data());
        envp.push_back(nullptr);

        posix_spawn_file_actions_t actions{};
        posix_spawn_file_actions_init(&actions);
        const std::string out = terminal.empty() ? output_file() : terminal;
        const std::string err = (directory_.path() / "err").string();
        posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), O_WRONLY | O_CREAT | O_NOCTTY, 0600);
        posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), O_WRONLY | O_CREAT, 0600);
        const int failed =
            ::posix_spawn(&process_, PETCTL_PROGRAM, &actions, nullptr, argv.data(), envp.data());
        posix_spawn_file_actions_destroy(&actions);
        REQUIRE(failed == 0);
    }
    Petctl(const Petctl&) = delete;
    Petctl& operator=(const Petctl&) = delete;
    ~Petctl() {
        if (process_ > 0) {
            ::kill(process_, SIGKILL);
            wait();
        }
    }

    /// Its exit status; minus the signal that ended it.
    int wait() {
        int status = 0;
        REQUIRE(::waitpid(process_, &status, 0) == process_);
        process_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    }
    void interrupt() const { ::kill(process_, SIGINT); }
    [[nodiscard]] std::string output() const { return contents(output_file()); }
    [[nodiscard]] std::string errors() const { return contents(directory_.path() / "err"); }

  private:
    [[nodiscard]] std::string output_file() const { return (directory_.path() / "out").string(); }
    TemporaryDirectory directory_;
    pid_t process_ = -1;
};

/// The answer to `stop` of a run that went well.
json stop_result() {
    return {{"run", "r1"},        {"reason", "stopped by operator"},
            {"seconds", 12.5},    {"prompts", 1234567},
            {"delayeds", 12},     {"ledger_closed", true},
            {"failure", nullptr}, {"ledger", {{"closed", true}, {"open", json::array()}}}};
}

json full_status() {
    return json::parse(R"({
        "version": "0.1.0", "state": "running", "uptime_s": 3725.4, "backend": "cpu", "unheard_of": {"x": 1},
        "health": {"state": "degraded", "reasons": ["source 3 silent", "disk slow"]},
        "run": {"id": "mouse-7", "start_utc": "2026-01-31T12:00:00Z", "duration_s": 12.5, "note": "evil \u001b[31m"},
        "rates": {"datagrams_per_s": 55000, "frames_per_s": 5234567, "singles_per_s": 4100000,
                  "prompts_per_s": 312000.5, "delayeds_per_s": 900, "bytes_per_s": 83753072},
        "ledger": {"datagrams": {"received": 1234567, "accepted": 1234567, "lost": 12, "duplicate": 0},
                   "frames": {"received": 100, "late": 3, "bad_time": 0, "accepted": 97},
                   "singles": {"decided": 97, "prompts": 80, "delayeds": 4, "unpaired": 13, "pending_at_end": 0},
                   "pairs": {"prompts_found": 40, "delayeds_found": 0, "written": 40, "write_failed": 0,
                             "in_queue": 0},
                   "saved_singles": {"found": 0, "written": 0, "write_failed": 0, "in_queue": 0},
                   "loss_known": true, "closed": true, "open": []},
        "sources": [{"id": 3, "address": "127.0.0.1:4000", "state": "silent", "frames": 1000000, "datagrams": 10,
                     "lost": 12, "skew_us": -1.25, "last_seen_s": 4.2},
                    {"id": 11, "state": "active"}],
        "modules": [{"bdm": 0, "singles_per_s": 1500, "mean_keV": 498.25, "peak_keV": 511, "temperature_C": 23.5}],
        "watermark_s": 12.345, "queues": {"free_batches": 60}})");
}

}  // namespace

TEST_CASE("petctl: start and stop", "[control]") {
    TestServer server;
    const std::string socket = server.socket().string();
    {
        Petctl petctl({"--socket", socket, "start", "--run", "r1", "--duration", "2.5", "--note", "a note"});
        CHECK(petctl.wait() == 0);
        CHECK(petctl.output() == "run r1 started\n");
        CHECK(server.handler.last_start().run == "r1");
        CHECK(server.handler.last_start().duration_s == 2.5);
        CHECK(server.handler.last_start().note == "a note");
    }
    {
        Petctl petctl({"start", "--socket", socket, "--run", "used"});
        CHECK(petctl.wait() == 1);
        CHECK(petctl.output().empty());
        CHECK(petctl.errors() == "petctl: run id 'used' is used already\n");
    }
    {
        Petctl petctl({"stop"}, {"PETACQ_SOCKET=" + socket});
        const Reply reply = server.handler.take_stop();
        CHECK(petctl.output().empty());  // it waits
        reply.result(stop_result());
        CHECK(petctl.wait() == 0);
        CHECK(petctl.output() == "run r1 stopped: 1,234,567 prompts, 12 delayeds, ledger closed\n");
        CHECK(petctl.errors().empty());
    }
}

TEST_CASE("petctl: stop says when the run is not whole", "[control]") {
    TestServer server;
    json result = stop_result();
    std::string line = "run r1 stopped: 1,234,567 prompts, 12 delayeds, ledger closed\n";
    std::string errors;
    SECTION("it failed") {
        result["failure"] = "coincidences.plm: No space left on device\x1b[31m";
        errors = "petctl: the run failed: coincidences.plm: No space left on device?[31m\n";
    }
    SECTION("its ledger does not close") {
        result["ledger_closed"] = false;
        result["ledger"] = {{"closed", false}, {"open", {"frames: received 9 is not accepted 8"}}};
        line = "run r1 stopped: 1,234,567 prompts, 12 delayeds, ledger NOT CLOSED\n";
        errors = "petctl: the ledger does not close; frames: received 9 is not accepted 8\n";
    }
    SECTION("both, and little is said") {
        result = {{"run", "r1"}, {"failure", ""}, {"ledger_closed", false}};
        line = "run r1 stopped: - prompts, - delayeds, ledger NOT CLOSED\n";
        errors = "petctl: the run failed: -\npetctl: the ledger does not close\n";
    }
    Petctl petctl({"--socket", server.socket().string(), "stop"});
    server.handler.take_stop().result(result);
    CHECK(petctl.wait() == 1);
    CHECK(petctl.output() == line);
    CHECK(petctl.errors() == errors);
}

TEST_CASE("petctl: a daemon that is not there, or goes away", "[control]") {
    const TemporaryDirectory directory;
    const std::string socket = (directory.path() / "c.sock").string();
    Petctl petctl({"--socket", socket, "status"});
    CHECK(petctl.wait() == 69);
    CHECK(petctl.errors() == "cannot reach petacqd at " + socket + ": No such file or directory\n");

    TestServer server;
    Petctl stop({"--socket", server.socket().string(), "stop"});
    const Reply never = server.handler.take_stop();
    server.close();
    CHECK(stop.wait() == 69);
    CHECK(contains(stop.errors(), "it closed the connection"));
}

TEST_CASE("petctl: usage errors", "[control]") {
    const std::vector<std::vector<std::string>> wrong{{},
                                                      {"launch"},
                                                      {"start", "--duration", "0"},
                                                      {"start", "--duration", "nan"},
                                                      {"start", "--duration", "1h"},
                                                      {"status", "--xml"},
                                                      {"stop", "now"}};
    for (const auto& arguments : wrong) {
        Petctl petctl(arguments);
        CHECK(petctl.wait() == 64);
        CHECK_FALSE(petctl.errors().empty());
    }
    Petctl help({"--help"});
    CHECK(help.wait() == 0);
    CHECK(contains(help.output(), "status"));
}

TEST_CASE("petctl: status for people", "[control]") {
    TestServer server;
    server.handler.set_status(full_status());
    Petctl petctl({"--socket", server.socket().string(), "status"});
    CHECK(petctl.wait() == 0);
    const std::string text = petctl.output();
    INFO(text);
    CHECK(contains(text, "petacqd 0.1.0\n"));
    CHECK(contains(text, "  state             running\n"));
    CHECK(contains(text, "  health            degraded: source 3 silent; disk slow\n"));
    CHECK(contains(text, "  uptime            1 h 02 min\n"));
    CHECK(contains(text, "  run               mouse-7\n"));
    CHECK(contains(text, "evil ?[31m"));
    CHECK(contains(text, "  frames            5.235 M/s\n"));
    CHECK(contains(text, "  bytes             83.75 MB/s\n"));
    CHECK(contains(text, "ledger: closed\n"));
    CHECK(contains(text, "  datagrams   accepted 1,234,567  lost 12  received 1,234,567\n"));
    CHECK(contains(text, "  frames      accepted 97  late 3  received 100\n"));
    CHECK(contains(text, "  singles     decided 97  delayeds 4  prompts 80  unpaired 13\n"));
    CHECK(contains(text, "  pairs       delayeds_found 0  prompts_found 40  written 40\n"));
    CHECK_FALSE(contains(text, "saved_singles"));
    CHECK(contains(text,
                   "  source         address   state     frames  datagrams  lost  skew us  seen s ago\n"));
    CHECK(contains(text,
                   "  3       127.0.0.1:4000  silent  1,000,000         10    12     -1.2         4.2\n"));
    CHECK(contains(text,
                   "  11                   -  active          -          -     -        -           -\n"));
    CHECK(contains(text, "  0    1.5 k/s     498.2     511.0    23.5\n"));
    CHECK_FALSE(contains(text, "unheard_of"));

    json with_singles = full_status();
    with_singles["ledger"]["saved_singles"] = {{"found", 97}, {"written", 90}, {"in_queue", 7}};
    server.handler.set_status(with_singles);
    Petctl saving({"--socket", server.socket().string(), "status"});
    CHECK(saving.wait() == 0);
    CHECK(contains(saving.output(), "  saved_singles  found 97  in_queue 7  written 90\n"));

    for (const json& odd :
         {json(), json::array(), json{{"run", "r"}, {"sources", 5}, {"rates", nullptr}},
          json{{"state", 5}, {"ledger", {{"frames", {1, 2}}}}, {"modules", {1, nullptr}}}}) {
        server.handler.set_status(odd);
        Petctl tolerant({"--socket", server.socket().string(), "status"});
        CHECK(tolerant.wait() == 0);
        CHECK(contains(tolerant.output(), "  frames            -\n"));
    }
}

TEST_CASE("petctl: status as JSON", "[control]") {
    TestServer server;
    server.handler.set_status(full_status());
    Petctl petctl({"--socket", server.socket().string(), "status", "--json"});
    CHECK(petctl.wait() == 0);
    CHECK(json::parse(petctl.output()) == full_status());
}

TEST_CASE("petctl: watching ends with Ctrl-C, and with the daemon", "[control]") {
    TestServer server;
    server.handler.set_status(full_status());
    const std::string socket = server.socket().string();
    const auto lines = [](const Petctl& petctl) {
        const std::string text = petctl.output();
        return std::count(text.begin(), text.end(), '\n');
    };
    Petctl watching({"--socket", socket, "status", "--watch"});
    REQUIRE(eventually([&] { return lines(watching) >= 2; }));
    watching.interrupt();
    CHECK(watching.wait() == 0);
    CHECK(watching.output().starts_with("running  degraded  run mouse-7  up 1 h 02 min  frames 5.235 M/s"));
    CHECK_FALSE(contains(watching.output(), "\x1b"));

    const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (terminal < 0) {
        WARN("no pseudo-terminals here (is /dev/pts mounted?): petctl on a terminal is not tried");
        return;
    }
    REQUIRE(::grantpt(terminal) == 0);
    REQUIRE(::unlockpt(terminal) == 0);
    std::array<char, 64> name{};
    REQUIRE(::ptsname_r(terminal, name.data(), name.size()) == 0);
    Petctl drawing({"--socket", socket, "status", "--watch"}, {}, name.data());
    std::string seen;
    while (!contains(seen, "modules") || seen.find("\x1b[H\x1b[2J", 1) == std::string::npos) {
        std::array<char, 4096> chunk{};
        const ssize_t got = ::read(terminal, chunk.data(), chunk.size());
        REQUIRE(got > 0);
        seen.append(chunk.data(), static_cast<std::size_t>(got));
    }
    CHECK(seen.starts_with("\x1b[H\x1b[2Jpetacqd 0.1.0"));
    drawing.interrupt();
    CHECK(drawing.wait() == 0);
    ::close(terminal);

    Petctl orphan({"--socket", socket, "status", "--watch", "--json"});
    REQUIRE(eventually([&] { return lines(orphan) >= 1; }));
    server.close();
    CHECK(orphan.wait() == 69);
    CHECK(json::parse(orphan.output().substr(0, orphan.output().find('\n'))) == full_status());
}
