// The log: its lines; it never waits.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <memory>
#include <string>

#include "daemon/system/logging.hpp"
#include "tests/support/catch.hpp"

using namespace petacq::daemon;

namespace {

struct Pipe {
    Pipe() { REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0); }
    Pipe(const Pipe&) = delete;
    Pipe& operator=(const Pipe&) = delete;
    ~Pipe() {
        close_end(0);
        close_end(1);
    }
    void close_end(std::size_t end) {
        if (ends[end] >= 0) ::close(ends[end]);
        ends[end] = -1;
    }
    /// Everything written; the writing end must be closed.
    std::string read_all() {
        std::string text;
        std::array<char, 4096> chunk{};
        ssize_t got = 0;
        while ((got = ::read(ends[0], chunk.data(), chunk.size())) > 0) {
            text.append(chunk.data(), static_cast<std::size_t>(got));
        }
        return text;
    }
    std::array<int, 2> ends{-1, -1};
};

}  // namespace

TEST_CASE("log: one line per message, with UTC time and level", "[control]") {
    Pipe pipe;
    {
        const Logging logging(LogLevel::info, pipe.ends[1]);
        pipe.close_end(1);
        log_message(LogLevel::debug, "not shown");
        log_info("run {} started", "r1");
        log_warning("two\nlines \x1b[31m and a tab\t.");
        set_log_level(LogLevel::trace);
        log_message(LogLevel::trace, "now 1");
        set_log_level(LogLevel::error);
        log_warning("not shown");
        log_error("{}", std::string(10'000, 'x'));
    }
    const std::string text = pipe.read_all();
    CHECK_THAT(text, Catch::Matchers::Matches(
                         "(\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z [a-z]+ +[^\\n]+\\n){4}"));
    CHECK(text.find("Z info    run r1 started\n") != std::string::npos);
    CHECK(text.find("Z warning two lines \\u001b[31m and a tab .\n") != std::string::npos);
    CHECK(text.find("Z trace   now 1\n") != std::string::npos);
    CHECK(text.find(std::string(4000, 'x') + "\n") != std::string::npos);
    CHECK(text.find("not") == std::string::npos);
    log_error("without a Logging this goes nowhere");
}

TEST_CASE("log: a pipe that nobody reads loses messages, not time", "[control]") {
    Pipe pipe;
    const LogStatistics before = log_statistics();
    constexpr std::uint64_t sent = 20'000;
    {
        const Logging logging(LogLevel::info, pipe.ends[1]);
        pipe.close_end(1);
        for (std::uint64_t i = 0; i < sent; ++i)
            log_info("{:0500}", i);
    }
    const LogStatistics after = log_statistics();
    const std::string text = pipe.read_all();
    const auto lines = static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n'));
    CHECK(lines > 0);
    CHECK(lines + (after.overrun - before.overrun) + (after.unwritten - before.unwritten) == sent);
}

TEST_CASE("log: the process survives when the reader exits", "[control]") {
    Pipe pipe;
    REQUIRE(std::signal(SIGPIPE, SIG_DFL) != SIG_ERR);
    const LogStatistics before = log_statistics();
    {
        const Logging logging(LogLevel::info, pipe.ends[1]);
        pipe.close_end(1);
        pipe.close_end(0);
        for (int i = 0; i < 100; ++i)
            log_info("nobody reads this");
    }
    CHECK(log_statistics().unwritten - before.unwritten == 100);
}

TEST_CASE("log: a closed stderr does not become the next file", "[control]") {
    const int saved = ::fcntl(2, F_DUPFD_CLOEXEC, 10);
    REQUIRE(saved >= 0);
    ::close(2);
    int opened = -1;
    {
        const Logging logging(LogLevel::info);
        opened = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
        log_info("to nowhere");
    }
    ::dup2(saved, 2);
    ::close(saved);
    CHECK(opened > 2);
    ::close(opened);
}

TEST_CASE("log: the same message comes once in an interval", "[control]") {
    using std::chrono::seconds;
    RateLimit limit(seconds(10));
    const RateLimit::Clock::time_point start{};
    CHECK(limit.pass("a", start) == 0U);
    CHECK_FALSE(limit.pass("a", start + seconds(1)).has_value());
    CHECK_FALSE(limit.pass("a", start + seconds(9)).has_value());
    CHECK(limit.pass("b", start + seconds(9)) == 0U);
    CHECK(limit.pass("a", start + seconds(10)) == 2U);
    CHECK_FALSE(limit.pass("a", start + seconds(19)).has_value());
    CHECK(limit.pass("a", start + seconds(20)) == 1U);
    // Keys from outside cannot make the table grow without limit.
    for (int i = 0; i < 10'000; ++i)
        limit.pass("key " + std::to_string(i), start + seconds(21));
    CHECK_FALSE(limit.pass("one more", start + seconds(22)).has_value());
    CHECK(limit.pass("one more", start + seconds(40)) == 0U);

    Pipe pipe;
    {
        const Logging logging(LogLevel::info, pipe.ends[1]);
        pipe.close_end(1);
        RateLimit brief(std::chrono::nanoseconds(0));
        RateLimit long_one(std::chrono::hours(1));
        for (int i = 0; i < 3; ++i)
            brief.log(LogLevel::info, "k", "brief {}", i);
        for (int i = 0; i < 3; ++i)
            long_one.log(LogLevel::info, "k", "long {}", i);
    }
    const std::string text = pipe.read_all();
    CHECK(text.find("brief 2\n") != std::string::npos);
    CHECK(text.find("long 0\n") != std::string::npos);
    CHECK(text.find("long 1") == std::string::npos);
}
