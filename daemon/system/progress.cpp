#include "daemon/system/progress.hpp"

#include <algorithm>
#include <array>

namespace petacq::daemon {

namespace {

constexpr double busy_from = 0.01;

double seconds(std::chrono::steady_clock::duration d) {
    return std::chrono::duration<double>(d).count();
}

}  // namespace

const char* name_of(Activity activity) {
    constexpr std::array names{"busy", "idle", "stalled"};
    return names.at(static_cast<std::size_t>(activity));
}

void ProgressWatch::observe(const std::vector<StageProgress>& stages,
                            std::chrono::steady_clock::time_point now) {
    std::vector<Known> known;
    std::vector<StageState> states;
    for (const StageProgress& stage : stages) {
        const auto before = std::find_if(known_.begin(), known_.end(),
                                         [&](const Known& k) { return k.latest.name == stage.name; });
        StageState state;
        state.name = stage.name;
        auto moved = now;
        if (before != known_.end()) {
            if (stage.waiting && before->latest.waiting && stage.work == before->latest.work)
                moved = before->moved;
            const double interval = seconds(stage.taken - before->latest.taken);
            if (interval > 0) {
                state.utilisation = std::clamp((stage.busy_s - before->latest.busy_s) / interval, 0.0, 1.0);
            }
        }
        state.stands_s = seconds(now - moved);
        state.activity = now - moved >= stalled_after     ? Activity::stalled
                         : state.utilisation >= busy_from ? Activity::busy
                                                          : Activity::idle;
        known.push_back({stage, moved});
        states.push_back(std::move(state));
    }
    known_ = std::move(known);
    states_ = std::move(states);
}

}  // namespace petacq::daemon
