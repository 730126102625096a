#include "tools/petlm/reconstruction/tracers/gamma_calibration.hpp"

#include "tools/petlm/base/status.hpp"
#include "tools/petlm/reconstruction/gammas/efficiency.hpp"
#include "tools/petlm/reconstruction/tracers/tracer_run.hpp"

namespace petacq::tracers {
namespace {

using gpu::Kind;

constexpr double first_guess = 0.7;  // of the efficiency

/// The pairs that an image stands for, where there are decays. Counts of noise and of spurious pairs that are
/// not expected are mostly elsewhere. The separation of two tracers takes the same from the same images.
double pairs_where(const corrections::Activity& decays, const image::MadeImage& image) {
    double sum = 0;
    for (std::size_t i = 0; i < decays.of_voxel.size(); ++i) {
        if (decays.of_voxel[i] > 0) {
            sum += static_cast<double>(image.look.em.image[i]) / image.scale *
                   static_cast<double>(image.look.sensitivity[i]);
        }
    }
    return sum;
}

}  // namespace

GammaCalibration calibrate_gammas(const petlm::ImageOptions& options, const config::Nuclide& nuclide) {
    TracerRun run(options);
    const TripleCounts& counts = run.counts();
    const image::MadeImage first =
        run.image(run.setup(), counts.pairs, "pairs of " + options.target.filename().string());
    const petlm::ThirdPhotons& thirds = counts.thirds;
    const double net = run.prompts() - first.report.errors.randoms;  // spurious ones included
    const double share = thirds.true_share(Kind::prompt);
    const auto expect_triples = [&](bool found) {
        if (found) return;
        throw petlm::BadInput(options.target.string() + ": expected triples of " + nuclide.name +
                              ", found none");
    };
    expect_triples(net > 0 && share > 0);
    const image::MadeImage coincident = run.image(run.setup(), counts.coincident, "its triples");
    const image::MadeImage delayed = run.image(run.setup(), counts.delayed, "its triples by chance");
    const gammas::GammaModel model = run.gamma_model(nuclide);
    const auto improved = [&](double guess, const image::MadeImage& all, bool last) {
        const corrections::Activity decays = run.decays(all.look.em.image);
        const double pairs = pairs_where(decays, all);
        const double triples =
            thirds.hidden_factor() * (pairs_where(decays, coincident) - pairs_where(decays, delayed));
        expect_triples(pairs > 0 && triples > 0);
        return gammas::improved_efficiency(guess, model, run.found_decays(all),
                                           {last ? triples : 0, triples / pairs}, run.setup().pool);
    };
    GammaCalibration out;
    out.error = thirds.error_of_true_share(Kind::prompt) / share;
    out.efficiency = improved(first_guess, first, false);
    // Spurious pairs look like decays near the crystals, where more gammas are seen.
    const auto spurious = run.spurious(model, first.look.em.image, out.efficiency, run.prompts());
    spurious->scale_to(net / (1 + spurious->per_pair()));
    run.expect(spurious);
    const image::MadeImage all = run.image(run.setup(), counts.pairs, "pairs again");
    for (const bool last : {false, true})
        out.efficiency = improved(out.efficiency, all, last);
    return out;
}

}  // namespace petacq::tracers
