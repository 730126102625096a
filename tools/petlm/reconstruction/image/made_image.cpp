#include "tools/petlm/reconstruction/image/made_image.hpp"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <utility>

#include "daemon/system/progress_line.hpp"
#include "tools/petlm/reconstruction/corrections/fits.hpp"
#include "tools/petlm/reconstruction/image/corrections.hpp"

namespace petacq::image {
namespace {

corrections::LineOptions line_options(const Setup& setup, const Part& part) {
    corrections::LineOptions options = setup.options.lines;
    options.object_mm = part.bed_mm;
    return options;
}

std::vector<std::string> sentences_about(const ImageCounts& counts, const Report& report,
                                         const QuickLook& look, std::uint32_t angles) {
    std::vector<std::string> lines;
    lines.push_back(fmt::format("{} prompts on {} pairs of crystals{}, {} delayeds.", counts.prompts,
                                counts.pairs.pairs().size(),
                                counts.pairs.measured().tof.used() ? " and bins of the time of flight" : "",
                                counts.delayeds.total()));
    if (angles > 1)
        lines.push_back(fmt::format("The scanner turned: its lines were taken at {} angles.", angles));
    if (counts.pairs.share() < 1) {
        lines.push_back(fmt::format(
            "Only 1 of {} pairs of crystals was used, with {} prompts: more did not fit into half "
            "of the allowed memory (--max-memory-gb).",
            std::llround(1 / counts.pairs.share()), counts.pairs.prompts()));
    }
    for (const std::string& sentence : report.sentences())
        lines.push_back(sentence);
    if (look.em.outside != 0) {
        lines.push_back(fmt::format("{} prompts lie on lines that miss the image{}.", look.em.outside,
                                    counts.pairs.measured().tof.used()
                                        ? ", or come from outside of it by their time of flight"
                                        : ""));
    }
    return lines;
}

}  // namespace

PartLines::PartLines(const Setup& setup, const Part& part)
    : factors_(setup.scanner, setup.depth, line_options(setup, part),
               setup.angles.turns() ? setup.angles.radians() : std::vector<double>()) {
    if (factors_.normalised())
        sentences_ = check_fit(factors_, *setup.options.lines.normalisation, part.coverage, setup.scanner);
}

MadeImage make_image(Setup& setup, const Part& part, const PartLines& lines, const ImageCounts& counts,
                     const std::string& what, std::uint64_t max_memory, const Replicates& replicates,
                     std::vector<float> sensitivity) {
    QuickLookOptions how = setup.how;
    how.max_memory = max_memory;
    MadeImage out;
    out.sentences = lines.sentences();
    std::optional<PairCounts> without_tof;
    if (setup.tof.bins.used()) without_tof.emplace(counts.pairs.without_tof());
    const Corrections corrections(setup.source, part.coverage, setup.scanner, setup.rule, lines.factors(),
                                  setup.angles, counts, without_tof ? *without_tof : counts.pairs,
                                  counts.photopeak.window(part.coverage.rules.energy), setup.options, how,
                                  setup.pool);
    out.report = corrections.report();
    out.scale = corrections.scale();
    if (!out.report.quantity.activity) out.scale *= part.decays;
    how.scale = out.scale;
    const auto look_at = [&](const PairCounts& pairs, const std::string& text, std::vector<float> known) {
        return within_memory([&] {
            const std::uint64_t steps =
                std::uint64_t{how.iterations} * how.subsets + (how.end_with_all_lines ? 1 : 0);
            daemon::ProgressLine progress(text, steps, daemon::ProgressUnit::steps);
            how.progress = [&](std::uint64_t done, std::uint64_t) { progress.show(done); };
            return make_quick_look(setup.scanner, setup.rule, pairs, lines.factors(), corrections.model(),
                                   setup.pool, how, std::move(known));
        });
    };
    out.look = look_at(counts.pairs, what, std::move(sensitivity));
    for (std::uint32_t i = 1; i <= replicates.count; ++i) {
        const QuickLook replicate =
            look_at(counts.pairs.resampled(i),
                    fmt::format("{}, replicate {} of {}", what, i, replicates.count), out.look.sensitivity);
        replicates.use(replicate, out.scale);
    }
    const auto about = sentences_about(counts, out.report, out.look, setup.angles.count());
    out.sentences.insert(out.sentences.end(), about.begin(), about.end());
    return out;
}

std::vector<std::string> sentences_about_making(const Setup& setup, const Grid& grid,
                                                const std::vector<MadeImage>& images, double read_s) {
    const petlm::ImageOptions& options = setup.options;
    const QuickLookOptions& how = setup.how;
    const QuickLook& look = images.front().look;
    std::vector<std::string> lines;
    lines.push_back(fmt::format(
        "{} x {} x {} voxels of {:.4g} mm; {} of {} subsets; smoothed by {:.3g} mm FWHM; photons interact "
        "{}{}.",
        grid.n[0], grid.n[1], grid.n[2], grid.voxel_mm,
        options.iterations == 1 ? "1 iteration" : fmt::format("{} iterations", options.iterations),
        options.subsets, how.smooth_mm, setup.depth.text(),
        options.depth_mm || !setup.depth.is_fixed() ? "" : ", as for the normalisation"));
    if (how.psf_mm > 0)
        lines.push_back(fmt::format("The model has a blur of {:.3g} mm FWHM (--psf-mm).", how.psf_mm));
    lines.push_back(fmt::format("Computed by {}.", look.backend));
    lines.push_back(fmt::format("Memory allowed: {:.3g} GB (--max-memory-gb), room for {} pairs of crystals.",
                                static_cast<double>(how.max_memory) / 1e9, pair_capacity(how.max_memory)));
    double sensitivity_s = 0;
    double em_s = 0;
    for (const MadeImage& image : images) {
        sensitivity_s += image.look.sensitivity_s;
        em_s += image.look.em_s;
    }
    lines.push_back(fmt::format("Seconds: {:.1f} to read, {:.1f} sensitivity, {:.1f} image.", read_s,
                                sensitivity_s, em_s));
    return lines;
}

}  // namespace petacq::image
