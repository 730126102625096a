#include "tools/petlm/reconstruction/image/corrections.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "config/nuclides/nuclides.hpp"
#include "daemon/system/utc.hpp"
#include "tools/petlm/export/export.hpp"

namespace petacq::image {
namespace {

constexpr double complete = 0.999;  // share of the time

std::string sentence_about(const petlm::RunPileUp& pile_up) {
    if (std::isnan(pile_up.mean)) {
        return "Pile-up: not corrected, as the seconds of the run do not tell which pairs it lost to "
               "multiples: "
               "values are too small at high rates.";
    }
    if (std::abs(pile_up.mean - 1) < 5e-5) return "Pile-up: no pairs were lost to multiples.";
    std::string text = fmt::format(
        "Pile-up: values multiplied by {:.4g} for the pairs lost to multiples, the mean over the trues of "
        "each second",
        pile_up.mean);
    if (pile_up.most > 1.01 * pile_up.least) {
        text += fmt::format(
            "; by second it is {:.4g} to {:.4g}. If the distribution changed with it, seconds of a high rate "
            "count too little",
            pile_up.least, pile_up.most);
    }
    return text + ".";
}

}  // namespace

Corrections::Corrections(const petlm::ExportSource& source, const daemon::Coverage& coverage,
                         const config::Scanner& scanner, const gpu::PairRule& rule,
                         const corrections::LineFactors& lines, const Angles& angles,
                         const ImageCounts& counts, const PairCounts& pairs,
                         const corrections::EnergyWindow& window, const petlm::ImageOptions& options,
                         const QuickLookOptions& how, net::WorkerPool& pool)
    : lines_(lines), angles_(angles), counts_(counts) {
    report_.asked = lines.normalised() || !lines.object().empty();
    std::string why;
    std::string no_losses;  // why not
    const auto activity = corrections::nuclide_of(coverage, options);
    daemon::Coverage of_nuclide = coverage;
    of_nuclide.activity = activity;
    of_run_ = petlm::RunRandoms::of(source, of_nuclide, scanner, why);
    if (of_run_) {
        losses_ = of_run_;
        use_seconds();
    } else {
        losses_ = petlm::PairLosses::of(source, of_nuclide, scanner, no_losses);
        use_delayeds(source, counts.delayeds, why);
    }
    shares_ = angles.shares(coverage, activity ? activity->half_life_s : 0,
                            losses_ ? losses_->live_times() : std::vector<petlm::LiveTime>());
    if (pairs.pairs().empty() && of_run_) {
        pile_up_made_.made = true;
        pile_up_made_.sentence = "Pile-up: none, as there are no prompts.";
    }
    use_lines(options);
    use_spurious(rule);
    use_scatter(coverage, scanner, rule, pairs, window, options, pool);
    report_.list.push_back(randoms_made_);
    report_.list.push_back(pile_up_made_);
    use_dead_time(no_losses);
    use_loss(source, coverage, no_losses);
    report_.quantity.absorbed = !scanner.geometry.is_ring();
    use_quantity(coverage, options, how.grid.voxel_mm);
    report_.errors.prompts = static_cast<double>(pairs.prompts());
    report_.errors.share = pairs.share();
}

void Corrections::use_seconds() {
    randoms_ = [this](Pair pair) {
        const Pair crystals = crystals_of(pair);
        return counts_.share_of_randoms * share(pair.a) * of_run_->sum(crystals.a, crystals.b);
    };
    const double total = counts_.share_of_randoms * of_run_->total();
    randoms_made_.made = true;
    randoms_made_.figures["expected"] = total;
    report_.errors.randoms = total;
    randoms_made_.sentence = fmt::format(
        "Randoms: {:.0f} expected from the singles of each second, by pair of crystals; added to what the "
        "image predicts.",
        total);
    if (of_run_->known() < complete) {
        randoms_made_.sentence += fmt::format(
            " The seconds tell {:.4g} % of the time, and stand for all of it.", 100 * of_run_->known());
    }
    const petlm::RunPileUp& pile_up = of_run_->pile_up();
    if (!std::isnan(pile_up.mean)) {
        pile_up_ = pile_up.mean;
        pile_up_made_.made = true;
        pile_up_made_.figures["factor"] = pile_up_;
    }
    pile_up_made_.sentence = sentence_about(pile_up);
}

void Corrections::use_delayeds(const petlm::ExportSource& source, const RandomsByModules& delayeds,
                               const std::string& why) {
    pile_up_made_.sentence = "Pile-up: not corrected, as " + why + ".";
    if (delayeds.total() == 0) {
        randoms_made_.sentence = std::string("Randoms: none subtracted, as there are no delayeds") +
                                 (source.may_hold_delayeds() ? "" : "; the run did not search for them") +
                                 ", and " + why + ".";
        return;
    }
    const auto weight = petlm::mean_weight_of_delayeds(source);
    randoms_ = [this, factor = counts_.share_of_randoms * weight.value_or(1), &delayeds](Pair pair) {
        return share(pair.a) * factor * delayeds.expected(crystals_of(pair));
    };
    randoms_made_.made = true;
    report_.errors.delayeds = static_cast<double>(delayeds.total());
    report_.errors.randoms = counts_.share_of_randoms * weight.value_or(1) * report_.errors.delayeds;
    randoms_made_.figures["expected"] = report_.errors.randoms;
    randoms_made_.sentence =
        "Randoms: expected from the delayeds of each pair of BDMs, each of which stands for " +
        (weight ? fmt::format("{:.4g} randoms", *weight) : "1 random (its weight is unknown)") +
        "; added to what the image predicts. Not from the singles, as " + why + ".";
}

void Corrections::use_lines(const petlm::ImageOptions& options) {
    Correction normalisation{"normalisation",
                             lines_.normalised(),
                             "Normalisation: not corrected; no file was named (--normalisation).",
                             {}};
    if (lines_.normalised()) {
        const auto& efficiency = lines_.file().efficiency;
        const auto dead = std::count(efficiency.begin(), efficiency.end(), 0.0F);
        normalisation.sentence = fmt::format("Normalisation: by {}, in which {} crystals are dead.",
                                             options.lines.normalisation->string(), dead);
        report_.errors.normalised = true;
        report_.errors.efficiency_error = lines_.file().number("efficiency_error");
        report_.errors.crystals = static_cast<double>(efficiency.size()) - static_cast<double>(dead);
        normalisation.figures = {{"file", options.lines.normalisation->string()},
                                 {"sha256", lines_.file().sha256},
                                 {"dead_crystals", static_cast<double>(dead)}};
    }
    report_.list.push_back(normalisation);
    const bool object = !lines_.object().empty();
    Correction attenuation{
        "attenuation", object, "Attenuation: not corrected; no object was named (--attenuation).", {}};
    if (object) {
        attenuation.sentence = "Attenuation: by " + lines_.object().text() + ".";
        attenuation.figures["object"] = lines_.object().text();
    }
    report_.list.push_back(attenuation);
}

void Corrections::use_dead_time(const std::string& why) {
    Correction out{"dead time", false, "", {}};
    const petlm::RunDeadTime* const dead_time = losses_ ? &losses_->dead_time() : nullptr;
    if (!report_.asked) {
        out.sentence = "Dead time: not corrected without --normalisation or --attenuation.";
    } else if (dead_time == nullptr || dead_time->factor.empty()) {
        const std::string unknown = losses_ && losses_->loss().too_many_modules
                                        ? petlm::too_many_modules()
                                        : "the boards did not report it in all seconds";
        out.sentence = "Dead time: not corrected, as " + (losses_ ? unknown : why) + ".";
    } else {
        out.made = true;
        out.sentence = fmt::format(
            "Dead time: by factors of {:.4g} to {:.4g}, by pair of DUs, from the reports of the "
            "boards "
            "and the singles.",
            dead_time->least, dead_time->most);
        report_.errors.dead_time = dead_time->most;
        out.figures = {{"least_factor", dead_time->least}, {"largest_factor", dead_time->most}};
    }
    report_.list.push_back(out);
}

void Corrections::use_loss(const petlm::ExportSource& source, const daemon::Coverage& coverage,
                           const std::string& why) {
    Correction out{"loss", false, "Loss: not corrected, as " + why + ".", {}};
    if (losses_) {
        const petlm::RunLoss& loss = losses_->loss();
        out.made = !loss.arrived.empty();
        out.sentence = sentence_of(loss);
        if (out.made)
            out.figures = {{"lost", loss.lost},
                           {"known", loss.unknown_modules ? "not of all modules" : "of all modules"},
                           {"factor", loss.factor},
                           {"largest_factor", loss.largest_factor}};
    }
    if (!out.made && coverage.intervals && coverage.ticks() == 0) {
        out.made = true;
        out.sentence = "Loss: none, as the file covers no time.";
    } else if (!out.made) {
        out.sentence += petlm::lost_datagrams(source);
    }
    loss_made_ = losses_ && losses_->loss().lost > 0;
    report_.list.push_back(out);
}

void Corrections::use_scatter(const daemon::Coverage& coverage, const config::Scanner& scanner,
                              const gpu::PairRule& rule, const PairCounts& pairs,
                              const corrections::EnergyWindow& window, const petlm::ImageOptions& options,
                              net::WorkerPool& pool) {
    Correction out{"scatter", false, "Scatter: not corrected; no object was named (--attenuation).", {}};
    if (options.scatter == "none") out.sentence = "Scatter: not corrected, as asked for (--scatter none).";
    if (!lines_.object().empty() && options.scatter != "none" && pairs.pairs().empty()) {
        out.made = true;
        out.sentence = "Scatter: none, as there are no prompts.";
    } else if (!lines_.object().empty() && options.scatter != "none") {
        scatter_ = std::make_unique<Scatter>(
            ScatterData{scanner,
                        rule,
                        lines_,
                        {angles_.radians(), shares_},
                        [this](std::uint32_t a, std::uint32_t b) { return found(a, b); },
                        [this](std::uint32_t a, std::uint32_t b) {
                            const Pair pair{std::min(a, b), std::max(a, b)};
                            return (randoms_ ? randoms_(pair) : 0) + (spurious_ ? spurious_(pair) : 0);
                        },
                        pairs,
                        window,
                        coverage.rules.coincidence.value_or(config::Coincidence{}).multiples_policy},
            pool);
        out.made = true;
        report_.errors.scatter = scatter_->total();
        // What the lines that miss the object can tell.
        if (std::isfinite(scatter_->scale().error)) report_.errors.scatter_error = scatter_->scale().error;
        out.sentence = scatter_->sentence();
        const auto& scale = scatter_->scale();
        out.figures = {{"expected", scatter_->total()},
                       {"share_of_prompts", scatter_->share_of_prompts()},
                       {"scale_of_simulation", scale.factor},
                       {"energy_resolution", window.resolution}};
        if (std::isfinite(scale.error)) {
            out.figures["ratio_in_tails"] = scale.ratio;
            out.figures["error_of_ratio"] = scale.error;
        }
    }
    report_.list.push_back(out);
}

/// As with scatter, the factors of the normalisation by place belong to pairs that fly along the line.
void Corrections::use_spurious(const gpu::PairRule& rule) {
    if (!counts_.spurious) return;
    spurious_ = [this, &rule](Pair pair) {
        const Pair crystals = crystals_of(pair);
        const double chance = found(pair.a, pair.b);
        if (!(chance > 0) || !rule.good(crystals.a, crystals.b)) return 0.0;
        return share(pair.a) * chance * lines_.efficiencies(pair.a, pair.b) /
               lines_.normalisation(pair.a, pair.b) * counts_.spurious->counts(crystals.a, crystals.b);
    };
    const gammas::SpuriousPairs& pairs = *counts_.spurious;
    Correction out{"spurious pairs",
                   true,
                   "",
                   {{"expected", pairs.total()},
                    {"for_each_pair", pairs.per_pair()},
                    {"relative_error_of_simulation", pairs.relative_error()},
                    {"efficiency", pairs.efficiency()}}};
    out.sentence = fmt::format(
        "Spurious pairs: {:.0f} with a prompt gamma expected, {:.4g} for each true pair, by a simulation of "
        "decays in which the crystals find {:.3g} of the photons that leave energy in them; added to what "
        "the image predicts.",
        pairs.total(), pairs.per_pair(), pairs.efficiency());
    report_.list.push_back(out);
}

void Corrections::use_quantity(const daemon::Coverage& coverage, const petlm::ImageOptions& options,
                               double voxel_mm) {
    Correction decay{"decay", false, "Decay: not corrected; values are decays in the whole time.", {}};
    Correction calibration{"calibration", false, "Calibration: none without --normalisation.", {}};
    if (coverage.intervals) report_.quantity.seconds = coverage.seconds();
    const auto source_of_photons = corrections::nuclide_of(coverage, options);
    if (source_of_photons) report_.quantity.nuclide = source_of_photons->nuclide;
    if (lines_.normalised() && report_.quantity.seconds) {
        const double seconds = *report_.quantity.seconds;
        report_.quantity.activity = true;
        report_.quantity.calibrated = lines_.file().activity_factor.has_value();
        if (coverage.anchor) report_.quantity.time_of_activity = daemon::utc_text(coverage.anchor->utc);
        // A decay per mm^3 and second is 1 kBq/ml. In no time there is none.
        report_.quantity.scale =
            seconds > 0 ? lines_.file().activity_factor.value_or(1) / (std::pow(voxel_mm, 3) * seconds) : 0;
        report_.quantity.unit = report_.quantity.calibrated ? "kBq/ml" : "kBq/ml, uncalibrated";
        decay.sentence = fmt::format(
            "Decay: not corrected, as the nuclide is unknown (--nuclide): values are the mean over {:.6g} s, "
            "of positrons rather than decays.",
            seconds);
        if (source_of_photons) {
            const double factor = coverage.decay_factor(source_of_photons->half_life_s);
            report_.quantity.scale *= factor / source_of_photons->branching_ratio;
            decay.made = true;
            decay.sentence = fmt::format(
                "Decay: activity of {} at the start of the run{}: {:.6g} times the mean over the {:.6g} s "
                "recorded, and {} positrons per decay.",
                source_of_photons->nuclide,
                report_.quantity.time_of_activity ? ", " + *report_.quantity.time_of_activity : "", factor,
                seconds, source_of_photons->branching_ratio);
            const auto note = config::prompt_gamma_note(source_of_photons->nuclide);
            if (!note.empty() && !counts_.spurious) decay.sentence += " " + note + " They are not corrected.";
            decay.figures = {{"factor", factor}, {"branching_ratio", source_of_photons->branching_ratio}};
        }
        calibration.made = report_.quantity.calibrated;
        calibration.sentence =
            "Calibration: none; the normalisation has no activity factor, so values are as if the mean "
            "crystal detected every photon.";
        if (calibration.made) {
            calibration.sentence = fmt::format("Calibration: activity factor {:.6g} of the normalisation.",
                                               *lines_.file().activity_factor);
            calibration.figures["activity_factor"] = *lines_.file().activity_factor;
            report_.errors.calibrated = true;
            report_.errors.activity_error = lines_.file().number("activity_error");
        }
    } else if (lines_.normalised()) {
        calibration.sentence =
            "Calibration: none, as the length of the measurement is unknown (that of a run directory is "
            "known).";
    }
    report_.list.push_back(decay);
    report_.list.push_back(calibration);
}

QuickLookModel Corrections::model() const {
    QuickLookModel out;
    out.line.background = randoms_;
    if (scatter_) out.line.scatter = [this](Pair pair) { return scatter_->counts(pair.a, pair.b); };
    if (spurious_) {
        out.line.spurious = spurious_;
        out.line.places = counts_.spurious->places();
    }
    config::Sha256 digest;
    digest.add_values(shares_);
    digest.add_value(report_.asked || loss_made_);
    if (report_.asked || loss_made_) {
        lines_.add_to(digest);
        digest.add_value(report_.asked);
        if (losses_) losses_->add_to(digest);
    }
    out.digest = digest.text();
    if (!report_.asked && !loss_made_) {
        if (turns()) out.line.factor = [this](Pair pair) { return share(pair.a); };
        return out;
    }
    out.line.factor = [this](Pair pair) {
        return share(pair.a) * found(pair.a, pair.b) * lines_.attenuation(pair.a, pair.b);
    };
    out.ray = [this](const Entrance& a, const Entrance& b) {
        const double chance = found(a.crystal, b.crystal);
        return chance > 0 ? chance * lines_.attenuation(a.at, b.at) : 0;
    };
    return out;
}

}  // namespace petacq::image
