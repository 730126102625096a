#include "daemon/system/quantity_text.hpp"

#include "config/base/decimals.hpp"
#include "tests/support/catch.hpp"

namespace petacq::test {

TEST_CASE("durations are rounded to the unit that is shown last") {
    using daemon::duration_text;
    CHECK(duration_text(29.96) == "30.0 s");
    CHECK(duration_text(59.94) == "59.9 s");
    CHECK(duration_text(59.96) == "1 min 00 s");
    CHECK(duration_text(89.9) == "1 min 30 s");
    CHECK(duration_text(3599.4) == "59 min 59 s");
    CHECK(duration_text(3599.9) == "1 h 00 min");
    CHECK(duration_text(2 * 3600 + 30 * 60 - 1) == "2 h 30 min");
    CHECK(duration_text(86'399) == "1 d 00 h");
    CHECK(duration_text(3 * 86'400 + 4 * 3600 - 60) == "3 d 04 h");
    CHECK_FALSE(duration_text(1e300).empty());
}

TEST_CASE("a number of which no digit is shown has no minus") {
    using config::without_minus_zero;
    CHECK(without_minus_zero("-0.000") == "0.000");
    CHECK(without_minus_zero("-0.001") == "-0.001");
    CHECK(without_minus_zero("0.00") == "0.00");
    CHECK_FALSE(std::signbit(without_minus_zero(-0.0004, 3)));
    CHECK(without_minus_zero(-0.0006, 3) == -0.0006);
}

}  // namespace petacq::test
