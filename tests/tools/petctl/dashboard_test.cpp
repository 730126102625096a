// The live view of petctl for a status, a size and keys, without a terminal.
#include <fmt/core.h>

#include <limits>
#include <string>

#include "tests/support/catch.hpp"
#include "tests/tools/petctl/petctl_process.hpp"
#include "tools/petctl/text/dashboard.hpp"

using namespace petacq::petctl;
using namespace petacq::test;
using nlohmann::json;

namespace {

std::string drawn(Dashboard& dashboard, std::size_t width, std::size_t height, double age_s = 0) {
    const Lines lines = dashboard.draw(width, height, true, age_s);
    CHECK(lines.size() == height);
    return joined(lines, false);
}

/// Sources 0 to 39, with rates that fall, and one that is unknown.
json forty_sources() {
    json status = full_status();
    status["sources"] = json::array();
    for (int i = 0; i < 40; ++i)
        status["sources"].push_back({{"id", i}, {"state", "active"}, {"frames_per_s", 1000 - i}});
    status["sources"][20]["frames_per_s"] = nullptr;
    return status;
}

std::size_t place(const std::string& text, const std::string& part) {
    INFO(part);
    const std::size_t found = text.find(part);
    CHECK(found != std::string::npos);
    return found;
}

}  // namespace

TEST_CASE("dashboard: every size shows its most important lines", "[control]") {
    Dashboard dashboard;
    drawn(dashboard, 80, 24);  // before any status
    dashboard.add(forty_sources());
    for (const std::size_t height : {1U, 2U, 3U, 5U, 8U, 12U, 24U, 40U, 200U}) {
        for (const std::size_t width : {0U, 1U, 40U, 80U, 300U})
            drawn(dashboard, width, height);
    }
    CHECK(dashboard.draw(80, 0, true, 0).size() <= 1);
    const std::string small = drawn(dashboard, 80, 14);
    CHECK(contains(small, "prompts"));
    CHECK(contains(small, "note: evil \\u001b[31m\n"));
    CHECK_FALSE(contains(small, "in multiples"));
    CHECK(contains(small, "sources 1 to"));
    const std::string large = drawn(dashboard, 80, 60);
    INFO(large);
    CHECK(contains(large, "in multiples"));
    CHECK(contains(large, "triples"));
    CHECK(contains(large, "  stages            receiver 0 25 %, writer 0 % STALLED"));
    // If a fact does not fit into its line, the next line continues it.
    CHECK(contains(large, "10 MB/s written, 1 d 10 h\n" + std::string(20, ' ') + "left\n"));
    CHECK(contains(large, "sources 1 to 26 of 40"));
    CHECK_FALSE(contains(large, "no status for"));
    CHECK(contains(drawn(dashboard, 80, 60, 12.4), "no status for 12 s"));
}

TEST_CASE("dashboard: it knows nothing of the recording while no status comes", "[control]") {
    Dashboard dashboard;
    dashboard.add(full_status());
    CHECK(contains(drawn(dashboard, 80, 24, 9.9), "RECORDING  run mouse-7"));
    CHECK(contains(drawn(dashboard, 80, 24, 10.1), "? UNKNOWN  the daemon does not answer"));
    CHECK(dashboard.title() == "UNKNOWN - petacqd small");
    dashboard.add(full_status());
    CHECK(contains(drawn(dashboard, 80, 24), "RECORDING  run mouse-7"));
    CHECK(dashboard.title() == "RECORDING mouse-7 - petacqd small");
}

TEST_CASE("dashboard: the table is scrolled within its bounds", "[control]") {
    Dashboard dashboard;
    dashboard.add(forty_sources());
    const auto title = [&] {
        const std::string text = drawn(dashboard, 80, 24);
        const std::size_t begin = place(text, "sources ");
        return text.substr(begin, text.find('\n', begin) - begin);
    };
    CHECK(title() == "sources 1 to 6 of 40");
    for (const auto& [key, expected] :
         {std::pair{KeyPress::up, "sources 1 to 6 of 40"}, std::pair{KeyPress::down, "sources 2 to 7 of 40"},
          std::pair{KeyPress::page_down, "sources 8 to 13 of 40"},
          std::pair{KeyPress::end, "sources 35 to 40 of 40"},
          std::pair{KeyPress::page_down, "sources 35 to 40 of 40"},
          std::pair{KeyPress::page_up, "sources 29 to 34 of 40"},
          std::pair{KeyPress::home, "sources 1 to 6 of 40"},
          std::pair{KeyPress::page_up, "sources 1 to 6 of 40"}}) {
        dashboard.press(key);
        CHECK(title() == expected);
    }
    // Fewer rows than were scrolled past.
    dashboard.press(KeyPress::end);
    json status = forty_sources();
    status["sources"].erase(3);
    while (status["sources"].size() > 3)
        status["sources"].erase(3);
    dashboard.add(status);
    CHECK(title() == "sources 1 to 3 of 3");
    status["sources"] = nullptr;
    dashboard.add(status);
    CHECK(title() == "sources 0 to 0 of 0");
}

TEST_CASE("dashboard: the tables are sorted by any column, unknown values last", "[control]") {
    Dashboard dashboard;
    dashboard.add(forty_sources());
    const auto row = [&](int id) { return place(drawn(dashboard, 80, 80), fmt::format("\n  {:<6}  ", id)); };
    CHECK(row(0) < row(39));
    for (int i = 0; i < 4; ++i)
        dashboard.press(KeyPress::right);
    CHECK(contains(drawn(dashboard, 80, 80), "of 40, by frames\n"));
    CHECK(row(39) < row(0));
    CHECK(row(0) < row(20));
    dashboard.press(KeyPress::reverse);
    CHECK(contains(drawn(dashboard, 80, 80), "of 40, by frames, largest first\n"));
    CHECK(row(0) < row(39));
    CHECK(row(39) < row(20));
    dashboard.press(KeyPress::left);
    CHECK(contains(drawn(dashboard, 80, 80), "by state"));
    for (int i = 0; i < 3; ++i)
        dashboard.press(KeyPress::left);
    CHECK(contains(drawn(dashboard, 80, 80), "by reason"));
    // Each table keeps its own order.
    dashboard.press(KeyPress::modules);
    CHECK(contains(drawn(dashboard, 80, 80), "BDMs 1 to 1 of 1\n"));
    dashboard.press(KeyPress::sources);
    CHECK(contains(drawn(dashboard, 80, 80), "by reason"));
}

TEST_CASE("dashboard: the recent past of a rate is drawn up to now", "[control]") {
    constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
    CHECK(sparkline({0, 1, 2, 3, 4, 5, 6, 7}, true) == "▁▂▃▄▅▆▇█");
    CHECK(sparkline({0, 350, 700}, false) == "_=#");
    CHECK(sparkline({unknown, 5, unknown}, true) == " █ ");
    CHECK(sparkline({0, 0}, true) == "▁▁");
    CHECK(sparkline({-1, 1}, true) == "▁█");
    CHECK(sparkline({}, true).empty());

    Dashboard dashboard;
    json status = full_status();
    for (int i = 0; i < 1000; ++i) {
        status["rates"]["prompts_per_s"] = i % 2;
        dashboard.add(status);
    }
    status["rates"].erase("prompts_per_s");
    dashboard.add(status);
    CHECK(contains(drawn(dashboard, 52, 40), "  prompts                      -             -  █▁█ \n"));
    CHECK(contains(drawn(dashboard, 48, 40), "  prompts                      -             -  \n"));
}
