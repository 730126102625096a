// Pairs with prompt gammas in the tests of NEMA, against the truth of the simulator.
#include <fmt/format.h>

#include "tests/end_to_end/nema/simulated.hpp"

using namespace petacq;
using namespace petacq::test;
using nlohmann::json;

namespace {

constexpr double branching = 0.227;  // of I-124

/// `source`: a source of petsim of 1 MBq, without its nuclide.
std::vector<Labelled> run_of_iodine(Simulated& simulated, const std::string& source,
                                    const std::string& seconds, std::vector<std::string> options) {
    const TemporaryDirectory directory;
    const auto file = directory / "source.json";
    write_file(file, R"({"sources": [{)" + source + R"(, "activity_MBq": 1, "nuclide": "I-124"}]})");
    for (const std::string& more :
         {std::string("--source"), file.string(), std::string("--scatter"), std::string("0"),
          std::string("--duration-s"), seconds, std::string("--seed"), std::string("5")})
        options.push_back(more);
    return simulated.run("iodine", options);
}

double count(const std::vector<Labelled>& pairs, Origin origin) {
    double sum = 0;
    for (const Labelled& one : pairs)
        sum += one.origin == origin ? 1 : 0;
    return sum;
}

const std::vector<std::string> said = {"--activity-mbq", "1", "--nuclide", "I-124"};

}  // namespace

TEST_CASE("petlm nema sensitivity: pairs with prompt gammas are none of the trues", "[e2e][nema][gammas]") {
    Simulated simulated;
    const auto pairs = run_of_iodine(simulated, R"("type": "point", "position_mm": [0, 0, 4])", "0.5",
                                     {"--efficiency", "0.6"});
    const double trues = count(pairs, Origin::genuine);
    const double spurious = count(pairs, Origin::spurious);
    REQUIRE(spurious > 1000);
    auto row = row_of(simulated.nema("sensitivity", {"iodine"}, said), "positions", 0);
    const double found = row["trues_percent"] / 100 * 1e6 * branching * row["duration_s"];
    CAPTURE(trues, spurious, found, row["spurious"]);
    CHECK(std::abs(found - trues) < 0.02 * spurious + 3 * std::sqrt(spurious));
    // Within 1 cm of the source lies a small part of them.
    CHECK(row["spurious"] > 0.02 * spurious);
    CHECK(row["spurious"] < 0.5 * spurious);
}

TEST_CASE("petlm nema scatter: pairs with prompt gammas are no scatter", "[e2e][nema][gammas]") {
    Simulated simulated;
    const auto pairs =
        run_of_iodine(simulated, R"("type": "line", "from_mm": [10, 0, -30], "to_mm": [10, 0, 30])", "0.6",
                      {"--object", "0,0,0,12.5,70,0.0945"});
    const InPhantom truth = in_phantom(simulated.scanner(), pairs);
    const double spurious = truth.counts.at(Origin::spurious);
    REQUIRE(spurious > 1000);
    auto row = row_of(simulated.nema("scatter", {"iodine"}, said), "acquisitions", 0);
    CAPTURE(spurious, row["spurious"]);
    CHECK(std::abs(row["spurious"] - spurious) < 0.02 * spurious + 3 * std::sqrt(spurious));
    const double background = row["scatter_and_randoms"] - row["randoms_expected"] - row["spurious"];
    CHECK(row["scatter_fraction"] == Approx(background / (background + row["trues"])).epsilon(1e-6));
}
