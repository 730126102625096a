// Coincidences of a point source in the first ring of a scanner, made without the code under test.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "config/scanner.hpp"
#include "gpu/base/records.hpp"
#include "gpu/rules/pair_rule.hpp"

namespace petacq::test {

inline config::Scanner small_scanner() {
    return config::load_scanner(PETACQ_SOURCE_DIR "/config/examples/small.scanner.json");
}

inline config::Scanner example_scanner(const std::string& name) {
    return config::load_scanner(PETACQ_SOURCE_DIR "/config/examples/scanners/" + name + ".scanner.json");
}

inline gpu::PairRule opposite_modules(const config::Scanner& scanner) {
    gpu::CoincidenceRules rules;
    rules.min_module_difference = 2;
    return gpu::PairRule::of(scanner.geometry, rules);
}

/// `each` records for every pair of crystals whose line passes the point at less than half a crystal.
inline std::vector<gpu::Coincidence> pairs_of_point(const config::Scanner& scanner, double x, double y,
                                                    unsigned each = 10, gpu::Kind kind = gpu::Kind::prompt) {
    const gpu::PairRule rule = opposite_modules(scanner);
    const config::DepthOfInteraction depth(scanner.dimensions);
    std::vector<gpu::Coincidence> pairs;
    const std::uint32_t n = scanner.geometry.crystals_in_ring();
    for (std::uint32_t a = 0; a < n; ++a) {
        for (std::uint32_t b = a + 1; b < n; ++b) {
            if (!rule.geometry_good(a, b)) continue;
            const auto [p, q] = config::line_ends(config::crystal_place(scanner, a),
                                                  config::crystal_place(scanner, b), depth);
            const double dx = q[0] - p[0];
            const double dy = q[1] - p[1];
            const double away = std::abs(dx * (y - p[1]) - dy * (x - p[0])) / std::hypot(dx, dy);
            if (away > scanner.dimensions.crystal_pitch_y_mm / 2) continue;
            for (unsigned i = 0; i < each; ++i)
                pairs.push_back({1000, 1, a, b, 511, 511, kind});
        }
    }
    return pairs;
}

}  // namespace petacq::test
