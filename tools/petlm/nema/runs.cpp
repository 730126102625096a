#include "tools/petlm/nema/runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "tools/petlm/base/status.hpp"
#include "tools/petlm/export/export.hpp"
#include "tools/petlm/export/recorded_time.hpp"
#include "tools/petlm/reconstruction/corrections/bed.hpp"
#include "tools/petlm/reconstruction/corrections/found_decays.hpp"
#include "tools/petlm/reconstruction/corrections/module_losses.hpp"
#include "tools/petlm/records/origin.hpp"
#include "tools/petlm/records/record_source.hpp"

namespace petacq::nema {
namespace {

const petlm::ExportSource& checked(const petlm::ExportSource& source) {
    if (source.kind() != daemon::RecordKind::coincidences) {
        throw petlm::UsageError(source.target().string() + " holds " + daemon::name_of(source.kind()) +
                                "; a NEMA test takes coincidences");
    }
    return source;
}

/// The stated activity, or that of the options.
RunActivity activity_of(const RunOptions& options, const petlm::ExportSource& source, std::size_t number) {
    RunActivity activity;
    if (const auto nuclide = corrections::nuclide_of(source.coverage(), options)) {
        activity.nuclide = nuclide->nuclide;
        activity.half_life_s = nuclide->half_life_s;
        activity.branching_ratio = nuclide->branching_ratio;
    }
    activity.at_start_MBq = source.coverage().activity_MBq_at(source.coverage().reference_ticks());
    if (!options.activity_MBq.empty())
        activity.at_start_MBq =
            options.activity_MBq.size() == 1 ? options.activity_MBq.front() : options.activity_MBq.at(number);
    if (activity.at_start_MBq && !(*activity.at_start_MBq > 0 && std::isfinite(*activity.at_start_MBq))) {
        throw petlm::UsageError(source.target().string() +
                                ": the activity must be above 0 MBq; --activity-mbq gives another one");
    }
    return activity;
}

/// Throws petlm::UsageError unless both can be compared.
void check_alike(const NemaRun& first, const NemaRun& other) {
    const auto refuse = [&](const std::string& what) {
        throw petlm::UsageError(other.source().target().string() + ": " + what + " that of " +
                                first.source().target().string());
    };
    if (config::to_json(first.scanner()) != config::to_json(other.scanner())) refuse("its scanner is not");
    const auto rules = [](const NemaRun& run) { return daemon::to_json(run.coverage()).at("rules"); };
    const auto known = [](const NemaRun& run) {
        return run.coverage().rules.coincidence && run.coverage().rules.energy;
    };
    if (known(first) && known(other) && rules(first) != rules(other)) {
        throw petlm::UsageError(
            fmt::format("{}: its records were made by other rules, {}, than those of {}, {}",
                        other.source().target().string(), rules(other).dump(),
                        first.source().target().string(), rules(first).dump()));
    }
}

}  // namespace

double RunActivity::mean_MBq(const daemon::Coverage& coverage) const {
    if (!at_start_MBq) return std::nan("");
    return half_life_s ? *at_start_MBq / coverage.decay_factor(*half_life_s) : *at_start_MBq;
}

double branching_of(const RunActivity& activity) {
    constexpr double of_standard = 0.9060;
    return activity.nuclide.empty() || activity.nuclide == "Na-22" ? of_standard : activity.branching_ratio;
}

NemaRun::NemaRun(const RunOptions& options, std::size_t number)
    : source_(options.runs.at(number)),
      coverage_(petlm::completed_coverage(checked(source_))),
      scanner_(source_.scanner(options.scanner)),
      activity_(activity_of(options, source_, number)) {
    if (scanner_.rotation) angle_.emplace(source_.target(), coverage_, *scanner_.rotation);
}

std::uint32_t NemaRun::rows_at(std::uint64_t time, const SliceBins& bins) const {
    return angle_ ? bins.lines().rows_turned(angle_->at(time)) : 0;
}

std::vector<double> NemaRun::shares_of_rows(const SliceBins& bins) const {
    if (!angle_) return {1};
    std::string why;
    const auto losses = petlm::PairLosses::of(source_, coverage_, scanner_, why);
    const petlm::PartsOfTurn rows{bins.lines().rows_of_turn(), std::numbers::pi / bins.lines().angles() / 4,
                                  [&](std::uint64_t time) { return rows_at(time, bins); }};
    return petlm::found_decays(*angle_, rows, coverage_, activity_.half_life_s.value_or(0),
                               losses ? losses->live_times() : std::vector<petlm::LiveTime>());
}

daemon::Coverage NemaRun::part(const petlm::Interval& interval) const {
    return daemon::part_of(coverage_, gpu::TickRange{interval.from, interval.to});
}

petlm::Interval NemaRun::whole() const {
    const gpu::TickRange span = coverage_.span();
    if (source_.records() == 0) return {span.start, span.end};
    return {std::min(span.start, source_.first_time()), std::max(span.end, source_.last_time() + 1)};
}

std::string NemaRun::name() const {
    const auto path = source_.target().lexically_normal();
    return (path.has_filename() ? path : path.parent_path()).filename().string();
}

double NemaRun::seconds_of(const petlm::Interval& interval) const {
    return part(interval).seconds();
}

double NemaRun::mean_MBq(const petlm::Interval& interval) const {
    return activity_.mean_MBq(part(interval));
}

std::string NemaRun::sentence() const {
    std::string text = fmt::format("{}: {} records in {:.6g} s", source_.target().string(), source_.records(),
                                   coverage_.seconds());
    if (const double from = coverage_.since_reference_s(coverage_.span().start); from != 0)
        text += fmt::format(", from {:.6g} s after the start on", from);
    if (activity_.at_start_MBq) {
        text += fmt::format(
            ", {:.5g} MBq at the start, {}", *activity_.at_start_MBq,
            activity_.half_life_s ? "decaying as " + activity_.nuclide : std::string("taken as constant"));
    }
    text += '.';
    return text;
}

std::vector<petlm::Interval> NemaRun::frames(double seconds) const {
    const petlm::Interval all = whole();
    const double length = seconds / (scanner_.tick_ps * 1e-12);
    const double count = std::floor(static_cast<double>(all.to - all.from) / length + 0.5);
    constexpr double most = 10'000;
    if (!(count >= 1 && count <= most)) {
        throw petlm::UsageError(fmt::format("--frame-s: {} s cut {} into {:.6g} frames; expected 1 to {:.0f}",
                                            seconds, name(), count, most));
    }
    std::vector<petlm::Interval> frames;
    for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(count); ++i) {
        const auto at = [&](std::uint64_t n) {
            return std::min(
                all.to, all.from + static_cast<std::uint64_t>(std::llround(static_cast<double>(n) * length)));
        };
        frames.push_back({at(i), at(i + 1)});
    }
    return frames;
}

std::vector<NemaRun::AtPosition> NemaRun::positions(unsigned channel) const {
    std::vector<gpu::Tag> moves;
    for (const petlm::RunPlace& place : petlm::places_of_runs(source_.target(), coverage_)) {
        if (place.directory.empty())
            throw petlm::BadInput(source_.target().string() + ": its tags are not known; " +
                                  place.not_found());
        petlm::RecordSource tags(place.directory, daemon::RecordKind::tags);
        while (tags.next()) {
            for (const gpu::Tag& tag : tags.reader().tags())
                if (tag.channel == channel && tag.kind == static_cast<std::uint8_t>(gpu::TagKind::position))
                    moves.push_back(tag);
        }
    }
    std::stable_sort(moves.begin(), moves.end(),
                     [](const gpu::Tag& a, const gpu::Tag& b) { return a.time < b.time; });
    std::vector<AtPosition> found;
    for (const gpu::Tag& tag : moves) {
        const double mm = 1e-3 * static_cast<std::int32_t>(tag.value);
        if (!found.empty() && found.back().bed_mm == mm) continue;
        if (!found.empty()) found.back().interval.to = tag.time;
        found.push_back({{tag.time, std::max(tag.time, whole().to)}, mm});
    }
    if (found.empty()) {
        throw petlm::BadInput(source_.target().string() + ": no position tags of channel " +
                              std::to_string(channel) + " in its run");
    }
    std::erase_if(found, [&](const AtPosition& at) { return !(seconds_of(at.interval) > 0); });
    return found;
}

void NemaRun::for_each(const std::vector<petlm::Interval>& intervals, const SliceBins& bins,
                       const std::function<void(std::size_t, const Sinograms&)>& use,
                       const std::function<void(const gpu::Coincidence&)>& delayed) const {
    std::size_t current = 0;
    Sinograms sinograms(bins);
    const auto finish = [&] {
        use(current++, sinograms);
        sinograms = Sinograms(bins);
    };
    source_.for_each_block(
        scanner_.geometry.crystal_count(),
        [&](const daemon::ListModeReader& reader) {
            for (const gpu::Coincidence& pair : reader.coincidences()) {
                while (current < intervals.size() && pair.time >= intervals[current].to)
                    finish();
                if (current == intervals.size()) return;
                if (pair.time < intervals[current].from) continue;
                if (pair.kind == gpu::Kind::prompt) {
                    sinograms.add(bins, pair, rows_at(pair.time, bins));
                } else if (delayed) {
                    delayed(pair);
                }
            }
        },
        "sorting");
    while (current < intervals.size())
        finish();
}

std::vector<std::unique_ptr<NemaRun>> runs_of(const RunOptions& options, bool bed_may_move) {
    if (options.activity_MBq.size() > 1 && options.activity_MBq.size() != options.runs.size()) {
        throw petlm::UsageError(
            fmt::format("--activity-mbq: expected 1 value or {}, one for each run, found {}",
                        options.runs.size(), options.activity_MBq.size()));
    }
    std::vector<std::unique_ptr<NemaRun>> runs;
    for (std::size_t i = 0; i < options.runs.size(); ++i) {
        runs.push_back(std::make_unique<NemaRun>(options, i));
        check_alike(*runs.front(), *runs.back());
        if (bed_may_move) continue;
        if (const auto bed =
                corrections::bed_movement(runs.back()->source(), runs.back()->scanner().rotation);
            bed.moved()) {
            throw petlm::BadInput(options.runs[i].string() + ": " + bed.text() +
                                  "; expected a bed that stood still: petlm cut takes a part of the run, and "
                                  "petlm nema sensitivity --by-position every position");
        }
    }
    return runs;
}

std::unique_ptr<NemaRun> background_of(const std::filesystem::path& target, const RunOptions& options,
                                       const NemaRun& run) {
    RunOptions only;
    only.runs = {target};
    only.scanner = options.scanner;
    auto background = std::make_unique<NemaRun>(only, 0);
    check_alike(run, *background);
    return background;
}

void add_warnings(const NemaRun& run, std::vector<std::string>& warnings) {
    for (const std::string& what : run.source().coverage().unknown)
        warnings.push_back(fmt::format("{}: not known: {}.", run.name(), what));
    const std::string bed = corrections::bed_movement(run.source(), run.scanner().rotation).unknown_text();
    if (!bed.empty()) warnings.push_back(fmt::format("{}: {}", run.name(), bed));
}

}  // namespace petacq::nema
