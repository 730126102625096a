#include "tools/petlm/reconstruction/image/quick_look.hpp"

#include <chrono>
#include <stdexcept>
#include <utility>

#include "config/base/seconds_since.hpp"
#include "tools/petlm/reconstruction/em/line_sums.hpp"
#include "tools/petlm/reconstruction/image/smooth.hpp"
#include "tools/petlm/reconstruction/projector/backend.hpp"

namespace petacq::image {
namespace {

using Clock = std::chrono::steady_clock;

using config::seconds_since;

/// Memory that is left for the system matrix.
std::uint64_t matrix_budget(const QuickLookOptions& options, std::uint64_t lines) {
    constexpr std::uint64_t images = 5;  // besides that of the projector
    const std::uint64_t volumes =
        images * options.grid.voxels() * sizeof(float) + host_projector_bytes(options.grid);
    // The pairs and counts that were read are kept until the end; each line also has its number of voxels.
    const std::uint64_t of_lines =
        lines * (Lines::bytes_per_line + sizeof(Pair) + sizeof(std::uint32_t) + sizeof(std::uint16_t));
    if (volumes + of_lines >= options.max_memory) {
        throw std::invalid_argument(std::to_string(volumes / 1'000'000) + " MB for images and " +
                                    std::to_string(of_lines / 1'000'000) +
                                    " MB for lines do not fit into the " +
                                    std::to_string(options.max_memory / 1'000'000) +
                                    " MB that are allowed: allow more memory, or choose larger voxels");
    }
    return options.max_memory - volumes - of_lines;
}

}  // namespace

std::size_t pair_capacity(std::uint64_t max_memory) {
    return static_cast<std::size_t>(max_memory / 2 / PairCounts::bytes_per_pair);
}

void check_before_reading(const QuickLookOptions& options) {
    check_backend(options.backend, cuda_projectors().unusable);
    matrix_budget(options, 0);
}

QuickLook make_quick_look(const config::Scanner& scanner, const gpu::PairRule& rule, const PairCounts& counts,
                          const corrections::LineFactors& factors, const QuickLookModel& model,
                          net::WorkerPool& pool, const QuickLookOptions& options, std::vector<float> known) {
    QuickLook look;
    const std::uint64_t budget = matrix_budget(options, counts.pairs().size());
    const config::LineGeometry& geometry = factors.geometry();
    auto start = Clock::now();
    if (!known.empty()) {
        look.sensitivity = std::move(known);
    } else if (few_lines(scanner.geometry, options.grid)) {
        look.sensitivity = sum_of_lines(factors, scanner, options.grid, rule, model.line.factor, pool);
    } else {
        look.sensitivity = sensitivity(factors, scanner, rule, options.grid, pool, model.ray);
    }
    look.sensitivity_s = seconds_since(start);

    start = Clock::now();
    const Lines lines = make_lines(factors, scanner.dimensions, options.grid, counts.pairs(), counts.counts(),
                                   model.line, options.subsets);
    EmOptions em;
    em.iterations = options.iterations;
    em.share = counts.share();
    em.progress = options.progress;
    const Computed computed = compute_on(
        options.backend, cuda_projectors(), options.grid, geometry,
        [&] { return make_host_projector(options.grid, geometry, pool, budget); },
        [&](Projector& projector) {
            look.em = reconstruct(projector, options.grid, geometry, lines, look.sensitivity, pool, em);
        });
    look.backend = (computed.cuda ? "CUDA" : std::to_string(pool.size()) + " threads of the CPU") + " (" +
                   computed.why + ")";
    for (float& value : look.em.image)
        value *= static_cast<float>(options.scale);
    smooth(look.em.image, options.grid, options.smooth_mm, pool);
    look.em_s = seconds_since(start);
    return look;
}

}  // namespace petacq::image
