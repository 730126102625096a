#include "tools/petlm/reconstruction/tracers/run_separation.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace petacq::tracers {
namespace {

using gpu::Kind;

/// The pairs of the tracer with gammas, before its images know the unit.
double pairs_with_gamma(const TracerImages& alone, const image::MadeImage& coincident) {
    double pairs = 0;
    for (std::size_t i = 0; i < alone.without_gamma.size(); ++i) {
        pairs -= static_cast<double>(alone.without_gamma[i]) / coincident.scale *
                 static_cast<double>(coincident.look.sensitivity[i]);
    }
    return std::max(0.0, pairs);
}

}  // namespace

RunSeparation::RunSeparation(TracerRun& run, image::Setup& of_triples, const config::Nuclide& nuclide,
                             double efficiency)
    : run_(run), of_triples_(of_triples) {
    const TripleCounts& counts = run.counts();
    triples_ = make_triples(counts.coincident, counts.delayed);
    const gammas::GammaModel model = run.gamma_model(nuclide);
    const double true_triples = static_cast<double>(counts.thirds.pairs(Kind::prompt)) *
                                std::max(0.0, counts.thirds.true_share(Kind::prompt));
    chance_ = std::make_unique<const gammas::GammaChance>(model, run.found_decays(triples_.coincident),
                                                          efficiency, true_triples, run.setup().pool);
    const std::vector<float> none(run.setup().how.grid.voxels());
    const auto spurious =
        run.spurious(model, separated(none, triples_).with_gamma, efficiency, run.prompts());
    main_ = make_main(counts.pairs, triples_, *spurious);
}

RunSeparation::Triples RunSeparation::make_triples(const image::ImageCounts& coincident,
                                                   const image::ImageCounts& delayed) const {
    return {run_.image(of_triples_, coincident, "image of triples"),
            run_.image(of_triples_, delayed, "image of triples by chance")};
}

TracerImages RunSeparation::separated(const std::vector<float>& all, const Triples& triples) const {
    return separate(run_.setup().how.grid,
                    {all, triples.coincident.look.em.image, triples.delayed.look.em.image,
                     run_.counts().thirds.hidden_factor()},
                    *chance_);
}

RunSeparation::Main RunSeparation::make_main(image::ImageCounts pairs, const Triples& triples,
                                             const gammas::SpuriousPairs& spurious) const {
    const std::vector<float> none(run_.setup().how.grid.voxels());
    const auto scaled = std::make_shared<gammas::SpuriousPairs>(spurious);
    scaled->scale_to(pairs_with_gamma(separated(none, triples), triples.coincident));
    pairs.spurious = scaled;
    Main out{run_.image(run_.setup(), pairs, "image of all pairs"), scaled, {}};
    // All pairs in the unit of the triples, and back.
    const double unit = triples.coincident.scale / out.all.scale;
    std::vector<float> in_unit = out.all.look.em.image;
    for (float& value : in_unit)
        value *= static_cast<float>(unit);
    out.tracers = separated(in_unit, triples);
    for (float& value : out.tracers.without_gamma)
        value /= static_cast<float>(unit);
    return out;
}

TracerImages RunSeparation::replicate(std::uint64_t seed) const {
    const TripleCounts& counts = run_.counts();
    // With the same seed, the pair of a triple counts as often among all pairs.
    const Triples triples = make_triples(counts.coincident.resampled(seed), counts.delayed.resampled(seed));
    return make_main(counts.pairs.resampled(seed), triples, *main_.spurious).tracers;
}

}  // namespace petacq::tracers
