#include "tools/petcal/activity/activity_by_coincidence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <thread>

#include "config/base/error.hpp"
#include "config/configuration.hpp"
#include "config/nuclides/nuclides.hpp"
#include "daemon/backend/pipeline_options.hpp"
#include "daemon/system/utc.hpp"
#include "gpu/rules/pair_rule.hpp"
#include "tools/petcal/activity/activity_file.hpp"
#include "tools/petcal/activity/line_weights.hpp"
#include "tools/petcal/activity/run_counts.hpp"
#include "tools/petcal/activity/source_lines.hpp"
#include "tools/petcal/activity/summing.hpp"
#include "tools/petcal/steps/refusals.hpp"
#include "tools/petlm/records/source.hpp"

namespace petacq::petcal {
namespace {

constexpr double spurious_error = 0.05;  // of what is subtracted: as well do lines of gammas stand for it
constexpr double most_lost = 0.01;

void check_rules(const petlm::ExportSource& triples) {
    const daemon::RecordRules& rules = triples.coverage().rules;
    if (!rules.gammas || !rules.coincidence)
        refuse_run(triples, "triples with the rules by which they were made");
    if (rules.gammas->policy != config::GammaPolicy::all)
        refuse_run(triples, "the gamma policy \"all\": others leave out gammas of the source");
    if (!rules.gammas->delay_ticks) refuse_run(triples, "delayed gammas (delay_ns of gammas)");
    if (!rules.coincidence->delay_ticks) refuse_run(triples, "delayeds (delay_ns of coincidence)");
    if (rules.coincidence->multiples_policy != config::MultiplesPolicy::take_all_goods)
        refuse_run(
            triples,
            "the multiples policy TakeAllGoods: others lose pairs when their gamma leaves a part of its "
            "energy in the energy window");
}

const config::Gamma& gamma_of(const config::Nuclide& nuclide, const config::Gammas& window) {
    const config::Gamma* found = nullptr;
    constexpr double least = 0.02;  // per decay: others change the result by less than their share
    for (const config::Gamma& gamma : nuclide.gammas) {
        if (gamma.delay_half_life_s > 0 || gamma.per_decay < least || gamma.energy_keV < window.lower_keV)
            continue;
        if (found != nullptr || gamma.energy_keV > window.upper_keV) {
            found = nullptr;
            break;
        }
        found = &gamma;
    }
    if (found == nullptr)
        throw config::Error(
            fmt::format("{}: expected a nuclide with one prompt gamma of {:g} to {:g} keV and none above, "
                        "such as Na-22 or Sc-44",
                        nuclide.name, window.lower_keV, window.upper_keV));
    return *found;
}

ActivityByCoincidence derive(const config::Scanner& scanner, const ActivityByCoincidenceOptions& o) {
    const SourceLines lines(scanner, o.point, o.cylinder);
    const petlm::ExportSource triples(o.run, daemon::RecordKind::triples);
    const petlm::ExportSource pairs(o.run);
    check_rules(triples);
    if (scanner.rotation) refuse_run(triples, "a scanner that stands still");
    const auto& stated = triples.coverage().activity;
    const std::string name = o.nuclide ? *o.nuclide : stated ? stated->nuclide : "";
    const config::Nuclide* const nuclide = config::find_nuclide(name);
    if (nuclide == nullptr)
        throw config::Error(name.empty() ? "--nuclide: expected one, as the operator named none"
                                         : "--nuclide: " + name + " is not in the table of nuclides");
    const config::Gamma& gamma = gamma_of(*nuclide, *triples.coverage().rules.gammas);

    ActivityByCoincidence found;
    found.nuclide = nuclide->name;
    if (const auto live = triples.coverage().loss.live) found.lost_data = 1 - *live;
    const double lost = found.lost_data.value_or(0);
    if (lost > most_lost)
        refuse_run(triples, fmt::format("at most {:g} % of the data lost, found {:.3g} %", 100 * most_lost,
                                        100 * lost));
    const gpu::CoincidenceRules rules = daemon::coincidence_rules(*triples.coverage().rules.coincidence);
    const auto rule = gpu::PairRule::of(scanner.geometry, rules);
    const LineWeights weights(lines, rule, gamma_crystals(triples, scanner.geometry));
    RunCounts counted = count(pairs, triples, scanner.geometry, lines, weights);
    if (o.background) add_background(triples, *o.background, counted.counts);

    net::WorkerPool pool(std::max(1U, std::thread::hardware_concurrency()));
    corrections::EnergyWindow in_pairs = counted.photopeak.window(triples.coverage().rules.energy);
    corrections::EnergyWindow in_gammas = in_pairs;
    in_gammas.lower = triples.coverage().rules.gammas->lower_keV;
    in_gammas.upper = triples.coverage().rules.gammas->upper_keV;
    const Summing summing =
        simulate_summing({scanner, lines, weights, *nuclide, gamma, in_pairs, in_gammas}, pool);
    found.activity = estimate::coincidence_activity(
        counted.counts, {gamma.per_decay, nuclide->chance(gamma, true)}, {summing.factor, summing.error});
    found.pairs = counted.pairs;
    found.triples = counted.triples;
    found.spurious = counted.spurious();
    found.spurious_error = spurious_error * std::abs(found.spurious);
    found.volume_ml = lines.is_point() ? 0 : lines.volume_ml();
    found.error = std::hypot(found.activity.error(), found.spurious_error, lost);
    found.at_start_becquerel =
        found.activity.becquerel * triples.coverage().decay_factor(nuclide->half_life_s);
    if (const auto utc = triples.coverage().utc_of(triples.coverage().reference_ticks()))
        found.start_utc = daemon::utc_text(*utc);
    save(o.output, o, counted.counts, found);
    return found;
}

}  // namespace

ActivityByCoincidence activity_by_coincidence(const config::Scanner& scanner,
                                              const ActivityByCoincidenceOptions& options) {
    return refusing_bad_files([&] { return derive(scanner, options); });
}

}  // namespace petacq::petcal
