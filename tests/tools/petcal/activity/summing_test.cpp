// What photons that meet in a detector unit change.
#include "tools/petcal/activity/summing.hpp"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "config/configuration.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace petacq;
using nlohmann::json;

namespace {

petcal::Summing summing_of(const config::Scanner& scanner, std::uint32_t threads) {
    const petcal::SourceLines source(scanner, {3, 2, 1}, {});
    const gpu::CoincidenceRules rules;
    const auto rule = gpu::PairRule::of(scanner.geometry, rules);
    std::vector<std::uint32_t> ends;
    for (std::uint32_t crystal = 0; crystal < scanner.geometry.crystal_count(); crystal += 7)
        ends.push_back(crystal);
    const petcal::LineWeights weights(source, rule, ends);
    const config::Nuclide& sodium = *config::find_nuclide("Na-22");
    net::WorkerPool pool(threads);
    return petcal::simulate_summing(
        {scanner, source, weights, sodium, sodium.gammas.front(), {400, 650}, {1100, 1470}}, pool);
}

}  // namespace

TEST_CASE("photons that meet in a unit take pairs and gammas away, twice as many in units twice as large",
          "[activity]") {
    const auto file = std::filesystem::path(PETACQ_SOURCE_DIR) / "config/examples/scanners/box.scanner.json";
    const petcal::Summing halves = summing_of(config::load_scanner(file), 1);
    CHECK(halves.pairs < 1);
    CHECK(halves.gammas < 1);
    CHECK(halves.triples < 1);
    CHECK(halves.factor > 0.97);
    CHECK(halves.factor < 0.995);
    CHECK(halves.error < 0.004);

    const test::TemporaryDirectory directory;
    json description = json::parse(test::read_file(file));
    description["module_types"][0].erase("units");
    test::write_file(directory / "panels.json", description.dump());
    const petcal::Summing panels = summing_of(config::load_scanner(directory / "panels.json"), 2);
    INFO(halves.factor << " and " << panels.factor);
    CHECK((1 - panels.factor) / (1 - halves.factor) == Approx(2).margin(0.6));
}
