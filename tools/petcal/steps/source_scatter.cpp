#include "tools/petcal/steps/source_scatter.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "gpu/rules/pair_rule.hpp"
#include "tools/geometry/bore.hpp"
#include "tools/petlm/reconstruction/corrections/scatter_simulation.hpp"

namespace petacq::petcal {

namespace {

constexpr std::size_t annihilations_to_choose = 400'000;  // between the models of the crystals
// So many for each count that the simulation adds little to their noise, but no more than take a minute.
constexpr double annihilations_per_count = 12;
constexpr double most_annihilations = 12'800'000;
constexpr double least_annihilations = 1'000'000;
constexpr double max_pairs = 2e7;  // the share of scattered pairs varies slowly from pair to pair

corrections::AttenuatingCylinder attenuating(const estimate::CylinderScan& scan) {
    config::Vector3 from = scan.centre_mm;
    config::Vector3 to = scan.centre_mm;
    from[2] -= scan.length_mm / 2;
    to[2] += scan.length_mm / 2;
    return {{from, to, scan.radius_mm}, 10 * scan.attenuation_per_mm};
}

/// As much in each voxel as of the cylinder is in it.
corrections::Activity even_activity(const config::Scanner& scanner, const estimate::CylinderScan& scan,
                                    const corrections::AttenuatingObject& object) {
    constexpr int parts = 4;  // of a voxel along each axis
    const geometry::Bore bore = geometry::bore_of(scanner);
    corrections::Activity out;
    out.grid.voxel_mm = std::max(2.5, scan.radius_mm / 12);
    const auto voxels = [&](double half_mm) {
        return 2 * static_cast<std::uint32_t>(std::ceil(half_mm / out.grid.voxel_mm));
    };
    // Photons from further beyond the ends hardly ever make a pair.
    const double seen_mm = bore.half_length_mm + bore.furthest_mm;
    out.grid.n = {voxels(std::abs(scan.centre_mm[0]) + scan.radius_mm),
                  voxels(std::abs(scan.centre_mm[1]) + scan.radius_mm),
                  voxels(std::min(std::abs(scan.centre_mm[2]) + scan.length_mm / 2, seen_mm))};
    out.of_voxel.reserve(out.grid.voxels());
    for (std::uint32_t z = 0; z < out.grid.n[2]; ++z) {
        for (std::uint32_t y = 0; y < out.grid.n[1]; ++y) {
            for (std::uint32_t x = 0; x < out.grid.n[0]; ++x) {
                const std::array<std::uint32_t, 3> cell = {x, y, z};
                int inside = 0;
                for (int part = 0; part < parts * parts * parts; ++part) {
                    const std::array<int, 3> in = {part % parts, part / parts % parts, part / parts / parts};
                    config::Vector3 at{};
                    for (std::size_t axis = 0; axis < 3; ++axis)
                        at[axis] = out.grid.centre(axis, cell[axis]) +
                                   out.grid.voxel_mm * ((in[axis] + 0.5) / parts - 0.5);
                    inside += object.per_cm(at) > 0 ? 1 : 0;
                }
                out.of_voxel.push_back(static_cast<float>(inside));
            }
        }
    }
    return out;
}

}  // namespace

double subtract_scatter(const config::Scanner& scanner, const estimate::ScanModel& model,
                        const ScatterInSource& how, estimate::LineCounts& counts, net::WorkerPool& pool) {
    corrections::AttenuatingObject object;
    object.add(attenuating(model.scan()));
    const corrections::Activity activity = even_activity(scanner, model.scan(), object);
    const auto rule = gpu::PairRule::of(scanner.geometry, how.rules);
    corrections::Detection detection;
    detection.window = how.window;
    detection.found = [&](std::uint32_t a, std::uint32_t b) {
        return rule.good(a, b) ? how.efficiency[a] * how.efficiency[b] : 0;
    };
    detection.multiples = how.rules.policy;
    detection.bins = 2;  // on lines that count, and on others
    detection.bin_of = [&](std::uint32_t a, std::uint32_t b) -> std::size_t {
        return model.counts(a, b) ? 0 : 1;
    };
    detection.crystals.deep = model.scan().depth.typical_mm() > 0;
    detection.crystals.scatters = corrections::scatters_in_crystals(scanner, object, activity, detection,
                                                                    annihilations_to_choose, pool);
    const auto annihilations = static_cast<std::size_t>(
        std::clamp(annihilations_per_count * counts.total, least_annihilations, most_annihilations));
    const corrections::ScatterSimulation simulation(scanner, object, activity, detection, annihilations,
                                                    pool);

    const auto one_in = static_cast<std::uint32_t>(std::ceil(model.max_pairs() / max_pairs));
    const auto each = [&](const auto& use) {
        model.for_each_pair(one_in, [&](std::uint32_t a, std::uint32_t b) {
            use(a, b, one_in * how.efficiency[a] * how.efficiency[b] * simulation.counts(a, b));
        });
    };
    double scattered = 0;
    each([&](std::uint32_t, std::uint32_t, double simulated) { scattered += simulated; });
    const double all = simulation.unscattered()[0] + scattered;
    if (!(all > 0)) return 0;
    const double per_simulated = counts.total / all;
    each([&](std::uint32_t a, std::uint32_t b, double simulated) {
        counts.add(a, b, -per_simulated * simulated, 0);
    });
    return per_simulated * scattered;
}

}  // namespace petacq::petcal
