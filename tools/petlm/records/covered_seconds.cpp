#include "tools/petlm/records/covered_seconds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "daemon/run/directory.hpp"
#include "daemon/seconds/live_sums.hpp"
#include "tools/petlm/records/origin.hpp"
#include "tools/petlm/records/run.hpp"

namespace petacq::petlm {

CoveredSeconds::CoveredSeconds(const std::filesystem::path& file) {
    runs_.push_back({file, std::nullopt, {}});
}

std::unique_ptr<CoveredSeconds> CoveredSeconds::of(const std::filesystem::path& target,
                                                   const daemon::Coverage& coverage, std::string& why) {
    if (!coverage.intervals) {
        why = "it is not known when its records were taken";
        return nullptr;
    }
    if (coverage.origin.runs.empty()) {
        why = "it is not known from which run its records come";
        return nullptr;
    }
    std::unique_ptr<CoveredSeconds> out(new CoveredSeconds);
    out->covered_ = coverage.intervals;
    if (coverage.open_ticks && coverage.intervals->ticks() > 0) {
        out->open_ =
            static_cast<double>(*coverage.open_ticks) / static_cast<double>(coverage.intervals->ticks());
    }
    daemon::Intervals before;
    for (const RunPlace& place : places_of_runs(target, coverage)) {
        if (place.directory.empty()) {
            why = "its run " + json_line(place.run_id) +
                  " is neither beside it nor where it was when the file was made";
            return nullptr;
        }
        CoveredRun run{place.directory / daemon::seconds_file, std::nullopt, place.times};
        const auto same = std::find_if(out->runs_.begin(), out->runs_.end(),
                                       [&](const CoveredRun& other) { return other.file == run.file; });
        if (same != out->runs_.end()) {
            same->told = same->told.unite(place.times);
            continue;
        }
        if (!std::filesystem::exists(run.file)) {
            why = "the run " + json_line(place.run_id) + " has no " + daemon::seconds_file;
            return nullptr;
        }
        const daemon::SecondsReader seconds(run.file);
        std::string ignored;
        const daemon::Coverage of_seconds =
            daemon::coverage_of(seconds.reader().description(), run_json(place.directory, ignored), true);
        if (const std::string difference = difference_from_run(of_seconds.rules, coverage.rules);
            !difference.empty() && out->other_rules_.empty()) {
            out->other_rules_ = "the seconds of the run " + json_line(place.run_id) +
                                " were made by other rules than the records: " + difference;
        }
        run.recorded = of_seconds.intervals;
        if (run.recorded) {
            const daemon::Intervals told = run.told.intersect(*run.recorded);
            if (!before.intersect(told).intersect(*coverage.intervals).empty()) {
                why = "several of its runs cover the same time";
                return nullptr;
            }
            before = before.unite(told);
        }
        out->runs_.push_back(std::move(run));
    }
    return out;
}

bool CoveredSeconds::open_next() {
    if (next_run_ == runs_.size()) return false;
    run_ = next_run_++;
    reader_ = std::make_unique<daemon::SecondsReader>(runs_[run_].file);
    if (covered_ && !covered_->empty()) {
        // The times of a block are the starts of its seconds, which may lie before the interval.
        const gpu::TickRange span = covered_->span();
        const double tick_ps = reader_->reader().description().value("tick_ps", 0.0);
        const auto two_seconds = static_cast<std::uint64_t>(tick_ps > 0 ? 2e12 / tick_ps : 0);
        reader_->reader().select(span.start - std::min(span.start, two_seconds), span.end);
    }
    return true;
}

std::vector<daemon::SecondField> CoveredSeconds::fields() const {
    std::vector<daemon::SecondField> all;
    for (const CoveredRun& run : runs_) {
        const daemon::SecondsReader seconds(run.file);
        for (const daemon::SecondField& field : seconds.fields()) {
            const auto same = std::find_if(all.begin(), all.end(), [&](const daemon::SecondField& other) {
                return other.name == field.name;
            });
            if (same == all.end()) {
                all.push_back(field);
            } else if (same->type != field.type || same->count != field.count) {
                throw std::invalid_argument(fmt::format(
                    "the field {} has {} numbers of type {}, in {} {} of type {}", field.name, field.count,
                    name_of(field.type), runs_.front().file.string(), same->count, name_of(same->type)));
            }
        }
    }
    return all;
}

bool CoveredSeconds::next() {
    for (;;) {
        if (!reader_ && !open_next()) return false;
        if (!reader_->next()) {
            const auto& condition = reader_->reader().condition();
            if (condition.state != daemon::FileState::complete) {
                throw std::invalid_argument(
                    "it is not complete; petlm recover makes a sound file of its whole blocks");
            }
            if (next_run_ == runs_.size()) return false;
            reader_.reset();
            continue;
        }
        const gpu::TickRange second{reader_->start(), reader_->start() + reader_->length()};
        const CoveredRun& run = runs_[run_];
        if (!covered_) return true;
        const daemon::Intervals recorded =
            run.recorded ? run.recorded->intersect(second) : daemon::Intervals(second);
        const std::uint64_t inside = recorded.intersect(*covered_).intersect(run.told).ticks();
        if (inside == 0) continue;
        told_ += inside;
        share_ = open_ * static_cast<double>(inside) / static_cast<double>(recorded.ticks());
        return true;
    }
}

double CoveredSeconds::known() const {
    if (!covered_ || covered_->empty()) return 1;
    return static_cast<double>(told_) / static_cast<double>(covered_->ticks());
}

std::optional<double> singles_in(const std::filesystem::path& target, const daemon::Coverage& coverage) {
    constexpr double min_known = 0.8;  // of the time
    std::string ignored;
    try {
        const auto seconds = CoveredSeconds::of(target, coverage, ignored);
        if (!seconds || !seconds->other_rules().empty()) return std::nullopt;
        double singles = 0;
        while (seconds->next()) {
            const daemon::SecondField* const decided = seconds->reader().find("decided");
            if (decided == nullptr) return std::nullopt;
            singles += seconds->share() * seconds->reader().values(*decided).number();
        }
        if (seconds->known() < min_known) return std::nullopt;
        return singles / seconds->known();
    } catch (const std::invalid_argument&) {
        return std::nullopt;  // as in live_share()
    } catch (const daemon::NotListMode&) {
        return std::nullopt;
    }
}

std::optional<double> live_share(const std::filesystem::path& target, const daemon::Coverage& coverage) {
    if (coverage.loss.live) return coverage.loss.live;
    std::string ignored;
    std::vector<daemon::LiveSums> runs;
    std::vector<double> weights;
    try {
        const auto seconds = CoveredSeconds::of(target, coverage, ignored);
        while (seconds && seconds->next()) {
            const daemon::SecondsReader& reader = seconds->reader();
            const daemon::SecondField* const live = reader.find("module_live");
            const daemon::SecondField* const singles = reader.find("module_singles");
            if (live == nullptr || singles == nullptr || singles->count != live->count) return std::nullopt;
            const double weight = seconds->share() * static_cast<double>(reader.length());
            std::vector<double> shares(live->count);
            for (std::size_t module = 0; module < shares.size(); ++module)
                shares[module] = reader.values(*live).number(module);
            runs.resize(seconds->run() + 1);
            weights.resize(runs.size());
            weights.back() += weight;
            runs.back().add(weight, shares,
                            [&](std::size_t module) { return reader.values(*singles).number(module) > 0; });
        }
    } catch (const std::invalid_argument&) {
        return std::nullopt;  // seconds that are not whole: whoever uses them says so
    } catch (const daemon::NotListMode&) {
        return std::nullopt;
    }
    double all = 0;
    double arrived = 0;
    for (std::size_t run = 0; run < runs.size(); ++run) {
        if (!(weights[run] > 0)) continue;
        const auto mean = runs[run].mean();
        if (!mean) return std::nullopt;
        all += weights[run];
        arrived += weights[run] * *mean;
    }
    return all > 0 ? std::optional(arrived / all) : std::nullopt;
}

std::string data_that_lack(const std::filesystem::path& target, const daemon::Coverage& coverage) {
    const auto live = live_share(target, coverage);
    if (!live) return "which share of the data of the boards arrived is not known";
    if (*live >= 1) return "";
    return fmt::format("{:.3g} % of the data of the boards did not arrive", 100 * (1 - *live));
}

}  // namespace petacq::petlm
