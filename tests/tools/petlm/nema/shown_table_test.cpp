// Results as people read them.
#include "tools/petlm/results/shown_table.hpp"

#include "tests/support/catch.hpp"

namespace petacq::test {

using namespace petacq::results;

TEST_CASE("a result has the digits that its error leaves", "[nema]") {
    CHECK(measured_text(1.23456, 0.0123) == "1.235 ± 0.012");
    CHECK(measured_text(0.0451234, 0.00017) == "0.04512 ± 0.00017");
    CHECK(measured_text(123456.7, 1234.5) == "123457 ± 1234");
    CHECK(measured_text(-0.0001, 0.12) == "0.00 ± 0.12");
    CHECK(measured_text(1.23456789, unknown) == "1.2346");
    CHECK(measured_text(1234567, unknown) == "1234567");
    CHECK(measured_text(-0.0, unknown) == "0");
    CHECK(measured_text(unknown, unknown) == "unknown");
    CHECK(measured_text(2e-9, 1e-10) == "2e-09 ± 1e-10");
    CHECK(text_of(Figure{"a", "A", 2.5, 0.25, "mm"}) == "2.50 ± 0.25 mm");
}

TEST_CASE("a table for people has units, and errors beside their values", "[nema]") {
    const ShownTable shown = shown_table(
        {"t",
         "T",
         {"run", "activity_MBq", "cps_per_Bq", "cps_per_Bq_error", "trues_percent",
          "concentration_kBq_per_ml", "duration_s", "randoms_per_prompt"},
         {{std::string("a"), 1.23456789, 0.04512345, 0.00017, unknown, 2.0, 30.0, 0.000123456789}}});
    CHECK(shown.columns == std::vector<std::string>{"run", "activity (MBq)", "sensitivity (cps/Bq)",
                                                    "trues (%)", "concentration (kBq/ml)", "duration (s)",
                                                    "randoms per prompt"});
    CHECK(shown.rows == std::vector<std::vector<std::string>>{
                            {"a", "1.2346", "0.04512 ± 0.00017", "", "2", "30", "0.00012346"}});
    CHECK(shown.numbers == std::vector<bool>{false, true, true, true, true, true, true});
}

}  // namespace petacq::test
