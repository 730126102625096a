#include "tools/petcal/steps/derive_normalisation.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "config/base/error.hpp"
#include "config/calibration.hpp"
#include "config/configuration.hpp"
#include "config/scanner/meaning_of_records.hpp"
#include "daemon/backend/pipeline_options.hpp"
#include "daemon/listmode/reader.hpp"
#include "daemon/run/directory.hpp"
#include "daemon/system/progress_line.hpp"
#include "daemon/system/utc.hpp"
#include "gpu/rules/pair_rule.hpp"
#include "tools/petcal/estimate/pairs/arrangement_model.hpp"
#include "tools/petcal/estimate/pairs/fan_model.hpp"
#include "tools/petcal/estimate/pairs/scanner_size.hpp"
#include "tools/petcal/report/reports.hpp"
#include "tools/petcal/results/results.hpp"
#include "tools/petcal/steps/refusals.hpp"
#include "tools/petcal/steps/source_check.hpp"
#include "tools/petcal/steps/source_scatter.hpp"
#include "tools/petlm/reconstruction/corrections/energy_window.hpp"
#include "tools/petlm/reconstruction/corrections/fits.hpp"
#include "tools/petlm/reconstruction/corrections/line_factors.hpp"
#include "tools/petlm/reconstruction/corrections/run_randoms.hpp"
#include "tools/petlm/records/source.hpp"

namespace petacq::petcal {

namespace {

using nlohmann::json;

constexpr double min_share = 0.25;   // of the prompts, on lines through the source
constexpr double max_randoms = 0.5;  // of the prompts used

/// Throws unless the run was taken with this scanner.
void check_scanner(const config::Scanner& scanner, const petlm::ExportSource& source) {
    if (!source.run().is_object() || !source.run().contains("scanner")) {
        throw config::Error(source.target().string() +
                            ": expected a run.json beside it that says with which scanner it was taken");
    }
    const json meaning = config::meaning_of_records(scanner);
    const json of_run = config::meaning_of_records(source.scanner(std::nullopt));
    for (const auto& [key, ours] : meaning.items()) {
        const json taken = of_run.value(key, json());
        if (taken == ours) continue;
        const std::string what = scanner.is_ring()
                                     ? ": expected " + key + " " + ours.dump() + ", found " + taken.dump()
                                     : ": " + key + " is not that of its description";
        throw config::Error(source.target().string() + ": taken with another scanner" + what);
    }
}

gpu::CoincidenceRules rules_of(const petlm::ExportSource& source) {
    const daemon::RecordRules& rules = source.coverage().rules;
    if (rules.coincidence && rules.energy) return daemon::coincidence_rules(*rules.coincidence);
    throw config::Error(source.target().string() +
                        ": expected the rules by which its records were made, found none; a run has them in "
                        "its configuration");
}

estimate::CylinderScan scan_of(const config::Scanner& scanner, const DeriveNormalisationOptions& o) {
    const estimate::ScannerSize size = estimate::size_of(scanner);
    for (const double value : o.cylinder) {
        if (!std::isfinite(value)) throw config::Error("--cylinder: expected finite numbers");
    }
    estimate::CylinderScan scan;
    scan.centre_mm = {o.cylinder.at(0), o.cylinder.at(1), o.cylinder.at(2)};
    check_on_axis(scanner, scan.centre_mm[0], scan.centre_mm[1], "--cylinder");
    scan.radius_mm = o.cylinder.at(3);
    scan.length_mm = o.cylinder.at(4);
    if (!(scan.radius_mm > 0) || !(scan.length_mm > 0))
        throw config::Error("--cylinder: expected a radius and a length of more than 0 mm");
    const double reach = std::hypot(scan.centre_mm[0], scan.centre_mm[1]) + scan.radius_mm;
    if (reach >= size.inner_radius_mm)
        throw config::Error(fmt::format(
            "--cylinder: reaches {:g} mm from the axis; expected less than {}, {:g} mm", reach,
            scanner.is_ring() ? "the radius of the ring" : "the nearest crystals", size.inner_radius_mm));
    if (!(o.attenuation_per_cm >= 0 && o.attenuation_per_cm <= 1))
        throw config::Error("--attenuation-per-cm: expected 0 to 1");
    scan.attenuation_per_mm = o.attenuation_per_cm / 10;
    scan.depth = config::DepthOfInteraction::of(scanner, o.depth_mm);
    if (o.depth_mm > size.length_mm / 2)
        throw config::Error(
            fmt::format("--depth-mm: expected 0 to half of a crystal, {:g} mm", size.length_mm / 2));
    // Near the edge, scattered pairs and a source that is not quite in its place weigh most.
    const double edge = std::max(0.1 * scan.radius_mm, size.pitch_y_mm);
    scan.edge_mm = std::min({edge, scan.radius_mm / 2, scan.length_mm / 4});
    return scan;
}

/// The share of the true pairs of two crystals that was recorded, by dead time and loss.
double live_of(const petlm::RunRandoms* of_run, std::uint32_t a, std::uint32_t b) {
    const double live = of_run != nullptr ? of_run->live(a, b) : 1;
    return live > 0 ? live : 1;
}

/// Counts the prompts on lines that count, each for those that dead time and loss took; calls `delayed` with
/// the delayeds on such lines.
void read_records(const petlm::ExportSource& source, const estimate::ScanModel& model,
                  const petlm::RunRandoms* of_run, estimate::LineCounts& counts,
                  const std::function<void(const gpu::Coincidence&)>& delayed, DerivedNormalisation& out,
                  std::vector<estimate::Line>& lines, corrections::PhotopeakWidth& photopeak) {
    source.for_each_block(
        model.geometry().crystal_count(),
        [&](const daemon::ListModeReader& reader) {
            for (const gpu::Coincidence& c : reader.coincidences()) {
                if (c.crystal_a == c.crystal_b) continue;
                const bool prompt = c.kind == gpu::Kind::prompt;
                if (prompt) {
                    ++out.prompts;
                    photopeak.add(c.energy_a);
                    photopeak.add(c.energy_b);
                }
                if (prompt && lines.size() < lines_to_check) lines.emplace_back(c.crystal_a, c.crystal_b);
                if (!model.counts(c.crystal_a, c.crystal_b)) continue;
                if (prompt) {
                    ++out.used;
                    const double stands_for = 1 / live_of(of_run, c.crystal_a, c.crystal_b);
                    counts.add(c.crystal_a, c.crystal_b, stands_for, stands_for * stands_for);
                } else {
                    delayed(c);
                }
            }
        },
        "reading");
}

void subtract_expected(const petlm::RunRandoms& randoms, const estimate::ScanModel& model,
                       estimate::LineCounts& counts, DerivedNormalisation& out) {
    // Randoms vary slowly from pair to pair: a share of the pairs tells enough.
    constexpr double max_pairs = 2e7;
    const auto one_in = static_cast<std::uint32_t>(std::ceil(model.max_pairs() / max_pairs));
    model.for_each_pair(one_in, [&](std::uint32_t a, std::uint32_t b) {
        const double expected = one_in * randoms.sum(a, b);
        counts.add(a, b, -expected / live_of(&randoms, a, b), 0);
        out.randoms += expected;
    });
}

/// A cylinder that lies 0.4 mm off makes efficiencies one-sided by a few per cent. Off the axis, the depth of
/// interaction makes its place less certain.
SourceCheck check_of(const std::string& run, const estimate::CylinderScan& scan) {
    const auto& [x, y, z] = scan.centre_mm;
    const double half = scan.length_mm / 2;
    return {run,
            {{x, y, z - half}, {x, y, z + half}, scan.radius_mm},
            scan.depth.typical_mm(),
            0.25 + 0.08 * std::hypot(x, y),
            "--cylinder"};
}

/// Prompts less their randoms; not finished.
estimate::LineCounts read_counts(const config::Scanner& scanner, const petlm::ExportSource& source,
                                 const estimate::ScanModel& model, corrections::PhotopeakWidth& photopeak,
                                 DerivedNormalisation& out) {
    const std::string name = source.target().string();
    std::string why;
    const auto expected = petlm::RunRandoms::of(source, scanner, why);
    const double weight = expected ? 0 : petlm::mean_weight_of_delayeds(source).value_or(0);
    if (!expected && weight == 0)
        throw config::Error(name +
                            ": nothing tells its randoms: expected seconds.plm or delayeds with their weight "
                            "in run.json, but " +
                            why);
    estimate::LineCounts counts(model);
    const auto delayed = [&](const gpu::Coincidence& c) {
        if (expected) return;
        counts.add(c.crystal_a, c.crystal_b, -weight, weight * weight);
        out.randoms += weight;
    };
    std::vector<estimate::Line> lines;
    read_records(source, model, expected.get(), counts, delayed, out, lines, photopeak);
    if (out.prompts == 0)
        throw config::Error(fmt::format("{}: expected prompts of the cylinder, found none in {:.6g} s", name,
                                        source.coverage().seconds()));
    const SourceCheck check = check_of(name, model.scan());
    check_source(scanner, lines, check);
    if (static_cast<double>(out.used) < min_share * static_cast<double>(out.prompts))
        throw config::Error(fmt::format(
            "{}: {} of {} prompts lie on lines through the source; expected at least {:.0f} %: check "
            "--cylinder",
            name, out.used, out.prompts, 100 * min_share));
    if (expected) subtract_expected(*expected, model, counts, out);
    out.randoms_from = expected ? "the singles of each second"
                                : fmt::format("delayeds of weight {:.3g}, as {}", weight, why);
    out.loss = expected ? sentence_of(expected->loss()) : "Loss: not corrected, as " + why + ".";
    if (out.randoms > max_randoms * static_cast<double>(out.used))
        throw config::Error(
            fmt::format("{}: {:.0f} of {} prompts are random; expected less than {:.0f} %: "
                        "measure with less activity",
                        name, out.randoms, out.used, 100 * max_randoms));
    const std::vector<double> even(scanner.geometry.crystal_count(), 1);
    check_rings(scanner, counts.crystals.net, model.sums(even, model.even_factors(), 1).fans, check);
    return counts;
}

normalisation::Normalisation normalisation_of(
    const estimate::NormalisationFit& fit, const std::shared_ptr<const normalisation::PairClasses>& classes,
    bool is_ring) {
    normalisation::Normalisation n;
    n.classes = classes;
    n.efficiency.assign(fit.crystals.efficiency.begin(), fit.crystals.efficiency.end());
    for (const std::uint32_t crystal : fit.crystals.dead)
        n.efficiency[crystal] = 0;
    if (!is_ring && !classes) return n;
    n.transaxial.assign(fit.factors.transaxial.begin(), fit.factors.transaxial.end());
    n.axial.assign(fit.factors.axial.begin(), fit.factors.axial.end());
    return n;
}

std::map<std::string, std::string> origin_of(const config::Scanner& scanner,
                                             const petlm::ExportSource& source,
                                             const DeriveNormalisationOptions& o,
                                             const estimate::CylinderScan& scan) {
    auto origin = made_by("petcal derive normalisation");
    origin.merge(corrections::facts_for_normalisation(source.coverage(), scanner, scan.depth));
    const daemon::Coverage& coverage = source.coverage();
    origin["scanner"] = scanner.name;
    origin["run"] = coverage.origin.runs.empty() ? "unknown" : coverage.origin.runs.front().run_id;
    origin["run_start_utc"] = coverage.anchor ? daemon::utc_text(coverage.anchor->utc) : "unknown";
    if (std::filesystem::exists(o.run / daemon::run_file))
        origin["run_json_sha256"] = config::sha256_of_file(o.run / daemon::run_file);
    origin["source"] = fmt::format("cylinder {:g} mm", fmt::join(o.cylinder, ","));
    origin["attenuation_per_cm"] = fmt::format("{:g}", o.attenuation_per_cm);
    origin["corrected_for"] = o.attenuation_per_cm > 0 ? "attenuation and scatter" : "nothing";
    return origin;
}

struct ModelOfScan {
    std::unique_ptr<estimate::ScanModel> model;
    std::shared_ptr<const normalisation::PairClasses> classes = {};  ///< of the long form
    std::string about = {};                                          ///< the same, in words
};

ModelOfScan model_of(const config::Scanner& scanner, const estimate::CylinderScan& scan,
                     const gpu::CoincidenceRules& rules) {
    if (scanner.is_ring()) return {std::make_unique<estimate::FanModel>(scanner, scan)};
    const auto rule = gpu::PairRule::of(scanner.geometry, rules);
    const auto lines = std::make_shared<const corrections::LineFactors>(scanner, scan.depth);
    auto model = std::make_unique<estimate::ArrangementModel>(
        scanner, scan, [rule](std::uint32_t a, std::uint32_t b) { return rule.good(a, b); },
        [lines](std::uint32_t a, std::uint32_t b) { return lines->solid_angle(a, b); });
    ModelOfScan out{nullptr, model->classes(), "none: the scanner has too many modules, or crystals in them"};
    if (out.classes)
        out.about = fmt::format("{} symmetries of the scanner, {} classes of pairs of modules",
                                model->symmetries(), out.classes->class_a.size());
    if (model->share() > 1)
        out.about += fmt::format("; expected coincidences by one in {} pairs", model->share());
    out.model = std::move(model);
    return out;
}

/// By all counts. Scatter hardly changes how the crystals of a place differ. 0: dead.
std::vector<double> efficiency_with_scatter(const estimate::ScanModel& model, estimate::LineCounts counts,
                                            estimate::NormalisationFitOptions how) {
    counts.finish();
    how.rounds = 1;
    estimate::Efficiencies found = estimate::fit_normalisation(model, counts, how).crystals;
    for (const std::uint32_t crystal : found.dead)
        found.efficiency[crystal] = 0;
    return std::move(found.efficiency);
}

DerivedNormalisation derive_from(const config::Scanner& scanner, const DeriveNormalisationOptions& options) {
    estimate::CylinderScan scan = scan_of(scanner, options);
    const petlm::ExportSource source(options.run);
    check_scanner(scanner, source);
    const gpu::CoincidenceRules rules = rules_of(source);
    scan.min_module_difference = rules.min_module_difference;
    scan.max_ring_difference = rules.max_ring_difference;
    const ModelOfScan of_scan = model_of(scanner, scan, rules);
    const estimate::ScanModel& model = *of_scan.model;
    DerivedNormalisation out;
    out.unknown = source.coverage().unknown;
    out.geometric = of_scan.about;
    corrections::PhotopeakWidth photopeak;
    estimate::LineCounts counts = read_counts(scanner, source, model, photopeak, out);
    estimate::NormalisationFitOptions how;
    how.threads = std::max(1U, std::thread::hardware_concurrency());
    if (scan.attenuation_per_mm > 0) {
        const auto window = photopeak.window(source.coverage().rules.energy);
        const std::vector<double> efficiency = efficiency_with_scatter(model, counts, how);
        net::WorkerPool pool(how.threads);
        out.scattered = subtract_scatter(scanner, model, {rules, window, efficiency}, counts, pool);
    }
    counts.finish();
    constexpr std::uint64_t usual_passes = 40;
    daemon::ProgressLine progress("fitting", usual_passes, daemon::ProgressUnit::steps);
    std::uint64_t passes = 0;
    how.progress = [&] { progress.show(std::min(passes++, usual_passes)); };
    out.fit = estimate::fit_normalisation(model, counts, how);
    out.normalisation = normalisation_of(out.fit, of_scan.classes, scanner.is_ring());
    out.dead = find_dead(scanner.geometry, out.normalisation.efficiency);
    out.normalisation.origin = origin_of(scanner, source, options, scan);
    out.normalisation.origin["efficiency_error"] = fmt::format("{:.3g}", efficiency_error(out));
    if (!options.report.empty()) write_normalisation_report(options.report, scanner, out);
    save(options.output, scanner.geometry, out.normalisation);
    return out;
}

}  // namespace

DerivedNormalisation derive_normalisation(const config::Scanner& scanner,
                                          const DeriveNormalisationOptions& options) {
    return refusing_bad_files([&] { return derive_from(scanner, options); });
}

}  // namespace petacq::petcal
