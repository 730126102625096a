#include "tools/petlm/export/line_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "tools/petlm/records/status.hpp"

namespace petacq::petlm {
namespace {

constexpr std::size_t most_pairs = 16'000'000;      // of which prompts are counted for the scatter
constexpr std::uint64_t most_memory = 512'000'000;  // of the image that makes it, bytes

double solid_angle_scale(const config::Dimensions& d) {
    const double face = d.crystal_pitch_y_mm * d.crystal_pitch_z_mm;
    return face * face / (2 * std::numbers::pi);
}

}  // namespace

std::uint64_t good_pairs(const config::Geometry& geometry, const gpu::PairRule& rule) {
    const auto ordered = [](std::uint32_t count, const auto& good) {
        std::uint64_t pairs = 0;
        for (std::uint32_t a = 0; a < count; ++a)
            for (std::uint32_t b = 0; b < count; ++b)
                if (good(a, b)) ++pairs;
        return pairs;
    };
    const std::uint64_t of_modules = ordered(rule.modules, [&](std::uint32_t a, std::uint32_t b) {
        return rule.modules_apart(a, b) >= rule.min_module_difference;
    });
    const std::uint64_t of_rings = ordered(geometry.rings(), [&](std::uint32_t a, std::uint32_t b) {
        return (a > b ? a - b : b - a) <= rule.max_ring_difference;
    });
    const std::uint64_t columns = rule.crystals_per_module;
    const std::uint64_t all = of_modules * of_rings * columns * columns;
    const std::uint64_t with_themselves = rule.min_module_difference == 0 ? geometry.crystal_count() : 0;
    return (all - with_themselves) / 2;
}

LineModel::LineModel(const ExportSource& source, const config::Scanner& scanner, const ExportOptions& options,
                     gpu::WorkerPool& pool)
    : rule_(pair_rule(source, scanner.geometry)),
      lines_(scanner, depth_of_interaction(options.depth_mm, scanner), options.lines),
      randoms_(options.randoms.value_or(RandomsPerPair{})),
      scale_(solid_angle_scale(scanner.dimensions)) {
    use_lines(options);
    use_scatter(source, scanner, options, pool);
    use_run(source, scanner, options);
}

double LineModel::found(std::uint32_t a, std::uint32_t b) const {
    return lines_.normalisation(a, b) * (randoms_.found ? randoms_.found(a, b) : 1);
}

double LineModel::trues(std::uint32_t a, std::uint32_t b) const {
    return rule_.good(a, b) ? found(a, b) * lines_.solid_angle(a, b, scale_) : 0;
}

double LineModel::calibration() const {
    return per_measured_ * (lines_.normalised() ? lines_.file().activity_factor.value_or(1) : 1);
}

void LineModel::use_lines(const ExportOptions& options) {
    ExportCorrection normalisation{
        "normalisation", lines_.normalised(),
        "Normalisation: only the solid angle of each line; no file was named (--normalisation)."};
    if (lines_.normalised()) {
        const auto& efficiency = lines_.file().efficiency;
        normalisation.sentence =
            fmt::format("Normalisation: by {} (SHA-256 {}), in which {} crystals are dead.",
                        options.lines.normalisation->string(), lines_.file().sha256,
                        std::count(efficiency.begin(), efficiency.end(), 0.0F));
    }
    list_.push_back(normalisation);
    list_.push_back({"attenuation", attenuates(),
                     attenuates() ? "Attenuation: by " + lines_.object().text() + "."
                                  : "Attenuation: not corrected; no object was named (--attenuation)."});
}

void LineModel::use_scatter(const ExportSource& source, const config::Scanner& scanner,
                            const ExportOptions& options, gpu::WorkerPool& pool) {
    ExportCorrection out{"scatter", false, "Scatter: not corrected; no object was named (--attenuation)."};
    if (options.scatter == "none") {
        out.sentence = "Scatter: not corrected, as asked for (--scatter none).";
    } else if (attenuates()) {
        image::PairCounts pairs(scanner.geometry.crystal_count(), most_pairs, pool);
        corrections::PhotopeakWidth photopeak;
        source.for_each_block(
            scanner.geometry.crystal_count(),
            [&](const daemon::ListModeReader& reader) {
                pairs.add(reader.coincidences());
                for (const auto& c : reader.coincidences()) {
                    if (c.kind != gpu::Kind::prompt) continue;
                    photopeak.add(c.energy_a);
                    photopeak.add(c.energy_b);
                }
            },
            "scatter of");
        pairs.finish();
        scatter_ = std::make_unique<image::Scatter>(
            image::ScatterData{scanner, rule_, lines_,
                               [this](std::uint32_t a, std::uint32_t b) { return found(a, b); },
                               [this](std::uint32_t a, std::uint32_t b) { return randoms(a, b); }, pairs,
                               photopeak.window(source.coverage().rules.energy)},
            pool, most_memory);
        out.made = true;
        out.sentence = scatter_->sentence();
    }
    list_.push_back(out);
}

void LineModel::use_run(const ExportSource& source, const config::Scanner& scanner,
                        const ExportOptions& options) {
    list_.push_back({"randoms", static_cast<bool>(randoms_.sum),
                     randoms_.sum ? "Randoms: expected from the singles of each second, by pair of crystals."
                                  : "Randoms: not estimated, as " + options.no_seconds + "."});
    list_.push_back({"dead time and pile-up", static_cast<bool>(randoms_.found),
                     randoms_.found
                         ? randoms_.found_sentence
                         : "Dead time and pile-up: not corrected, as " + options.no_seconds + "."});
    const double span =
        static_cast<double>(source.time_end() - source.time_origin()) * scanner.tick_ps * 1e-12;
    const double measured = source.coverage().seconds();
    if (measured > 0) per_measured_ = span / measured;
    list_.push_back(
        {"measured time", measured > 0,
         measured > 0
             ? fmt::format("Measured time: {:.6g} s, in a run of {:.6g} s.", measured, span)
             : fmt::format("Measured time: not known, as this is a file, not a run directory; taken to "
                           "be {:.6g} s, that of its records.",
                           span)});
    ExportCorrection decay{"decay", false, "Decay: not corrected, as the nuclide is unknown (--nuclide)."};
    if (const config::Nuclide* const nuclide = nuclide_of(source, options)) {
        const double factor = source.coverage().decay_factor(nuclide->half_life_s);
        decay_ = factor / nuclide->branching_ratio;
        decay.made = true;
        decay.sentence = fmt::format(
            "Decay: of {}, to the start of the run: {:.6g} times the mean over {:.6g} s, and {} positrons "
            "per "
            "decay.",
            nuclide->name, factor, span, nuclide->branching_ratio);
    }
    list_.push_back(decay);
    const bool calibrated = lines_.normalised() && lines_.file().activity_factor;
    list_.push_back({"calibration", calibrated,
                     calibrated ? fmt::format("Calibration: activity factor {:.6g} of the normalisation.",
                                              *lines_.file().activity_factor)
                                : "Calibration: none; values are as if the mean crystal detected every "
                                  "photon."});
}

std::vector<std::string> sentences_of(const std::vector<ExportCorrection>& list) {
    std::vector<std::string> out;
    out.reserve(list.size());
    for (const auto& correction : list)
        out.push_back(correction.sentence);
    return out;
}

}  // namespace petacq::petlm
