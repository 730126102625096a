#include "daemon/status/lasting_reasons.hpp"

#include <algorithm>
#include <string_view>

namespace petacq::daemon {

const HealthReason* LastingReasons::find(std::string_view code, std::uint32_t subject) const {
    const auto found = places_.find({subject, code});
    return found == places_.end() ? nullptr : &reasons_[found->second];
}

void LastingReasons::index() {
    places_.clear();
    for (std::size_t i = 0; i < reasons_.size(); ++i)
        places_[{reasons_[i].problem.subject, reasons_[i].problem.code}] = i;
}

const char* LastingReasons::state() const {
    if (reasons_.empty()) return "ok";
    const bool failed =
        std::any_of(reasons_.begin(), reasons_.end(), [](const HealthReason& r) { return r.problem.failed; });
    return failed ? "failed" : "degraded";
}

std::vector<HealthChange> LastingReasons::observe(std::vector<Problem> problems,
                                                  std::chrono::steady_clock::time_point now) {
    std::vector<HealthChange> changes;
    for (Problem& problem : problems) {
        const auto [place, added] = places_.try_emplace({problem.subject, problem.code}, reasons_.size());
        if (!added) {
            reasons_[place->second].problem = std::move(problem);
            reasons_[place->second].seen = now;
        } else {
            reasons_.push_back({std::move(problem), now, now});
            changes.push_back({true, reasons_.back()});
        }
    }
    const auto gone = std::stable_partition(reasons_.begin(), reasons_.end(), [&](const HealthReason& r) {
        return r.seen == now || now - r.seen < r.problem.lasts;
    });
    for (auto r = gone; r != reasons_.end(); ++r)
        changes.push_back({false, std::move(*r)});
    reasons_.erase(gone, reasons_.end());
    index();
    return changes;
}

}  // namespace petacq::daemon
