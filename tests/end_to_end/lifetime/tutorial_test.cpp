// The tutorial on positronium: its commands, as they stand on the page, and what they find.
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <tuple>

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

/// A number on the page, where the expression has its group.
double number_on(const std::string& page, const std::string& expression) {
    std::smatch found;
    INFO(expression);
    REQUIRE(std::regex_search(page, found, std::regex(expression)));
    return std::stod(found[1]);
}

/// With simulations of so many seconds. `as_told`: they are as long as the page says, so its figures come
/// out.
void check_tutorial(const std::string& seconds, bool as_told) {
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
    for (const auto& [row, side, truth] : {std::tuple(0, "left", 1.7), {1, "right", 2.5}}) {
        const json& found = regions["rows"][static_cast<std::size_t>(row)];
        INFO(found.dump());
        CHECK(number(found[4]) > 0);
        // A tenth of the activity on the lines is that of the other tube.
        CHECK(std::abs(number(found[3]) - truth) < 3.5 * number(found[4]) + 0.06);
        if (as_told) {
            CHECK(
                number(found[3]) ==
                Approx(number_on(page, "([0-9.]+) ± [0-9.]+ ns on the " + std::string(side))).margin(0.006));
            CHECK(number(found[4]) ==
                  Approx(number_on(page, "([0-9.]+) ns on the " + std::string(side))).margin(0.006));
        }
    }
    const json activity = json::parse(read_file(work / "activity.json"))["activity_MBq"];
    const double error = activity["relative_error"];
    CHECK(error > 0);
    CHECK(std::abs(activity["at_start"].get<double>() / 0.5 - 1) < 3.5 * error);
    if (as_told) {
        CHECK(activity["at_start"].get<double>() ==
              Approx(number_on(page, "It finds ([0-9.]+) MBq")).margin(0.0006));
        CHECK(100 * error == Approx(number_on(page, "with an error of ([0-9.]+) %")).margin(0.06));
    }
}

}  // namespace

TEST_CASE("the tutorial on positronium finds the lifetimes and the activity", "[e2e][lifetime]") {
    check_tutorial("2", false);
}

TEST_CASE("the tutorial on positronium, with runs as long as it says", "[e2e][lifetime][.long]") {
    check_tutorial("30", true);
}
