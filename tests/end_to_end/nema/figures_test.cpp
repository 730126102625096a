// The figures beside those of the standard, on a scanner of its own, against the truth of the simulator.
#include "tests/end_to_end/nema/decagon.hpp"
#include "tests/end_to_end/nema/simulated.hpp"

using namespace petacq;
using namespace petacq::test;
using nlohmann::json;

TEST_CASE("petlm nema count-rate: both estimates of randoms and the NECR by slice", "[e2e][nema]") {
    Simulated simulated;
    simulated.use(decagon());
    const auto scanner = simulated.scanner();
    const auto line = [](const std::string& mbq, const std::string& seconds) {
        return std::vector<std::string>{"--line",       "10,0,-30,10,0,30," + mbq,
                                        "--object",     "0,0,0,12.5,70",
                                        "--duration-s", seconds,
                                        "--seed",       "21"};
    };
    const auto low = in_phantom(scanner, simulated.run("low", line("0.8", "6")));
    const auto high = in_phantom(scanner, simulated.run("high", line("40", "0.03")));
    const json rates = simulated.nema("count-rate", {"low", "high"}, {"--activity-mbq", "0.8,40"});
    for (std::size_t i = 0; i < 2; ++i) {
        auto row = row_of(rates, "rates", i);
        const InPhantom& truth = i == 0 ? low : high;
        const double t = row["duration_s"];
        const double randoms = truth.counts.at(Origin::random) / t;
        const double randoms_error = std::sqrt(randoms / t);
        const double trues = truth.all() / t - background_of(truth) / t;
        CAPTURE(i, trues, row["trues"], randoms, row["randoms"], row["randoms_by_scatter_fraction"],
                row["randoms_by_scatter_fraction_error"]);
        CHECK(row["total"] == Approx(truth.all() / t).epsilon(1e-9));
        // Gaps between blocks leave angles without lines through the source, which must not matter.
        CHECK(std::abs(row["trues"] - trues) < 2 * row["trues_error"]);
        CHECK(std::abs(row["scatter"] - (background_of(truth) / t - randoms)) <
              3 * std::hypot(row["scatter_error"], randoms_error));
        CHECK(std::abs(row["necr"] - necr_of(truth) / t) < 2 * row["necr_error"]);
        CHECK(std::abs(row["randoms"] - randoms) < 3 * randoms_error);
        const double by_fraction_error = row["randoms_by_scatter_fraction_error"];
        CHECK(std::abs(row["randoms_by_scatter_fraction"] - randoms) <
              3 * std::hypot(by_fraction_error, randoms_error));
        CHECK(std::abs(row["randoms_by_delayeds"] - randoms) <
              3 * std::hypot(row["randoms_by_delayeds_error"], randoms_error));
        CHECK(row["randoms_by_delayeds_error"] > 0);
        // The estimate from the singles does not depend on the noise of the scatter fraction.
        CHECK(by_fraction_error > randoms_error);
        // By the inequality of Cauchy and Schwarz.
        CHECK(row["necr_of_sums"] < row["necr"]);
        CHECK(row["necr_of_sums"] == Approx(row["trues"] * row["trues"] / row["total"]));
        // Where delayed coincidences are subtracted, the randoms count twice.
        CHECK(row["necr_delayeds_subtracted"] ==
              Approx(row["necr"] * row["total"] / (row["total"] + randoms)).epsilon(0.01));
    }
    CHECK(rates["beside"]["necr_of_sums_per_s"]["value"] == row_of(rates, "rates", 1)["necr_of_sums"]);

    const json only_high = simulated.nema("count-rate", {"high"}, {"--activity-mbq", "40"});
    CHECK(row_of(only_high, "rates", 0).count("randoms_by_scatter_fraction") == 0);
    CHECK_THAT(only_high["warnings"].dump(), contains("No acquisition has randoms below 1 %"));
}

TEST_CASE("petlm nema sensitivity: the trues of all lines do not hold randoms", "[e2e][nema]") {
    Simulated simulated;
    simulated.use(decagon());
    constexpr double mbq = 20;
    constexpr double seconds = 0.012;
    const auto at = [&](const std::string& name, const std::string& place) {
        return simulated.run(name,
                             {"--point", place, "--duration-s", "0.012", "--scatter", "0", "--seed", "22"});
    };
    const std::vector<std::vector<Labelled>> runs = {at("low", "0,0,-12,20"), at("middle", "0,0,0,20")};
    const json results =
        simulated.nema("sensitivity", {"low", "middle"}, {"--activity-mbq", std::to_string(mbq / 0.906)});
    REQUIRE(results["tables"]["positions"]["rows"].size() == 2);
    for (std::size_t i = 0; i < 2; ++i) {
        double trues = 0;
        double randoms = 0;
        for (const auto& [pair, origin] : runs[i])
            ++(origin == Origin::random ? randoms : trues);
        auto row = row_of(results, "positions", i);
        const double per_count = 100 / (mbq * 1e6 * seconds);
        CAPTURE(i, trues, randoms, row["absolute_percent"], row["trues_percent"]);
        CHECK(randoms > 0.02 * trues);
        CHECK(std::abs(row["trues_percent"] / per_count - trues) < 3 * std::sqrt(randoms));
        CHECK(row["trues_percent_error"] == Approx(std::sqrt(trues + randoms) * per_count).epsilon(0.02));
        // The standard counts the randoms within 1 cm of the source.
        CHECK(row["absolute_percent"] / per_count > trues + 0.15 * randoms);
    }
    CHECK(results["beside"]["central_trues_percent"]["value"] ==
          row_of(results, "positions", 1)["trues_percent"]);
}

TEST_CASE("petlm nema resolution: the projections are as wide as the source and the crystals",
          "[e2e][nema]") {
    Simulated simulated;
    simulated.use(decagon());
    simulated.run("r5", {"--point", "4.3,2.6,1,2", "--positron-range-mm", "2", "--duration-s", "0.7",
                         "--scatter", "0", "--seed", "23"});
    const json results = simulated.nema("resolution", {"r5"}, {"--max-ring-difference", "5"});
    INFO(results["beside"].dump() << results["figures"].dump());
    // A triangle of half a crystal, and as much again by bins and interpolation.
    const double expected = std::hypot(2, 0.56, 0.56);
    for (const std::string direction : {"radial", "tangential"}) {
        const double of_projection = results["beside"]["fwhm_of_projection_" + direction + "_mm"]["value"];
        CHECK(of_projection == Approx(expected).epsilon(0.06));
        const double error = results["figures"]["fwhm_" + direction + "_mm"]["error"];
        CHECK(
            std::abs(of_projection - results["figures"]["fwhm_" + direction + "_mm"]["value"].get<double>()) <
            3 * error + 0.06);
    }
}
