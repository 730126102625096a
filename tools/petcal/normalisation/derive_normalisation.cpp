#include "tools/petcal/normalisation/derive_normalisation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "config/calibration.hpp"
#include "config/configuration.hpp"
#include "config/error.hpp"
#include "daemon/host/progress_line.hpp"
#include "daemon/listmode/reader.hpp"
#include "daemon/settings.hpp"
#include "tools/petcal/normalisation/report_normalisation.hpp"
#include "tools/petcal/results.hpp"
#include "tools/petcal/text.hpp"
#include "tools/petcal/units.hpp"
#include "tools/petlm/corrections/run_randoms.hpp"
#include "tools/petlm/records/record_source.hpp"
#include "tools/petlm/records/run.hpp"

namespace petacq::petcal {

namespace {

using nlohmann::json;

constexpr double least_share = 0.25;  // of the prompts, on lines through the source
constexpr double most_randoms = 0.5;  // of the prompts used

/// run.json of a run that was taken with this scanner.
json run_of(const config::Scanner& scanner, const std::filesystem::path& directory) {
    std::string why;
    json run = petlm::run_json(directory, why);
    if (run.is_null()) throw config::Error(why);
    const json ours = to_json(scanner);
    for (const char* key : {"geometry", "dimensions", "tick_ps"}) {
        const json taken = run.value(json::json_pointer(std::string("/scanner/") + key), json());
        if (taken == ours.at(key)) continue;
        throw config::Error(directory.string() + ": taken with another scanner: expected " + key + " " +
                            ours.at(key).dump() + ", found " + taken.dump());
    }
    return run;
}

gpu::CoincidenceRules rules_of(const json& run, const std::filesystem::path& directory) {
    try {
        return daemon::coincidence_rules(config::configuration_from_json(run.at("configuration"), "/"));
    } catch (const json::exception&) {
        throw config::Error((directory / "run.json").string() + ": expected a configuration, found none");
    }
}

derive::CylinderScan scan_of(const config::Scanner& scanner, const gpu::CoincidenceRules& rules,
                             const DeriveNormalisationOptions& o) {
    const config::Dimensions& d = scanner.dimensions;
    for (const double value : o.cylinder) {
        if (!std::isfinite(value)) throw config::Error("--cylinder: expected finite numbers");
    }
    derive::CylinderScan scan;
    scan.centre_mm = {o.cylinder.at(0), o.cylinder.at(1), o.cylinder.at(2)};
    scan.radius_mm = o.cylinder.at(3);
    scan.length_mm = o.cylinder.at(4);
    if (!(scan.radius_mm > 0) || !(scan.length_mm > 0))
        throw config::Error("--cylinder: expected a radius and a length of more than 0 mm");
    const double reach = std::hypot(scan.centre_mm[0], scan.centre_mm[1]) + scan.radius_mm;
    if (reach >= d.ring_radius_mm)
        throw config::Error(
            fmt::format("--cylinder: reaches {:g} mm from the axis; expected less than the "
                        "radius of the ring, {:g} mm",
                        reach, d.ring_radius_mm));
    if (!(o.attenuation_per_cm >= 0 && o.attenuation_per_cm <= 1))
        throw config::Error("--attenuation-per-cm: expected 0 to 1");
    scan.attenuation_per_mm = o.attenuation_per_cm / 10;
    scan.depth_mm = o.depth_mm.value_or(d.crystal_length_mm / 2);
    if (!(scan.depth_mm >= 0 && scan.depth_mm <= d.crystal_length_mm / 2))
        throw config::Error(
            fmt::format("--depth-mm: expected 0 to half of a crystal, {:g} mm", d.crystal_length_mm / 2));
    // Near the edge, scattered pairs and a source that is not quite in its place weigh most.
    const double edge = std::max(0.1 * scan.radius_mm, d.crystal_pitch_y_mm);
    scan.edge_mm = std::min({edge, scan.radius_mm / 2, scan.length_mm / 4});
    scan.min_module_difference = rules.min_module_difference;
    scan.max_ring_difference = rules.max_ring_difference;
    return scan;
}

/// Counts the prompts on lines that count; calls `delayed` with the delayeds on such lines.
void read_records(const DeriveNormalisationOptions& options, const derive::FanModel& model,
                  derive::LineCounts& counts, const std::function<void(const gpu::Coincidence&)>& delayed,
                  DerivedNormalisation& out) {
    const std::uint32_t crystals = model.geometry().crystal_count();
    petlm::RecordSource source(options.run, daemon::RecordKind::coincidences);
    daemon::ProgressLine progress("reading " + options.run.filename().string(), source.total_bytes());
    while (source.next()) {
        progress.show(source.bytes_done());
        for (const gpu::Coincidence& c : source.reader().coincidences()) {
            if (std::max(c.crystal_a, c.crystal_b) >= crystals)
                throw config::Error(options.run.string() + ": a pair of crystals " +
                                    std::to_string(c.crystal_a) + " and " + std::to_string(c.crystal_b) +
                                    "; expected numbers below " + std::to_string(crystals));
            if (c.crystal_a == c.crystal_b) continue;
            const bool prompt = c.kind == gpu::Kind::prompt;
            if (prompt) ++out.prompts;
            if (!model.counts(c.crystal_a, c.crystal_b)) continue;
            if (prompt) {
                ++out.used;
                counts.add(c.crystal_a, c.crystal_b, 1, 1);
            } else {
                delayed(c);
            }
        }
    }
}

/// How many randoms each delayed stands for; 0: run.json does not tell.
double weight_of_delayeds(const json& run) {
    const auto number = [&run](const char* pointer) {
        const json value = run.value(json::json_pointer(pointer), json());
        return value.is_number() ? value.get<double>() : 0;
    };
    const double delayeds = number("/ledger/pairs/delayeds_found");
    const double randoms = number("/expected_randoms/from_delayeds");
    return delayeds > 0 && randoms > 0 ? randoms / delayeds : 0;
}

void subtract_expected(const petlm::RunRandoms& randoms, const derive::FanModel& model,
                       derive::LineCounts& counts, DerivedNormalisation& out) {
    // Randoms vary slowly from pair to pair: a share of the pairs tells enough.
    constexpr double most_pairs = 2e7;
    const auto one_in = static_cast<std::uint32_t>(std::ceil(model.most_pairs() / most_pairs));
    model.for_each_pair(one_in, [&](std::uint32_t a, std::uint32_t b) {
        const double expected = one_in * randoms.sum(a, b);
        counts.add(a, b, -expected, 0);
        out.randoms += expected;
    });
}

derive::LineCounts read_counts(const config::Scanner& scanner, const DeriveNormalisationOptions& options,
                               const json& run, const derive::FanModel& model, DerivedNormalisation& out) {
    std::string why;
    const auto expected = petlm::RunRandoms::of(petlm::ExportSource(options.run), scanner, why);
    const double weight = expected ? 0 : weight_of_delayeds(run);
    if (!expected && weight == 0)
        throw config::Error(options.run.string() +
                            ": nothing tells its randoms: expected seconds.plm or delayeds with their weight "
                            "in run.json, but " +
                            why);
    derive::LineCounts counts(model);
    const auto delayed = [&](const gpu::Coincidence& c) {
        if (expected) return;
        counts.add(c.crystal_a, c.crystal_b, -weight, weight * weight);
        out.randoms += weight;
    };
    read_records(options, model, counts, delayed, out);
    if (out.prompts == 0 || static_cast<double>(out.used) < least_share * static_cast<double>(out.prompts))
        throw config::Error(fmt::format(
            "{}: {} of {} prompts lie on lines through the source; expected at least {:.0f} %: check "
            "--cylinder",
            options.run.string(), out.used, out.prompts, 100 * least_share));
    if (expected) subtract_expected(*expected, model, counts, out);
    out.randoms_from = expected ? "the singles of each second"
                                : fmt::format("delayeds of weight {:.3g}, as {}", weight, why);
    if (out.randoms > most_randoms * static_cast<double>(out.used))
        throw config::Error(
            fmt::format("{}: {:.0f} of {} prompts are random; expected less than {:.0f} %: "
                        "measure with less activity",
                        options.run.string(), out.randoms, out.used, 100 * most_randoms));
    counts.finish();
    return counts;
}

normalisation::Normalisation normalisation_of(const derive::NormalisationFit& fit) {
    normalisation::Normalisation n;
    n.efficiency.assign(fit.crystals.efficiency.begin(), fit.crystals.efficiency.end());
    for (const std::uint32_t crystal : fit.crystals.dead)
        n.efficiency[crystal] = 0;
    n.transaxial.assign(fit.factors.transaxial.begin(), fit.factors.transaxial.end());
    n.axial.assign(fit.factors.axial.begin(), fit.factors.axial.end());
    return n;
}

std::map<std::string, std::string> origin_of(const config::Scanner& scanner, const json& run,
                                             const DeriveNormalisationOptions& o,
                                             const derive::CylinderScan& scan) {
    auto origin = made_by("petcal derive normalisation");
    const auto text = [&run](const char* key) {
        const json value = run.value(key, json());
        return value.is_string() ? value.get<std::string>() : "unknown";
    };
    origin["scanner"] = scanner.name;
    origin["run"] = text("run_id");
    origin["run_start_utc"] = text("start_utc");
    origin["run_json_sha256"] = config::sha256_of_file(o.run / "run.json");
    origin["calibration_sha256"] = text("calibration_sha256");
    origin["source"] = fmt::format("cylinder {:g} mm", fmt::join(o.cylinder, ","));
    origin["attenuation_per_cm"] = fmt::format("{:g}", o.attenuation_per_cm);
    origin["depth_mm"] = fmt::format("{:g}", scan.depth_mm);
    return origin;
}

}  // namespace

DerivedNormalisation derive_normalisation(const config::Scanner& scanner,
                                          const DeriveNormalisationOptions& options) {
    const json run = run_of(scanner, options.run);
    const derive::CylinderScan scan = scan_of(scanner, rules_of(run, options.run), options);
    const derive::FanModel model(scanner, scan);
    DerivedNormalisation out;
    const auto counts = [&] {
        try {
            return read_counts(scanner, options, run, model, out);
        } catch (const daemon::NotListMode& e) {
            throw config::Error(e.what());
        }
    }();
    derive::NormalisationFitOptions how;
    how.threads = std::max(1U, std::thread::hardware_concurrency());
    constexpr std::uint64_t usual_passes = 40;
    daemon::ProgressLine progress("fitting", usual_passes, daemon::ProgressUnit::steps);
    std::uint64_t passes = 0;
    how.progress = [&] { progress.show(std::min(passes++, usual_passes)); };
    out.fit = derive::fit_normalisation(model, counts, how);
    out.normalisation = normalisation_of(out.fit);
    out.dead = find_dead(scanner.geometry, out.normalisation.efficiency);
    out.normalisation.origin = origin_of(scanner, run, options, scan);
    if (!options.report.empty()) write_normalisation_report(options.report, scanner, out);
    save(options.output, scanner.geometry, out.normalisation);
    return out;
}

std::string figures_text(const config::Scanner& scanner, const DerivedNormalisation& d) {
    const auto& fit = d.fit;
    std::vector<double> errors;
    double squares = 0;
    for (std::size_t i = 0; i < d.normalisation.efficiency.size(); ++i) {
        if (!std::isfinite(fit.crystals.error[i]) || d.normalisation.efficiency[i] == 0) continue;
        errors.push_back(fit.crystals.error[i]);
        squares += std::pow(d.normalisation.efficiency[i] - 1, 2);
    }
    std::sort(errors.begin(), errors.end());
    const double live = static_cast<double>(std::max<std::size_t>(1, errors.size()));
    const auto prompts = static_cast<double>(d.prompts);
    std::string text;
    text += fmt::format("prompts             {}, {:.1f} % on lines through the source\n", d.prompts,
                        100 * static_cast<double>(d.used) / prompts);
    text += fmt::format("randoms             {:.2f} % of these, from {}\n",
                        100 * d.randoms / static_cast<double>(d.used), d.randoms_from);
    text += fmt::format("counts              {:.0f} per crystal (median, net)\n", fit.crystals.median_counts);
    text +=
        fmt::format("efficiencies        spread {:.2f} %, error {:.2f} % (median, by counts)\n",
                    100 * std::sqrt(squares / live), errors.empty() ? 0 : 100 * errors[errors.size() / 2]);
    text += fmt::format("transaxial factors  {} of {} classes unseen, error {:.2f} % (median)\n",
                        fit.transaxial.unseen, fit.transaxial.all, 100 * fit.error_transaxial);
    text += fmt::format("axial factors       {} of {} pairs of rings unseen, error {:.2f} % (median)\n",
                        fit.axial.unseen, fit.axial.all, 100 * fit.error_axial);
    text +=
        fmt::format("fit                 chi-square {:.2f} by pair of units, {:.2f} % rms beyond counts\n",
                    fit.chi_square, 100 * fit.excess);
    text += fmt::format("one-sided           {:+.1f} % in x, {:+.1f} % in y, {:+.1f} % in z\n",
                        100 * fit.one_sided[0], 100 * fit.one_sided[1], 100 * fit.one_sided[2]);
    constexpr double noticeable = 0.1;
    if (std::any_of(std::begin(fit.one_sided), std::end(fit.one_sided),
                    [](double value) { return std::abs(value) > noticeable; }))
        text += "                    check the place of the source\n";
    text += fmt::format("dead units          {}\n", d.dead.units.size());
    for (const std::uint32_t unit : d.dead.units)
        text += "  " + unit_name(scanner.geometry, unit) + "\n";
    text += fmt::format("other dead crystals {}\n", d.dead.crystals.size()) + first_lines(d.dead.crystals);
    return text + fmt::format("unseen crystals     {}\n", fit.crystals.unseen.size());
}

}  // namespace petacq::petcal
