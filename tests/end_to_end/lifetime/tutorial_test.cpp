// The tutorial on positronium: its commands, as they stand on the page, and what they find.
#include <nlohmann/json.hpp>
#include <regex>
#include <string>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/tutorial.hpp"

using namespace petacq;
using namespace petacq::test;
using nlohmann::json;

namespace {

double number(const json& cell) {
    return cell.is_number() ? cell.get<double>() : 0;
}

/// With simulations of so many seconds.
void check_tutorial(const std::string& seconds) {
    const TemporaryDirectory place;
    const std::string page = tutorial_page("positronium");
    REQUIRE(contains(page, "--duration-s 30 "));
    const Outcome followed = follow_tutorial(
        std::regex_replace(page, std::regex("--duration-s 30 "), "--duration-s " + seconds + " "),
        place.path());
    INFO(followed.out);
    REQUIRE(followed.status == 0);
    const auto work = place / "positronium";
    const json lifetimes = json::parse(read_file(work / "lifetimes" / "results.json"));
    const json& regions = lifetimes["tables"]["regions"];
    REQUIRE(regions["columns"][3] == "ortho_ns");
    REQUIRE(regions["rows"].size() == 2);
    for (const auto& [row, truth] : {std::pair(0, 1.7), {1, 2.5}}) {
        const json& found = regions["rows"][static_cast<std::size_t>(row)];
        INFO(found.dump());
        CHECK(number(found[4]) > 0);
        // A tenth of the activity on the lines is that of the other tube.
        CHECK(std::abs(number(found[3]) - truth) < 3.5 * number(found[4]) + 0.06);
    }
    const json activity = json::parse(read_file(work / "activity.json"))["activity_MBq"];
    const double error = activity["relative_error"];
    CHECK(error > 0);
    CHECK(std::abs(activity["at_start"].get<double>() / 0.5 - 1) < 3.5 * error);
}

}  // namespace

TEST_CASE("the tutorial on positronium finds the lifetimes and the activity", "[e2e][lifetime]") {
    check_tutorial("2");
}

TEST_CASE("the tutorial on positronium, with runs as long as it says", "[e2e][lifetime][.long]") {
    check_tutorial("30");
}
