#include "tools/petlm/nema/runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "config/nuclides.hpp"
#include "tools/petlm/records/record_source.hpp"
#include "tools/petlm/records/status.hpp"

namespace petacq::nema {
namespace {

const petlm::ExportSource& checked(const petlm::ExportSource& source) {
    if (source.kind() != daemon::RecordKind::coincidences) {
        throw petlm::UsageError(source.target().string() + " holds " + daemon::name_of(source.kind()) +
                                "; a NEMA test takes coincidences");
    }
    if (source.records() == 0) throw petlm::BadInput(source.target().string() + ": no coincidences");
    return source;
}

/// The activity in run.json, or that of the options.
Activity activity_of(const RunOptions& options, const petlm::ExportSource& source, std::size_t number) {
    Activity activity;
    const nlohmann::json said = source.said_by_operator();
    const auto number_said = [&](const char* key) -> std::optional<double> {
        const auto value = said.is_object() ? said.value(key, nlohmann::json()) : nlohmann::json();
        if (!value.is_number()) return std::nullopt;
        return value.get<double>();
    };
    const auto named = said.is_object() ? said.value("nuclide", nlohmann::json()) : nlohmann::json();
    if (named.is_string()) activity.nuclide = named.get<std::string>();
    if (options.nuclide) activity.nuclide = *options.nuclide;
    const config::Nuclide* const nuclide = config::find_nuclide(activity.nuclide);
    if (options.nuclide && nuclide == nullptr) {
        std::string names;
        for (const auto& known : config::nuclides)
            names += (names.empty() ? "" : ", ") + std::string(known.name);
        throw petlm::UsageError("--nuclide: expected one of " + names + ", found " + *options.nuclide);
    }
    if (nuclide != nullptr) activity.half_life_s = nuclide->half_life_s;
    activity.at_start_MBq = number_said("activity_at_start_MBq");
    if (!options.activity_MBq.empty())
        activity.at_start_MBq =
            options.activity_MBq.size() == 1 ? options.activity_MBq.front() : options.activity_MBq.at(number);
    if (activity.at_start_MBq && !(*activity.at_start_MBq > 0 && std::isfinite(*activity.at_start_MBq))) {
        throw petlm::UsageError(source.target().string() +
                                ": the activity must be above 0 MBq; --activity-mbq gives another one");
    }
    return activity;
}

}  // namespace

double Activity::mean_MBq(double from_s, double to_s) const {
    if (!at_start_MBq) return std::nan("");
    if (!half_life_s) return *at_start_MBq;
    const double decay = std::log(2.0) / *half_life_s;
    const double length = decay * (to_s - from_s);
    return *at_start_MBq * std::exp(-decay * from_s) * (length > 0 ? -std::expm1(-length) / length : 1);
}

double branching_of(const Activity& activity) {
    constexpr double of_standard = 0.9060;
    const config::Nuclide* const nuclide = config::find_nuclide(activity.nuclide);
    return nuclide == nullptr || nuclide->name == "Na-22" ? of_standard : nuclide->branching_ratio;
}

Run::Run(const RunOptions& options, std::size_t number)
    : source_(options.runs.at(number)),
      scanner_(checked(source_).scanner(options.scanner)),
      activity_(activity_of(options, source_, number)) {}

std::string Run::name() const {
    const auto path = source_.target().lexically_normal();
    return (path.has_filename() ? path : path.parent_path()).filename().string();
}

double Run::seconds_of(const petlm::Interval& interval) const {
    return static_cast<double>(interval.to - interval.from) * scanner_.tick_ps * 1e-12;
}

double Run::mean_MBq(const petlm::Interval& interval) const {
    const std::uint64_t start = whole().from;
    return activity_.mean_MBq(seconds_of({start, interval.from}), seconds_of({start, interval.to}));
}

std::string Run::sentence() const {
    std::string text = fmt::format("{}: {} records in {:.6g} s", source_.target().string(), source_.records(),
                                   seconds_of(whole()));
    if (activity_.at_start_MBq) {
        text += fmt::format(
            ", {:.5g} MBq at the start, {}", *activity_.at_start_MBq,
            activity_.half_life_s ? "decaying as " + activity_.nuclide : std::string("taken as constant"));
    }
    return text + '.';
}

std::vector<petlm::Interval> Run::frames(double seconds) const {
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

std::vector<Run::AtPosition> Run::positions(unsigned channel) const {
    const auto target = source_.target();
    const auto directory = std::filesystem::is_directory(target) ? target : target.parent_path();
    std::vector<AtPosition> found;
    petlm::RecordSource tags(directory, daemon::RecordKind::tags);
    while (tags.next()) {
        for (const gpu::Tag& tag : tags.reader().tags()) {
            if (tag.channel != channel || tag.kind != static_cast<std::uint8_t>(gpu::TagKind::position))
                continue;
            const double mm = 1e-3 * static_cast<std::int32_t>(tag.value);
            if (!found.empty() && found.back().bed_mm == mm) continue;
            if (!found.empty()) found.back().interval.to = tag.time;
            found.push_back({{tag.time, whole().to}, mm});
        }
    }
    if (found.empty()) {
        throw petlm::BadInput(directory.string() + ": no position tags of channel " +
                              std::to_string(channel));
    }
    std::erase_if(found, [](const AtPosition& at) { return at.interval.to <= at.interval.from; });
    return found;
}

void Run::for_each(const std::vector<petlm::Interval>& intervals, const SliceBins& bins,
                   const std::function<void(std::size_t, const Sinograms&)>& use) const {
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
                if (pair.kind == gpu::Kind::prompt && pair.time >= intervals[current].from)
                    sinograms.add(bins, pair);
            }
        },
        "sorting");
    while (current < intervals.size())
        finish();
}

std::vector<std::unique_ptr<Run>> runs_of(const RunOptions& options) {
    if (options.activity_MBq.size() > 1 && options.activity_MBq.size() != options.runs.size()) {
        throw petlm::UsageError(
            fmt::format("--activity-mbq: expected 1 value or {}, one for each run, found {}",
                        options.runs.size(), options.activity_MBq.size()));
    }
    std::vector<std::unique_ptr<Run>> runs;
    for (std::size_t i = 0; i < options.runs.size(); ++i) {
        runs.push_back(std::make_unique<Run>(options, i));
        const auto description = [](const Run& run) { return config::to_json(run.scanner()); };
        if (description(*runs.front()) != description(*runs.back())) {
            throw petlm::UsageError(options.runs[i].string() + ": its scanner is not that of " +
                                    options.runs.front().string());
        }
    }
    return runs;
}

void check_output(const std::filesystem::path& directory, bool force) {
    if (force || !std::filesystem::exists(directory / "results.json")) return;
    throw petlm::UsageError((directory / "results.json").string() +
                            " exists; name another directory with --output or use --force");
}

}  // namespace petacq::nema
