#include "daemon/status/stages.hpp"

#include <chrono>
#include <cstdint>
#include <string>

namespace petacq::daemon {

void Stages::show(const Run* open, const Run* closing) {
    const net::MutexLock lock(mutex_);
    open_ = open;
    closing_ = closing;
}

std::vector<StageProgress> Stages::read() const {
    std::vector<StageProgress> stages;
    for (std::size_t i = 0; i < receivers_.size(); ++i) {
        const net::ReceiverCounters& c = receivers_[i]->counters();
        const auto polls = c.polls.value();
        const auto read_at = std::chrono::nanoseconds(static_cast<std::int64_t>(c.cpu_read_ns.value()));
        // A receiver or acquisition without a turn has not been started: it has nothing to do.
        stages.push_back({"receiver " + std::to_string(i), polls, polls != 0,
                          static_cast<double>(c.cpu_ns.value()) * 1e-9,
                          std::chrono::steady_clock::time_point(read_at)});
    }
    const AcquisitionProgress& p = acquisition_.progress();
    const auto latest = acquisition_.snapshot();
    const AcquisitionSnapshot& snapshot = *latest;
    const auto collected = p.collected.value();
    stages.push_back({"acquisition", p.turns.value(), p.turns.value() != 0, snapshot.busy_s, snapshot.taken});
    stages.push_back(
        {"pipeline", collected, p.submitted.value() > collected, snapshot.pipeline_busy_s, snapshot.taken});
    // Never stalled: the acquisition waits for it, and is.
    stages.push_back({"second sums", 0, false, snapshot.pace.busy_s, snapshot.taken});
    const net::MutexLock lock(mutex_);
    if (closing_ != nullptr) {
        closing_->add_progress(stages);
        closing_->add_end_progress(stages);
    } else if (open_ != nullptr) {
        open_->add_progress(stages);
    } else {
        stages.push_back({"writer", 0, false, 0, std::chrono::steady_clock::now()});
    }
    return stages;
}

}  // namespace petacq::daemon
