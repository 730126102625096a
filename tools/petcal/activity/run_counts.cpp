#include "tools/petcal/activity/run_counts.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "config/base/error.hpp"
#include "tools/petlm/reconstruction/corrections/module_losses.hpp"
#include "tools/petlm/records/delayeds_weight.hpp"
#include "tools/petlm/records/origin.hpp"
#include "tools/petlm/records/third_photons.hpp"

namespace petacq::petcal {
namespace {

constexpr double min_triples = 100;  // of each part
constexpr double least_near = 0.3;   // of all pairs: others are scattered, or the source is elsewhere

double gammas_of(const petlm::ExportSource& source) {
    const nlohmann::json& run = source.run();
    double gammas = 0;
    for (const char* pointer : {"/ledger/gammas/used", "/ledger/gammas/unused"}) {
        const nlohmann::json::json_pointer at(pointer);
        if (!run.is_object() || !run.contains(at) || !run.at(at).is_number())
            refuse_run(source, std::string("a run directory whose run.json has ") + pointer);
        gammas += run.at(at).get<double>();
    }
    return gammas;
}

petlm::DelayedsWeight weights_of(const petlm::ExportSource& source) {
    return {petlm::run_directories(source.target(), source.coverage()), source.coverage().rules};
}

/// [part of the source][unit] sums of weights.
using ByUnit = std::vector<std::vector<double>>;

/// `in_units`: pairs with a photon in the unit.
void count_pairs(const petlm::ExportSource& pairs, const LineWeights& weights,
                 const std::vector<std::uint32_t>& units, ByUnit& in_units, RunCounts& out) {
    petlm::DelayedsWeight weight = weights_of(pairs);
    double all = 0;
    pairs.for_each_block(
        units.size(),
        [&](const daemon::ListModeReader& reader) {
            for (const gpu::Coincidence& c : reader.coincidences()) {
                const bool prompt = c.kind == gpu::Kind::prompt;
                const double of_kind = prompt ? 1 : -weight.at(c.time);
                all += of_kind;
                const LineWeights::Counted line = weights.of(c.crystal_a, c.crystal_b);
                if (line.weight == 0) continue;
                const double counts = of_kind * line.weight;
                out.counts.parts[line.part].pairs.add(counts);
                const std::uint32_t a = units[c.crystal_a];
                const std::uint32_t b = units[c.crystal_b];
                in_units[line.part][a] += counts;
                if (a != b) in_units[line.part][b] += counts;
                if (!(line.weight > 0)) continue;
                out.pairs_near += of_kind;
                if (!prompt) continue;
                out.photopeak.add(c.energy_a);
                out.photopeak.add(c.energy_b);
            }
        },
        "reading");
    if (out.pairs_near < least_near * all)
        refuse_run(pairs, fmt::format(
                              "at least {:.0f} % of the pairs to pass near the source, found {:.1f} %: check "
                              "--point or --cylinder",
                              100 * least_near, 100 * out.pairs_near / all));
    for (const estimate::PartCounts& part : out.counts.parts)
        out.pairs += part.pairs.sum;
}

/// `gammas`: triples with the gamma in the unit and the pair in others.
void count_triples(const petlm::ExportSource& triples, const LineWeights& weights,
                   const std::vector<std::uint32_t>& units, ByUnit& gammas, RunCounts& out) {
    petlm::DelayedsWeight weight = weights_of(triples);
    const daemon::RecordRules& rules = triples.coverage().rules;
    const double of_random =
        petlm::gammas_of_random_prompt(rules.gammas->after_ticks, rules.coincidence->window_ticks);
    triples.for_each_block(
        units.size(),
        [&](const daemon::ListModeReader& reader) {
            for (const gpu::Triple& t : reader.triples()) {
                // A delayed has the gamma of its first photon only.
                const double of_kind =
                    t.pair.kind == gpu::Kind::prompt ? 1 : -of_random * weight.at(t.pair.time);
                const double of_gamma = t.third == gpu::ThirdPhoton::coincident ? 1 : -1;
                const LineWeights::Counted line = weights.of(t.pair.crystal_a, t.pair.crystal_b);
                const double counts = of_kind * of_gamma * line.weight;
                if (counts == 0) continue;
                const std::uint32_t gamma = units[t.gamma_crystal];
                if (gamma == units[t.pair.crystal_a] || gamma == units[t.pair.crystal_b]) {
                    out.counts.triples_own_units += counts;
                } else {
                    out.counts.parts[line.part].triples.add(counts);
                    gammas[line.part][gamma] += counts;
                    out.triples += counts;
                    if (line.weight > 0) out.triples_near += counts;
                }
            }
        },
        "reading triples of");
    for (const estimate::PartCounts& part : out.counts.parts) {
        if (part.triples.sum >= min_triples) continue;
        refuse_run(
            triples,
            fmt::format("at least {:.0f} triples from each tenth of the cylinder, or from the point; found "
                        "{:.0f}: check where the source is, that it lies within the scanner, and take a "
                        "longer run",
                        min_triples, part.triples.sum));
    }
}

/// The share of all gammas that are in a unit of the pair of their decay, of those found in other units.
double share_in_own_units(const std::vector<double>& in_units, double pairs,
                          const std::vector<double>& gammas) {
    double all = 0;
    double own = 0;
    for (std::size_t unit = 0; unit < gammas.size(); ++unit) {
        const double of_pairs = in_units[unit] / pairs;
        const double of_unit = of_pairs < 1 ? gammas[unit] / (1 - of_pairs) : 0;
        all += of_unit;
        own += of_unit * of_pairs;
    }
    return own / all;
}

}  // namespace

void refuse_run(const petlm::ExportSource& source, const std::string& expected) {
    throw config::Error(source.target().string() + ": expected " + expected);
}

std::vector<std::uint32_t> gamma_crystals(const petlm::ExportSource& triples,
                                          const config::Geometry& geometry) {
    constexpr std::size_t most = 20'000;
    std::vector<std::uint32_t> out;
    triples.for_each_block(
        geometry.crystal_count(),
        [&](const daemon::ListModeReader& reader) {
            for (const gpu::Triple& t : reader.triples())
                if (out.size() < most) out.push_back(t.gamma_crystal);
        },
        "reading gammas of");
    return out;
}

RunCounts count(const petlm::ExportSource& pairs, const petlm::ExportSource& triples,
                const config::Geometry& geometry, const SourceLines& source, const LineWeights& weights) {
    RunCounts out;
    out.counts.seconds = triples.coverage().seconds();
    if (!(out.counts.seconds > 0)) refuse_run(triples, "a run with a known duration");
    out.counts.gammas = gammas_of(triples);
    out.counts.parts.resize(source.parts());
    const std::vector<std::uint32_t> units = petlm::units_of_crystals(geometry);
    ByUnit in_units(source.parts(), std::vector<double>(geometry.unit_count(), 0.0));
    ByUnit gammas = in_units;
    count_pairs(pairs, weights, units, in_units, out);
    count_triples(triples, weights, units, gammas, out);
    for (std::size_t i = 0; i < out.counts.parts.size(); ++i) {
        estimate::PartCounts& part = out.counts.parts[i];
        part.own_units = share_in_own_units(in_units[i], part.pairs.sum, gammas[i]);
    }
    return out;
}

void add_background(const petlm::ExportSource& run, const std::filesystem::path& directory,
                    estimate::CoincidenceCounts& counts) {
    const petlm::ExportSource background(directory, daemon::RecordKind::triples);
    const auto& window = background.coverage().rules.gammas;
    const auto& expected = run.coverage().rules.gammas;
    if (!window || window->lower_keV != expected->lower_keV || window->upper_keV != expected->upper_keV)
        refuse_run(background, fmt::format("gammas of {:g} to {:g} keV, as in {}", expected->lower_keV,
                                           expected->upper_keV, run.target().string()));
    const double seconds = background.coverage().seconds();
    if (!(seconds > 0)) refuse_run(background, "a run with a known duration");
    const double gammas = gammas_of(background);
    counts.background_per_s = gammas / seconds;
    counts.background_error = std::sqrt(gammas) / seconds;
}

}  // namespace petacq::petcal
