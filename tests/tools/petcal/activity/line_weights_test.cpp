// Lines of independent ends add up to nothing, and those of a source to all of them.
#include "tools/petcal/activity/line_weights.hpp"

#include <cmath>
#include <vector>

#include "config/configuration.hpp"
#include "tests/support/catch.hpp"
#include "tools/geometry/hit_finder.hpp"
#include "tools/petsim/physics/ray.hpp"

using namespace petacq;
using petcal::SourceLines;

TEST_CASE("lines of photons that have nothing to do with each other add up to 0", "[activity]") {
    const std::filesystem::path examples = std::filesystem::path(PETACQ_SOURCE_DIR) / "config" / "examples";
    const auto* const file = GENERATE("small.scanner.json", "scanners/box.scanner.json");
    const bool is_point = GENERATE(true, false);
    CAPTURE(file, is_point);
    const config::Scanner scanner = config::load_scanner(examples / file);
    const SourceLines source(scanner, is_point ? std::vector<double>{4, -3, 2} : std::vector<double>{},
                             is_point ? std::vector<double>{} : std::vector<double>{2, 1, 0, 3, 20});
    const gpu::CoincidenceRules rules;
    const auto rule = gpu::PairRule::of(scanner.geometry, rules);
    const geometry::HitFinder finder(scanner);
    sim::Random random(5, sim::Purpose::events, 0);
    std::vector<std::uint32_t> gammas;
    while (gammas.size() < 3000)
        if (const auto entry = finder.find(source.draw(random), sim::isotropic(random)))
            gammas.push_back(entry->crystal);
    const petcal::LineWeights weights(source, rule, gammas);

    double independent = 0;
    double near = 0;
    double from_source = 0;
    double lines = 0;
    for (int i = 0; i < 150'000; ++i) {
        const config::Vector3 at = source.draw(random);
        const config::Vector3 direction = sim::isotropic(random);
        const auto first = finder.find(at, direction);
        if (!first) continue;
        if (const auto other = finder.find(at, sim::isotropic(random))) {
            const double weight = weights.of_any(first->crystal, other->crystal);
            independent += weight;
            near += weight > 0 ? 1 : 0;
        }
        if (const auto second = finder.find(at, {-direction[0], -direction[1], -direction[2]})) {
            from_source += weights.of_any(first->crystal, second->crystal);
            ++lines;
        }
    }
    INFO(near << " near of independent ends, " << independent << " left; " << from_source / lines);
    CHECK(near > 500);
    CHECK(std::abs(independent) < 0.1 * near);
    CHECK(from_source > (is_point ? 0.99 : 0.9) * lines);  // some pass beyond the ends of a cylinder
}
