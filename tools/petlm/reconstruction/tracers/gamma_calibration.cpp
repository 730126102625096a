#include "tools/petlm/reconstruction/tracers/gamma_calibration.hpp"

#include "tools/petlm/base/status.hpp"
#include "tools/petlm/reconstruction/gammas/efficiency.hpp"
#include "tools/petlm/reconstruction/tracers/tracer_run.hpp"

namespace petacq::tracers {
namespace {

using gpu::Kind;

constexpr double first_guess = 0.7;  // of the efficiency

}  // namespace

GammaCalibration calibrate_gammas(const petlm::ImageOptions& options, const config::Nuclide& nuclide) {
    TracerRun run(options);
    const TripleCounts& counts = run.counts();
    const image::MadeImage first =
        run.image(run.setup(), counts.pairs, "pairs of " + options.target.filename().string());
    const petlm::ThirdPhotons& thirds = counts.thirds;
    const auto prompts = static_cast<double>(thirds.pairs(Kind::prompt));
    const double pairs = prompts - first.report.errors.randoms;  // spurious ones included
    const double share = thirds.true_share(Kind::prompt);
    if (!(pairs > 0) || !(share > 0)) {
        throw petlm::BadInput(options.target.string() + ": expected triples of " + nuclide.name +
                              ", found none");
    }
    const double own_of_randoms = counts.coincident.share_of_randoms - counts.delayed.share_of_randoms;
    const double triples =
        prompts * share - thirds.hidden_factor() * first.report.errors.randoms * own_of_randoms;
    const gammas::GammaModel model = run.gamma_model(nuclide);
    const auto improved = [&](double guess, const image::MadeImage& image,
                              const gammas::SpuriousPairs& spurious, double count) {
        return gammas::improved_efficiency(guess, model, run.found_decays(image),
                                           {count, triples / pairs * (1 + spurious.per_pair())},
                                           run.setup().pool);
    };
    GammaCalibration out;
    out.error = thirds.error_of_true_share(Kind::prompt) / share;
    out.efficiency =
        improved(first_guess, first, *run.spurious(model, first.look.em.image, first_guess, 0), 0);
    // Spurious pairs look like decays near the crystals, where more gammas are seen.
    const auto spurious = run.spurious(model, first.look.em.image, out.efficiency, prompts);
    spurious->scale_to(pairs / (1 + spurious->per_pair()));
    run.expect(spurious);
    const image::MadeImage again = run.image(run.setup(), counts.pairs, "pairs again");
    out.efficiency = improved(out.efficiency, again, *spurious, 0);
    out.efficiency = improved(out.efficiency, again, *spurious, triples);
    return out;
}

}  // namespace petacq::tracers
