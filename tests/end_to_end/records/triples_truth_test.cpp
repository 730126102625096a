// The triples of a run against the truth of the simulator, which knows the decay of each photon.
#include "tests/end_to_end/lifetime/simulated.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using namespace petacq::test;
using nlohmann::json;

namespace {

Outcome compared(const Site& site, const std::string& run) {
    return run_program(PETSIM_PROGRAM, {"compare", "--truth", (site.directory() / "truth.bin").string(),
                                        "--run", run, "--json"});
}

/// Records 20 ms of a strong source of Sc-44.
std::string recorded(const Site& site) {
    const json source = {{"type", "cylinder"}, {"centre_mm", {0, 0, 0}}, {"radius_mm", 5},
                         {"length_mm", 10},    {"activity_MBq", 20},     {"nuclide", "Sc-44"}};
    return record(site, source, 0.02, "depth", {"--truth", (site.directory() / "truth.bin").string()});
}

}  // namespace

TEST_CASE("the triples of a run are those of the truth", "[e2e][triples]") {
    const std::string policy = GENERATE("all", "only_one", "nearest");
    INFO(policy);
    const Site site = site_with_triples(small_scanner, 1157, policy);
    const std::string run = recorded(site);
    const Outcome outcome = compared(site, run);
    INFO(outcome.out << outcome.err);
    REQUIRE(outcome.status == 0);
    const json found = json::parse(outcome.out);
    const json& triples = found["triples"];
    CHECK(found["agrees"] == true);
    CHECK(triples["list_mode"] == "complete");
    CHECK(triples["missing"] == 0);
    CHECK(triples["foreign"] == 0);
    CHECK(triples["triples"] == site.run_json("a")["ledger"]["triples"]["written"]);
    CHECK(triples["expected"] == triples["triples"]);
    CHECK(triples["trues"] > 100);
    CHECK(triples["randoms"] > 0);
    CHECK(triples["delayeds"] > 0);

    // Another run has other triples; without the file nothing can be said of them.
    const std::filesystem::path file = std::filesystem::path(run) / "triples.plm";
    if (policy == "nearest") {
        const Site other = site_with_triples(small_scanner, 1157, "all");
        std::filesystem::copy_file(std::filesystem::path(recorded(other)) / "triples.plm", file,
                                   std::filesystem::copy_options::overwrite_existing);
        const Outcome differs = compared(site, run);
        CHECK(differs.status == 1);
        CHECK(json::parse(differs.out)["triples"]["foreign"] > 0);
        CHECK(json::parse(differs.out)["triples"]["missing"] == 0);
    }
    std::filesystem::remove(file);
    const Outcome lacks = compared(site, run);
    CHECK(lacks.status != 0);
    CHECK(contains(lacks.err, "triples.plm"));
}
