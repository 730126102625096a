#include "tools/petlm/export/stir_lines.hpp"

#include <fmt/format.h>

namespace petacq::petlm {
namespace {

/// STIR divides by the factor, so a line that finds nothing has a large one. No line of a scanner comes near.
constexpr double nothing_found = 1e20;

constexpr const char* one_factor =
    "  Bin Normalisation type := From ProjData\n"
    "  Bin Normalisation From ProjData :=\n"
    "    normalisation projdata filename := normalisation.hs\n"
    "  End Bin Normalisation From ProjData :=\n";
constexpr const char* two_factors =
    "  Bin Normalisation type := Chained\n"
    "  Chained Bin Normalisation Parameters :=\n"
    "    Bin Normalisation to apply first := From ProjData\n"
    "    Bin Normalisation From ProjData :=\n"
    "      normalisation projdata filename := normalisation.hs\n"
    "    End Bin Normalisation From ProjData :=\n"
    "    Bin Normalisation to apply second := From ProjData\n"
    "    Bin Normalisation From ProjData :=\n"
    "      normalisation projdata filename := attenuation.hs\n"
    "    End Bin Normalisation From ProjData :=\n"
    "  End Chained Bin Normalisation Parameters :=\n";

/// The width of the voxels of osem.par: a crystal's. Lines from crystal to crystal do not fill smaller ones
/// evenly.
double stir_voxel_mm(const config::Scanner& scanner) {
    return 2 * stir_bin_mm(scanner);
}

std::string comments(const LineModel& model) {
    std::string text;
    for (const auto& sentence : model.sentences())
        text += "; " + sentence + '\n';
    return text;
}

/// The symmetries are off because a ring of modules has none that STIR could use.
std::string osem_parameters(const LineModel& model, bool background, std::int64_t segments) {
    return "OSMAPOSLParameters :=\n" + comments(model) +
           "; for the prompts of lm_to_projdata lm_to_projdata.par. Do not change the zoom: the values "
           "depend "
           "on it\n"
           "objective function type := PoissonLogLikelihoodWithLinearModelForMeanAndProjData\n"
           "PoissonLogLikelihoodWithLinearModelForMeanAndProjData Parameters :=\n"
           "  input file := sinograms_f1g1d0b0.hs\n" +
           fmt::format("  maximum absolute segment number to process := {}\n", segments) +
           "  zero end planes of segment 0 := 0\n"
           "  zoom := 0.5\n"
           "  recompute sensitivity := 1\n"
           "  use subset sensitivities := 1\n"
           "  subset sensitivity filenames := sensitivity_%d.hv\n"
           "  projector pair type := Matrix\n"
           "  Projector Pair Using Matrix Parameters :=\n"
           "    Matrix type := Ray Tracing\n"
           "    Ray tracing matrix parameters :=\n"
           "      number of rays in tangential direction to trace for each bin := 1\n"
           "      do symmetry 90degrees min phi := 0\n"
           "      do symmetry 180degrees min phi := 0\n"
           "      do_symmetry_swap_segment := 0\n"
           "      do_symmetry_swap_s := 0\n"
           "      do_symmetry_shift_z := 0\n"
           "      disable caching := 1\n"
           "    End Ray tracing matrix parameters :=\n"
           "  End Projector Pair Using Matrix Parameters :=\n" +
           (background ? "  additive sinogram := additive.hs\n" : "") +
           (model.attenuates() ? two_factors : one_factor) +
           "end PoissonLogLikelihoodWithLinearModelForMeanAndProjData Parameters :=\n"
           "enforce initial positivity condition := 1\n"
           "output filename prefix := image\n"
           "number of subsets := 6\n"
           "number of subiterations := 24\n"
           "save estimates at subiteration intervals := 6\n"
           "END :=\n";
}

}  // namespace

void claim_stir_lines(const std::filesystem::path& directory, Outputs& outputs) {
    for (const char* name : {"normalisation", "attenuation", "scatter", "additive"}) {
        outputs.claim(directory / (std::string(name) + ".hs"));
        outputs.claim(directory / (std::string(name) + ".s"));
    }
    outputs.claim(directory / "osem.par");
}

void check_stir_lines(const ExportOptions& options, const StirDetectors& detectors,
                      const StirProjections& projections) {
    const std::uint64_t sets = 1 + (options.lines.attenuation.empty() ? 0 : 1) +
                               (options.lines.attenuation.empty() || options.scatter == "none" ? 0 : 1) +
                               (options.has_randoms() || !options.lines.attenuation.empty() ? 1 : 0) +
                               (options.has_randoms() ? 1 : 0);
    const std::uint64_t bins = projections.bins(detectors);
    check_size_of_lines(options, bins, bins * sets * sizeof(float));
}

void write_stir_lines(const std::filesystem::path& directory, const StirLines& how, const LineModel& model,
                      net::WorkerPool& pool, Exported& exported) {
    const auto write = [&](const std::string& name, const char* what, const auto& value) {
        write_stir_header(directory / (name + ".hs"), name + ".s", how.scanner, how.detectors,
                          how.projections, how.depth_mm, how.study + comments(model));
        write_stir_values(directory / (name + ".s"), how.detectors, how.projections, pool, value);
        exported.files.push_back(name + ".hs, " + name + ".s: " + what);
    };
    // STIR's projectors state lengths in voxels.
    const double per_trues = model.calibration() * model.decay() / (how.seconds * stir_voxel_mm(how.scanner));
    const auto normalisation = [&](std::uint32_t a, std::uint32_t b) {
        const double trues = model.trues(a, b);
        return trues > 0 ? per_trues / trues : nothing_found;
    };
    write("normalisation", "normalisation factors: STIR multiplies prompts with them", normalisation);
    if (model.attenuates()) {
        write("attenuation", "attenuation correction factors",
              [&](std::uint32_t a, std::uint32_t b) { return 1 / model.attenuation(a, b); });
    }
    if (model.scatters()) {
        write("scatter", "the scatter to be expected among the prompts",
              [&](std::uint32_t a, std::uint32_t b) { return model.scatter(a, b); });
    }
    const bool background = model.scatters() || model.has_randoms();
    if (background) {
        write("additive", "randoms and scatter, times both factors: STIR's additive sinogram",
              [&](std::uint32_t a, std::uint32_t b) {
                  const double factor = normalisation(a, b);
                  if (factor == nothing_found) return 0.0;
                  return (model.randoms(a, b) + model.scatter(a, b)) * factor / model.attenuation(a, b);
              });
    }
    write_text(directory / "osem.par", osem_parameters(model, background, how.projections.segments));
    exported.files.emplace_back("osem.par: parameters for OSMAPOSL, after lm_to_projdata lm_to_projdata.par");
    for (const auto& sentence : model.sentences())
        exported.notes.push_back(sentence);
    exported.notes.push_back(
        fmt::format("The image of osem.par is in kBq/ml, up to the calibration. STIR's projectors state "
                    "lengths in voxels: "
                    "the factors hold for voxels of {} mm across (zoom 0.5).",
                    stir_voxel_mm(how.scanner)));
}

}  // namespace petacq::petlm
