#include "tools/petlm/reconstruction/image/spurious.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tools/petlm/reconstruction/corrections/nuclide.hpp"
#include "tools/petlm/reconstruction/gammas/crystal_resolution.hpp"
#include "tools/petlm/reconstruction/gammas/efficiency.hpp"
#include "tools/petlm/reconstruction/projector/gaussian.hpp"
#include "tools/petlm/records/covered_seconds.hpp"

namespace petacq::image {
namespace {

// In the image without them, spurious pairs look like decays near the crystals.
constexpr int rounds = 2;
constexpr double smooth_mm = 5;      // FWHM, where decays are looked for
constexpr float least_share = 0.2F;  // of the largest value, where there are some

}  // namespace

corrections::Activity decays_of(const Grid& grid, std::vector<float> image, net::WorkerPool& pool) {
    std::vector<float> smoothed = image;
    smooth(smoothed, grid, smooth_mm, pool);
    const float least = least_share * *std::max_element(smoothed.begin(), smoothed.end());
    for (std::size_t i = 0; i < image.size(); ++i)
        image[i] = smoothed[i] > least ? std::max(image[i], 0.0F) : 0.0F;
    return {grid, std::move(image)};
}

gammas::GammaModel gamma_model_of(const Setup& setup, const Part& part, const PartLines& lines,
                                  const ImageCounts& counts, const config::Nuclide& nuclide) {
    const auto& rules = part.coverage.rules;
    const corrections::LineFactors& factors = lines.factors();
    gammas::GammaModel model{setup.scanner, factors.object(), nuclide, {}, {}, {}, {}, {}, {}};
    model.crystals = corrections::crystal_model(setup.source.run(), factors.depth());
    model.pairs = counts.photopeak.window(rules.energy);
    model.pairs.resolution = gammas::resolution_of_one_crystal(setup.scanner, model.crystals, model.pairs);
    model.gammas = model.pairs;
    model.multiples = rules.coincidence.value_or(config::Coincidence{}).multiples_policy;
    if (factors.normalised()) model.relative = factors.file().efficiency;
    // Which losses there were at which angle matters little for where photons fly.
    model.angles = {setup.angles.radians(), setup.angles.shares(part.coverage, nuclide.half_life_s, {})};
    return model;
}

corrections::OfPair found_pairs(const Setup& setup, const PartLines& lines) {
    return [&setup, &lines](std::uint32_t a, std::uint32_t b) {
        return setup.rule.good(a, b) ? lines.factors().efficiencies(a, b) : 0;
    };
}

SpuriousOfRun spurious_of(Setup& setup, const Part& part, const PartLines& lines, const ImageCounts& counts,
                          const std::string& what, std::uint64_t max_memory) {
    const auto stated = corrections::nuclide_of(part.coverage, setup.options);
    if (!stated || config::prompt_gamma_note(stated->nuclide).empty() || counts.prompts == 0) return {};
    const gammas::GammaModel model =
        gamma_model_of(setup, part, lines, counts, *config::find_nuclide(stated->nuclide));
    const corrections::OfPair found = found_pairs(setup, lines);
    const auto singles = petlm::singles_in(setup.source.target(), part.coverage);
    SpuriousOfRun out;
    ImageCounts expected = counts;
    for (int round = 1; round <= rounds; ++round) {
        MadeImage made = make_image(setup, part, lines, expected,
                                    fmt::format("{}, spurious pairs, {} of {}", what, round, rounds),
                                    max_memory, {}, std::move(out.sensitivity));
        const corrections::Activity decays =
            decays_of(setup.how.grid, std::move(made.look.em.image), setup.pool);
        const double net = std::max(0.0, static_cast<double>(counts.prompts) - made.report.errors.randoms);
        const double efficiency =
            singles && *singles > 0
                ? gammas::efficiency_by_singles(model, decays, net / *singles, found, setup.pool)
                : 1;
        const auto pairs = std::make_shared<gammas::SpuriousPairs>(
            model, decays, efficiency, found, static_cast<double>(counts.prompts), setup.pool);
        pairs->scale_to(net / (1 + pairs->per_pair()));
        expected.spurious = out.pairs = pairs;
        out.sensitivity = std::move(made.look.sensitivity);
    }
    return out;
}

}  // namespace petacq::image
