#include "daemon/status/health.hpp"

#include <algorithm>
#include <string_view>

namespace petacq::daemon {

const HealthReason* Health::find(std::string_view code, std::uint32_t subject) const {
    const auto found = std::find_if(reasons_.begin(), reasons_.end(), [&](const HealthReason& r) {
        return r.problem.subject == subject && code == r.problem.code;
    });
    return found == reasons_.end() ? nullptr : &*found;
}

const char* Health::state() const {
    if (reasons_.empty()) return "ok";
    const bool failed =
        std::any_of(reasons_.begin(), reasons_.end(), [](const HealthReason& r) { return r.problem.failed; });
    return failed ? "failed" : "degraded";
}

std::vector<HealthChange> Health::observe(std::vector<Problem> problems,
                                          std::chrono::steady_clock::time_point now) {
    std::vector<HealthChange> changes;
    for (Problem& problem : problems) {
        const auto known = std::find_if(reasons_.begin(), reasons_.end(), [&](const HealthReason& r) {
            return r.problem.subject == problem.subject && std::string_view(r.problem.code) == problem.code;
        });
        if (known != reasons_.end()) {
            known->problem = std::move(problem);
            known->seen = now;
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
    return changes;
}

}  // namespace petacq::daemon
