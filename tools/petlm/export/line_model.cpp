#include "tools/petlm/export/line_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "tools/petlm/base/status.hpp"
#include "tools/petlm/export/recorded_time.hpp"
#include "tools/petlm/reconstruction/corrections/fits.hpp"
#include "tools/petlm/reconstruction/corrections/module_losses.hpp"

namespace petacq::petlm {
namespace {

constexpr std::size_t max_pairs = 16'000'000;  // of which prompts are counted for the scatter

std::uint64_t pairs_of_groups(const config::PairGeometry& pairs) {
    std::vector<std::uint64_t> crystals(pairs.groups.size());
    for (const auto& crystal : pairs.crystals)
        ++crystals[crystal.group];
    std::uint64_t ordered = 0;
    for (std::size_t a = 0; a < crystals.size(); ++a) {
        for (std::size_t b = 0; b < crystals.size(); ++b)
            if (pairs.may_pair[a * crystals.size() + b])
                ordered += crystals[a] * (crystals[b] - (a == b ? 1 : 0));
    }
    return ordered / 2;
}

}  // namespace

std::uint64_t good_pairs(const config::Geometry& geometry, const gpu::PairRule& rule) {
    if (!geometry.is_ring()) return pairs_of_groups(*geometry.pairs);
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
                     net::WorkerPool& pool)
    : rule_(pair_rule(source, scanner.geometry)),
      lines_(scanner, depth_of_interaction(options.depth_mm, scanner), options.lines),
      randoms_(options.randoms.value_or(RandomsPerPair{})) {
    if (lines_.normalised())
        sentences_ = check_fit(lines_, *options.lines.normalisation, source.coverage(), scanner);
    use_lines(options);
    use_scatter(source, scanner, options, pool);
    use_run(source, options);
}

double LineModel::found(std::uint32_t a, std::uint32_t b) const {
    return lines_.normalisation(a, b) * (randoms_.found ? randoms_.found(a, b) : 1);
}

double LineModel::trues(std::uint32_t a, std::uint32_t b) const {
    constexpr double both_directions = 2 * std::numbers::pi;
    return rule_.good(a, b) ? found(a, b) * lines_.solid_angle(a, b, lines_.face_squared() / both_directions)
                            : 0;
}

double LineModel::calibration() const {
    return lines_.normalised() ? lines_.file().activity_factor.value_or(1) : 1;
}

void LineModel::use_lines(const ExportOptions& options) {
    if (lines_.normalised()) {
        const auto& efficiency = lines_.file().efficiency;
        sentences_.push_back(fmt::format("Normalisation: by {} (SHA-256 {}), in which {} crystals are dead.",
                                         options.lines.normalisation->string(), lines_.file().sha256,
                                         std::count(efficiency.begin(), efficiency.end(), 0.0F)));
    } else {
        sentences_.emplace_back(
            "Normalisation: only the solid angle of each line; no file was named (--normalisation).");
    }
    sentences_.push_back(attenuates() ? "Attenuation: by " + lines_.object().text() + "."
                                      : "Attenuation: not corrected; no object was named (--attenuation).");
}

void LineModel::use_scatter(const ExportSource& source, const config::Scanner& scanner,
                            const ExportOptions& options, net::WorkerPool& pool) {
    std::string sentence = "Scatter: not corrected; no object was named (--attenuation).";
    if (options.scatter == "none") {
        sentence = "Scatter: not corrected, as asked for (--scatter none).";
    } else if (attenuates()) {
        image::PairCounts pairs(scanner.geometry.crystal_count(), max_pairs, pool);
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
            image::ScatterData{
                scanner,
                rule_,
                lines_,
                {},
                [this](std::uint32_t a, std::uint32_t b) { return found(a, b); },
                [this](std::uint32_t a, std::uint32_t b) { return randoms(a, b); },
                pairs,
                photopeak.window(source.coverage().rules.energy),
                source.coverage().rules.coincidence.value_or(config::Coincidence{}).multiples_policy},
            pool);
        sentence = scatter_->sentence();
    }
    sentences_.push_back(std::move(sentence));
}

void LineModel::use_run(const ExportSource& source, const ExportOptions& options) {
    sentences_.push_back(randoms_.sum ? randoms_.sum_sentence
                                      : "Randoms: not estimated, as " + options.no_seconds + ".");
    sentences_.push_back(randoms_.found
                             ? randoms_.found_sentence
                             : "Dead time and pile-up: not corrected, as " + options.no_seconds + ".");
    sentences_.push_back(randoms_.found ? randoms_.loss_sentence
                                        : "Loss: not corrected, as " + options.no_seconds + "." +
                                              lost_datagrams(source));
    const daemon::Coverage coverage = completed_coverage(source);
    sentences_.push_back(
        source.coverage().seconds() > 0
            ? fmt::format("Recorded time: {:.6g} s, from {:.6g} s after the start of the run on.",
                          coverage.seconds(), coverage.since_reference_s(coverage.span().start))
            : fmt::format("Recorded time: not known; taken to be {:.6g} s, that of the records.",
                          coverage.seconds()));
    if (const auto nuclide = corrections::nuclide_of(source.coverage(), options)) {
        decay_ = corrections::decay_correction(coverage, nuclide);
        sentences_.push_back(fmt::format(
            "Decay: of {}, to the start of the run: {:.6g} times the mean over the recorded time, and {} "
            "positrons per decay.",
            nuclide->nuclide, coverage.decay_factor(nuclide->half_life_s), nuclide->branching_ratio));
    } else {
        sentences_.emplace_back("Decay: not corrected, as the nuclide is unknown (--nuclide).");
    }
    sentences_.push_back(lines_.normalised() && lines_.file().activity_factor
                             ? fmt::format("Calibration: activity factor {:.6g} of the normalisation.",
                                           *lines_.file().activity_factor)
                             : "Calibration: none; values are as if the mean crystal detected every photon.");
}

}  // namespace petacq::petlm
