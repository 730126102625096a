#include "tools/petlm/corrections/covered_seconds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "daemon/run/directory.hpp"
#include "tools/petlm/records/origin.hpp"
#include "tools/petlm/records/run.hpp"

namespace petacq::petlm {
namespace {

nlohmann::json rules_of(const daemon::Coverage& coverage) {
    return daemon::to_json(coverage).at("rules");
}

}  // namespace

CoveredSeconds::CoveredSeconds(const std::filesystem::path& file) {
    runs_.push_back({file, std::nullopt, {}});
}

std::unique_ptr<CoveredSeconds> CoveredSeconds::of(const ExportSource& source,
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
    for (const RunPlace& place : places_of_runs(source.target(), coverage)) {
        if (place.directory.empty()) {
            why = "its run " + json_line(place.run_id) +
                  " is neither beside it nor where it was when the file was made";
            return nullptr;
        }
        Run run{place.directory / daemon::seconds_file, std::nullopt, place.times};
        const auto same = std::find_if(out->runs_.begin(), out->runs_.end(),
                                       [&](const Run& other) { return other.file == run.file; });
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
        if (!daemon::same_rules(of_seconds.rules, coverage.rules)) {
            why = "the seconds of the run " + json_line(place.run_id) +
                  " were made by other rules than the records: " + rules_of(of_seconds).dump() + " and " +
                  rules_of(coverage).dump();
            return nullptr;
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

const std::vector<daemon::SecondField>& CoveredSeconds::fields() {
    if (!reader_) open_next();
    return reader_->fields();
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
        const Run& run = runs_[run_];
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

}  // namespace petacq::petlm
