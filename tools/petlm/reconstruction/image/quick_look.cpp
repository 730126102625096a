#include "tools/petlm/reconstruction/image/quick_look.hpp"

#include <chrono>
#include <stdexcept>
#include <utility>

#include "config/base/seconds_since.hpp"
#include "tools/petlm/reconstruction/image/sensitivity_cache.hpp"
#include "tools/petlm/reconstruction/projector/backend.hpp"
#include "tools/petlm/reconstruction/projector/gaussian.hpp"

namespace petacq::image {
namespace {

using Clock = std::chrono::steady_clock;

using config::seconds_since;

void check_memory(const QuickLookOptions& options, std::uint64_t lines) {
    constexpr std::uint64_t images = 7;  // besides those of the projector
    const std::uint64_t volumes =
        images * options.grid.voxels() * sizeof(float) + host_projector_bytes(options.grid);
    // The pairs and counts that were read are kept until the end. Lines are put in order by their numbers.
    const std::uint64_t of_lines =
        lines * (2 * Lines::bytes_per_line + 2 * sizeof(std::uint32_t) - 2 * sizeof(float));
    if (volumes + of_lines >= options.max_memory) {
        throw std::invalid_argument(std::to_string(volumes / 1'000'000) + " MB for images and " +
                                    std::to_string(of_lines / 1'000'000) +
                                    " MB for lines do not fit into the " +
                                    std::to_string(options.max_memory / 1'000'000) +
                                    " MB that are allowed: allow more memory, or choose larger voxels");
    }
}

}  // namespace

std::size_t pair_capacity(std::uint64_t max_memory) {
    return static_cast<std::size_t>(max_memory / 2 / PairCounts::bytes_per_pair);
}

void check_before_reading(const QuickLookOptions& options) {
    check_backend(options.backend, cuda_projectors().unusable);
    check_memory(options, 0);
}

QuickLook make_quick_look(const config::Scanner& scanner, const gpu::PairRule& rule, const PairCounts& counts,
                          const corrections::LineFactors& factors, const QuickLookModel& model,
                          net::WorkerPool& pool, const QuickLookOptions& options, std::vector<float> known) {
    QuickLook look;
    check_memory(options, counts.pairs().size());
    auto start = Clock::now();
    const auto compute = [&] {
        return sensitivity_of(factors, scanner, rule, options.grid, model.line.factor, model.ray, pool);
    };
    if (!known.empty()) {
        look.sensitivity = std::move(known);
        look.sensitivity_from = "known";
    } else if (options.cache.empty() || model.digest.empty()) {
        look.sensitivity = compute();
        look.sensitivity_from = "computed";
    } else {
        const std::string key = sensitivity_key(scanner, rule, factors, options.grid, model.digest);
        look.sensitivity =
            cached_sensitivity(options.cache, key, options.grid.voxels(), compute, look.sensitivity_from);
    }
    look.sensitivity_s = seconds_since(start);

    start = Clock::now();
    const Lines lines = make_lines(factors, options.grid, counts.measured(), model.line, options.subsets);
    EmOptions em;
    em.iterations = options.iterations;
    em.end_with_all_lines = options.end_with_all_lines;
    em.share = counts.share();
    em.psf_mm = options.psf_mm;
    em.progress = options.progress;
    const Computed computed = compute_on(
        options.backend, cuda_projectors(), options.grid, factors.geometry(),
        [&] { return make_host_projector(options.grid, factors.geometry(), pool); },
        [&](Projector& projector) {
            look.em = reconstruct(projector, options.grid, lines, look.sensitivity, pool, em);
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
