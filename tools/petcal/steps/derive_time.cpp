#include "tools/petcal/steps/derive_time.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "config/base/answer.hpp"
#include "config/base/constants.hpp"
#include "config/base/error.hpp"
#include "config/calibration.hpp"
#include "config/moments.hpp"
#include "config/scanner/arrangement.hpp"
#include "config/scanner/depth_of_interaction.hpp"
#include "daemon/listmode/reader.hpp"
#include "daemon/system/progress_line.hpp"
#include "tools/petcal/estimate/pairs/known_source.hpp"
#include "tools/petcal/estimate/pairs/scanner_size.hpp"
#include "tools/petcal/report/reports.hpp"
#include "tools/petcal/results/results.hpp"
#include "tools/petcal/steps/source_check.hpp"
#include "tools/petlm/records/record_source.hpp"
#include "tools/petlm/records/run.hpp"

namespace petacq::petcal {

namespace {

constexpr std::uint64_t enough_pairs = 2000;  // per crystal: offsets to a few ps

/// Throws unless the run was taken with this calibration of this scanner.
void check_run(const DeriveTimeOptions& options, const config::Calibration& calibration) {
    std::string why;
    const nlohmann::json run = petlm::run_json(options.run, why);
    if (run.is_null()) throw config::Error(why);
    const nlohmann::json sha256 = run.value("calibration_sha256", nlohmann::json());
    const std::string taken_with = sha256.is_string() ? sha256.get<std::string>() : "unknown";
    if (taken_with != calibration.sha256)
        throw config::Error(options.run.string() + ": taken with the calibration of SHA-256 '" + taken_with +
                            "'; expected that of " + options.calibration.string() + ", '" +
                            calibration.sha256 + "'");
}

estimate::KnownSource source_of(const config::Scanner& scanner, const DeriveTimeOptions& o) {
    if (o.cylinder.empty() == o.point.empty()) throw config::Error("expected --cylinder or --point");
    if (!o.point.empty()) {
        const config::Vector3 place{o.point.at(0), o.point.at(1), o.point.at(2)};
        check_on_axis(scanner, place[0], place[1], "--point");
        return {place, place, estimate::size_of(scanner).pitch_y_mm};
    }
    const double x = o.cylinder.at(0);
    const double y = o.cylinder.at(1);
    check_on_axis(scanner, x, y, "--cylinder");
    const double z = o.cylinder.at(2);
    const double radius = o.cylinder.at(3);
    const double length = o.cylinder.at(4);
    if (!(radius > 0) || !(length > 0))
        throw config::Error("--cylinder: expected a radius and a length of more than 0 mm");
    return {{x, y, z - length / 2}, {x, y, z + length / 2}, radius};
}

/// [crystal] The mean of those of its kind: crystals of one type of module and layer.
std::vector<double> usual_counts(const config::Scanner& scanner, const std::vector<double>& counts) {
    if (scanner.is_ring()) return std::vector<double>(counts.size(), 1);
    std::map<const config::CrystalLayer*, config::Moments> kinds;
    for (std::uint32_t i = 0; i < counts.size(); ++i)
        kinds[&scanner.arrangement->layer_of(i)].add(counts[i]);
    std::vector<double> usual;
    for (std::uint32_t i = 0; i < counts.size(); ++i)
        usual.push_back(kinds.at(&scanner.arrangement->layer_of(i)).mean());
    return usual;
}

/// Times need the place of the source to a millimetre or two, 7 ps each. How deep in the crystals photons are
/// detected is known in the mean alone: off the axis, it moves the place.
void check_scan(const config::Scanner& scanner, const DeriveTimeOptions& options,
                const estimate::KnownSource& known, const std::vector<estimate::Line>& lines) {
    const double from_axis = std::hypot((known.from[0] + known.to[0]) / 2, (known.from[1] + known.to[1]) / 2);
    const double depth = config::DepthOfInteraction::of(scanner, {}).typical_mm();
    const SourceCheck check{options.run.string(), known, depth,
                            1 + from_axis * depth / estimate::size_of(scanner).inner_radius_mm,
                            options.point.empty() ? "--cylinder" : "--point"};
    check_source(scanner, lines, check);
    std::vector<double> counts(scanner.geometry.crystal_count());
    for (const auto& [a, b] : lines) {
        counts[a] += 1;
        counts[b] += 1;
    }
    check_rings(scanner, counts, usual_counts(scanner, counts), check);
}

std::vector<estimate::TimeDifference> read_differences(const config::Scanner& scanner,
                                                       const DeriveTimeOptions& options, DerivedTimes& out) {
    const std::uint32_t crystals = scanner.geometry.crystal_count();
    const config::LineGeometry geometry(scanner, config::DepthOfInteraction::of(scanner, {}));
    const estimate::KnownSource known = source_of(scanner, options);
    std::vector<estimate::Line> lines;
    const double ticks_per_mm = 1 / (config::light_mm_per_ps * scanner.tick_ps);
    const std::uint64_t most = enough_pairs * crystals / 2;
    std::vector<estimate::TimeDifference> differences;
    std::optional<petlm::RecordSource> opened;
    try {
        opened.emplace(options.run, daemon::RecordKind::coincidences);
    } catch (const daemon::NotListMode& e) {
        throw config::Error(e.what());
    }
    petlm::RecordSource& source = *opened;
    daemon::ProgressLine progress("prompts", source.total_bytes());
    while (out.prompts < most && source.next()) {
        progress.show(source.bytes_done());
        for (const gpu::Coincidence& c : source.reader().coincidences()) {
            if (c.kind != gpu::Kind::prompt || c.crystal_a == c.crystal_b) continue;
            if (std::max(c.crystal_a, c.crystal_b) >= crystals)
                throw config::Error(options.run.string() + ": a pair of crystals " +
                                    std::to_string(c.crystal_a) + " and " + std::to_string(c.crystal_b) +
                                    "; expected numbers below " + std::to_string(crystals));
            ++out.prompts;
            if (lines.size() < lines_to_check) lines.emplace_back(c.crystal_a, c.crystal_b);
            const config::LineEnds ends = geometry.ends(c.crystal_a, c.crystal_b);
            const auto path = path_difference_mm(known, ends.a, ends.b);
            if (!path) {
                ++out.missed;
                continue;
            }
            if (const auto chord = estimate::chord_of(known, ends.a, ends.b)) {
                // Even activity between its ends; the time difference is twice the distance from the middle.
                const double ps = (chord->end_mm - chord->begin_mm) / config::light_mm_per_ps;
                out.source_ps2 += ps * ps / 3;
            }
            differences.push_back(
                {c.crystal_a, c.crystal_b, static_cast<float>(c.dt - *path * ticks_per_mm)});
        }
    }
    if (!differences.empty()) out.source_ps2 /= static_cast<double>(differences.size());
    check_scan(scanner, options, known, lines);
    return differences;
}

}  // namespace

DerivedTimes derive_times(const config::Scanner& scanner, const DeriveTimeOptions& options) {
    config::Calibration calibration = config::load_calibration(options.calibration, scanner.geometry);
    check_run(options, calibration);
    DerivedTimes out;
    out.tick_ps = scanner.tick_ps;
    const std::uint32_t crystals = scanner.geometry.crystal_count();
    const auto differences = read_differences(scanner, options, out);
    estimate::TimeOffsetOptions solving;
    solving.neighbours = estimate::neighbours_in_units(scanner);
    daemon::ProgressLine progress("offsets", solving.max_steps, daemon::ProgressUnit::steps);
    solving.on_step = [&](std::uint32_t step) { progress.show(step); };
    out.offsets = estimate::time_offsets(crystals, differences, solving);
    for (double& error : out.offsets.error_ticks)  // those written are whole ticks
        error = std::hypot(error, std::sqrt(1.0 / 12));
    constexpr std::size_t enough_for_pictures = 200'000;
    const std::size_t every = 1 + differences.size() / enough_for_pictures;
    for (std::size_t i = 0; i < differences.size(); i += every) {
        const estimate::TimeDifference& d = differences[i];
        if (!std::isfinite(out.offsets.error_ticks[d.a]) || !std::isfinite(out.offsets.error_ticks[d.b]))
            continue;
        out.before_ps.push_back(scanner.tick_ps * d.ticks);
        out.after_ps.push_back(scanner.tick_ps * (d.ticks + out.offsets.ticks[d.b] - out.offsets.ticks[d.a]));
    }
    calibration.time_offset.resize(crystals);
    for (std::uint32_t i = 0; i < crystals; ++i) {
        using Offset = std::numeric_limits<std::int32_t>;
        const double sum = calibration.time_offset[i] + std::round(out.offsets.ticks[i]);
        calibration.time_offset[i] =
            static_cast<std::int32_t>(std::clamp<double>(sum, Offset::min(), Offset::max()));
    }
    calibration.origin = made_by("petcal derive time");
    calibration.origin["calibration_sha256"] = calibration.sha256;
    if (out.fwhm_ps() > 0) calibration.origin["coincidence_fwhm_ps"] = fmt::format("{:.1f}", out.fwhm_ps());
    calibration.origin["run_json_sha256"] = config::sha256_of_file(options.run / "run.json");
    config::save_calibration(options.output, scanner.geometry, calibration);
    return out;
}

config::Written derive_time(const config::Scanner& scanner, const DeriveTimeOptions& options) {
    const DerivedTimes times = derive_times(scanner, options);
    if (!options.report.empty()) write_time_report(options.report, scanner, times);
    const estimate::TimeOffsets& found = times.offsets;
    double squares = 0;
    double errors = 0;
    double known = 0;
    for (std::size_t i = 0; i < found.ticks.size(); ++i) {
        if (!std::isfinite(found.error_ticks[i])) continue;
        squares += found.ticks[i] * found.ticks[i];
        errors += found.error_ticks[i] * found.error_ticks[i];
        known += 1;
    }
    const double changes_ps = std::sqrt(squares / known) * times.tick_ps;
    const double stated_ps = std::sqrt(errors / known) * times.tick_ps;
    const double sigma_ps = found.sigma_ticks * times.tick_ps;
    config::Written written;
    written.facts = {
        {"prompts", times.prompts},
        {"prompts_missing_source", times.missed},
        {"changes_ps", changes_ps},
        {"stated_error_ps", stated_ps},
        {"sigma_ps", sigma_ps},
        {"in_peak_percent", 100 * found.in_peak},
        {"coincidence_fwhm_ps", times.fwhm_ps() > 0 ? nlohmann::json(times.fwhm_ps()) : nlohmann::json()},
        {"in_neighbour_percent", 100 * found.beside},
        {"unrelated_groups", found.groups},
        {"undetermined", found.undetermined},
        {"messages", nlohmann::json::array()}};
    std::string& text = written.text;
    const auto say = [&](const std::string& sentence) {
        text += fmt::format("                  {}\n", sentence);
        written.facts["messages"].push_back(sentence);
    };
    text = fmt::format("prompts           {}, of which {} miss the source\n", times.prompts, times.missed);
    text += fmt::format("changes           {:.1f} ps rms\n", changes_ps);
    text += fmt::format("stated error      {:.1f} ps rms\n", stated_ps);
    if (const std::string advice = advice_on_prompts(times); !advice.empty()) say(advice);
    text += fmt::format("sigma of a pair   {:.1f} ps, {:.1f} % of the pairs in the peak\n", sigma_ps,
                        100 * found.in_peak);
    if (times.fwhm_ps() > 0) {
        text += fmt::format("resolution        {:.1f} ps FWHM, without the extent of the source\n",
                            times.fwhm_ps());
    } else {
        text += "resolution        hidden by the extent of the source\n";
    }
    text += fmt::format("in a neighbour    {:.1f} % of the hits\n", 100 * found.beside);
    text += fmt::format("unrelated groups  {}\n", found.groups);
    if (found.groups > 1)
        say("nothing is known of the offsets between them: " + groups_text(scanner.geometry, found));
    text += fmt::format("undetermined      {} crystals", found.undetermined.size());
    constexpr std::size_t shown = 20;
    for (std::size_t i = 0; i < std::min(shown, found.undetermined.size()); ++i)
        text += fmt::format("{} {}", i == 0 ? ":" : ",", found.undetermined[i]);
    text += found.undetermined.size() > shown ? ", ...\n" : "\n";
    return written;
}

}  // namespace petacq::petcal
