// petctl on a terminal: the live view, colours, and the state of the terminal afterwards.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <string>

#include "tests/support/catch.hpp"
#include "tests/tools/petctl/petctl_process.hpp"

using namespace petacq::daemon;
using namespace petacq::test;
using nlohmann::json;

namespace {

constexpr const char* alternate_screen = "\x1b[?1049h";
constexpr const char* ordinary_screen = "\x1b[?1049l";
constexpr const char* cursor_shown = "\x1b[?25h";

json status_of_many_sources() {
    json status = full_status();
    for (int i = 100; i < 160; ++i)
        status["sources"].push_back({{"id", i}, {"state", "active"}, {"frames_per_s", i}});
    return status;
}

/// False, with a message, if the system has no pseudo-terminals.
bool usable(const PseudoTerminal& terminal) {
    if (!terminal.good())
        WARN("no pseudo-terminals here (is /dev/pts mounted?): petctl on a terminal is not tried");
    return terminal.good();
}

/// On a terminal that every terminal database knows, in a locale with block characters.
std::vector<std::string> xterm() {
    return {"TERM=xterm", "LC_ALL=C.UTF-8"};
}

}  // namespace

TEST_CASE("petctl: watching ends with Ctrl-C, and with the daemon", "[control]") {
    TestServer server;
    server.handler.set_status(full_status());
    const std::string socket = server.socket().string();
    const auto lines = [](const Petctl& petctl) {
        const std::string text = petctl.output();
        return std::count(text.begin(), text.end(), '\n');
    };
    // Not a terminal: both give a line for each status.
    for (const std::vector<std::string>& command :
         {std::vector<std::string>{"status", "--watch"}, std::vector<std::string>{"watch"}}) {
        std::vector<std::string> arguments{"--socket", socket};
        arguments.insert(arguments.end(), command.begin(), command.end());
        Petctl watching(arguments);
        REQUIRE(eventually([&] { return lines(watching) >= 2; }));
        watching.kill(SIGINT);
        CHECK(watching.wait() == 0);
        CHECK(watching.output().starts_with(
            "RECORDING  running  degraded (source_silent disk_slow)  run mouse-7  "
            "up 1 h 02 min  frames 5.235 M/s"));
        CHECK_FALSE(contains(watching.output(), "\x1b"));
    }

    Petctl orphan({"--socket", socket, "status", "--watch", "--json"});
    REQUIRE(eventually([&] { return lines(orphan) >= 1; }));
    server.close();
    CHECK(orphan.wait() == 69);
    CHECK(json::parse(orphan.output().substr(0, orphan.output().find('\n'))) == full_status());
}

TEST_CASE("petctl: status is drawn again, and coloured, on a terminal", "[control]") {
    if (!usable(PseudoTerminal())) return;
    TestServer server;
    server.handler.set_status(full_status());
    const std::string socket = server.socket().string();
    {
        PseudoTerminal terminal;
        Petctl drawing({"--socket", socket, "status", "--watch"}, xterm(), terminal.name());
        CHECK(terminal.comes("\x1b[H\x1b[2J\x1b[32m\u25CF RECORDING"));
        CHECK(eventually([&] {
            terminal.read();
            return terminal.bytes().find("\x1b[2J", 10) != std::string::npos;
        }));
        drawing.kill(SIGINT);
        CHECK(drawing.wait(terminal) == 0);
    }
    {
        PseudoTerminal terminal;
        Petctl coloured({"--socket", socket, "status"}, xterm(), terminal.name());
        CHECK(coloured.wait(terminal) == 0);
        CHECK(terminal.comes("\x1b[33mdegraded\x1b[0m"));
    }
    for (const char* plain : {"NO_COLOR=1", "TERM=dumb"}) {
        PseudoTerminal terminal;
        Petctl petctl({"--socket", socket, "status"}, {plain}, terminal.name());
        CHECK(petctl.wait(terminal) == 0);
        CHECK(terminal.comes(" RECORDING  run mouse-7"));
        CHECK_FALSE(contains(terminal.bytes(), "\x1b"));
    }
}

TEST_CASE("petctl: the live view leaves the terminal as it was, however it ends", "[control]") {
    PseudoTerminal terminal;
    if (!usable(terminal)) return;
    TestServer server;
    server.handler.set_status(status_of_many_sources());
    Petctl petctl({"--socket", server.socket().string(), "watch"}, xterm(), terminal.name());
    REQUIRE(terminal.shows("q quit"));
    CHECK(contains(terminal.bytes(), alternate_screen));
    CHECK_FALSE(contains(terminal.bytes(), ordinary_screen));
    CHECK_FALSE(terminal.as_it_was());  // otherwise this test could not fail
    SECTION("by q") {
        terminal.type("q");
    }
    SECTION("by Ctrl-C") {
        terminal.type("\x03");
    }
    SECTION("by a signal") {
        petctl.kill(GENERATE(SIGTERM, SIGHUP, SIGQUIT));
    }
    CHECK(petctl.wait(terminal) == 0);
    CHECK(terminal.comes(ordinary_screen));
    CHECK(terminal.comes(cursor_shown));
    CHECK(terminal.comes("\x1b]2;RECORDING mouse-7 - petacqd small\a"));
    CHECK(terminal.comes("\x1b[23;2t"));  // the title, too
    CHECK(terminal.as_it_was());
    CHECK(petctl.errors().empty());
}

TEST_CASE("petctl: the live view outlives the daemon", "[control]") {
    PseudoTerminal terminal;
    if (!usable(terminal)) return;
    TemporaryDirectory directory;
    const auto socket = directory.path() / "control.sock";
    TestServer first;
    first.handler.set_status(full_status());
    std::filesystem::create_symlink(first.socket(), socket);
    Petctl petctl({"--socket", socket.string(), "watch"}, xterm(), terminal.name());
    REQUIRE(terminal.shows("RECORDING  run mouse-7"));
    first.close();
    CHECK(terminal.shows("? UNKNOWN  the daemon does not answer"));
    CHECK(terminal.comes("\x1b]2;UNKNOWN - petacqd small\a"));
    TestServer second;
    json status = full_status();
    status["recording"]["word"] = "INTERRUPTED";
    second.handler.set_status(status);
    std::filesystem::remove(socket);
    std::filesystem::create_symlink(second.socket(), socket);
    CHECK(terminal.shows("INTERRUPTED  run mouse-7"));
    terminal.type("q");
    CHECK(petctl.wait(terminal) == 0);
}

TEST_CASE("petctl: a daemon that stands still is one that does not answer", "[control]") {
    PseudoTerminal live;
    PseudoTerminal simple;
    if (!usable(live) || !usable(simple)) return;
    TestServer server;
    server.handler.set_status(full_status());
    const std::string socket = server.socket().string();
    Petctl watch({"--socket", socket, "watch"}, xterm(), live.name());
    Petctl status({"--socket", socket, "status", "--watch"}, xterm(), simple.name());
    REQUIRE(live.shows("RECORDING  run mouse-7"));
    REQUIRE(simple.shows("RECORDING  run mouse-7"));
    {
        const auto held = server.handler.hold_status();
        CHECK(live.shows("? UNKNOWN  the daemon does not answer"));
        CHECK(live.comes("\x1b]2;UNKNOWN - petacqd small\a"));
        CHECK(simple.shows("? UNKNOWN  the daemon does not answer"));
    }
    CHECK(live.shows("RECORDING  run mouse-7"));
    CHECK(simple.shows("RECORDING  run mouse-7"));
    live.type("q");
    CHECK(watch.wait(live) == 0);
    status.kill(SIGINT);
    CHECK(status.wait(simple) == 0);
}

TEST_CASE("petctl: the live view follows keys and the size of the terminal", "[control]") {
    PseudoTerminal terminal;
    if (!usable(terminal)) return;
    TestServer server;
    server.handler.set_status(status_of_many_sources());
    Petctl petctl({"--socket", server.socket().string(), "watch"}, xterm(), terminal.name());
    CHECK(terminal.shows("sources 1 to 6 of 62\n"));
    CHECK(terminal.shows("  3       127.0.0.1:4000  silent"));
    CHECK(terminal.shows("  prompts                312 k/s             -  █"));
    terminal.type("\x1bOF");  // End
    CHECK(terminal.shows("sources 57 to 62 of 62\n"));
    terminal.type("\x1bOA");  // up
    CHECK(terminal.shows("sources 56 to 61 of 62\n"));
    terminal.type("m");
    CHECK(terminal.shows("BDMs 1 to 1 of 1\n"));
    terminal.type("\x1bOC");  // right: by the first column
    CHECK(terminal.shows("BDMs 1 to 1 of 1, by bdm\n"));
    terminal.resize(40, 12);
    CHECK(terminal.shows("q quit  s sources  m BDMs  left/right so\n"));
    terminal.resize(5, 2);
    CHECK(terminal.shows("\u25CF REC\nq qui\n"));
    terminal.resize(100, 50);
    CHECK(terminal.shows("  dead time         3.4 % at 120 ns"));
    CHECK(terminal.screen().unknown() == "");
    terminal.type("q");
    CHECK(petctl.wait(terminal) == 0);
}

TEST_CASE("petctl: a terminal that cannot show the live view is reported", "[control]") {
    TestServer server;
    for (const auto& [type, reason] : {std::pair("TERM=nonsense", "(TERM is not known)"),
                                       std::pair("TERM=dumb", "(it cannot place the cursor)")}) {
        PseudoTerminal terminal;
        if (!usable(terminal)) return;
        Petctl petctl({"--socket", server.socket().string(), "watch"}, {type}, terminal.name());
        CHECK(petctl.wait(terminal) == 74);
        CHECK_THAT(petctl.errors(), contains(reason));
        CHECK(terminal.as_it_was());
    }
}
