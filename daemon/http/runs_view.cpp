#include "daemon/http/runs_view.hpp"

#include <utility>

namespace petacq::daemon {

namespace {

constexpr std::size_t max_runs = 50;
constexpr std::chrono::seconds fresh{3};

}  // namespace

bool RunsView::get(Done done) {
    const auto now = std::chrono::steady_clock::now();
    if (latest_ && now - taken_ < fresh) {
        done(*latest_);
        return true;
    }
    if (!waiting_.empty() && now - asked_ >= time_limit_) return false;
    waiting_.push_back(std::move(done));
    if (waiting_.size() > 1) return true;
    asked_ = now;
    RunsRequest request;
    request.limit = max_runs;
    // The reply may outlive the server.
    ask_(std::move(request), Reply([gate = gate_, self = weak_from_this()](Answer answer) {
             gate->post([self, answer = std::move(answer)] {
                 if (const auto view = self.lock()) view->answered(answer);
             });
         }));
    return true;
}

void RunsView::answered(const Answer& answer) {
    latest_ = answer;
    taken_ = std::chrono::steady_clock::now();
    for (const Done& done : std::exchange(waiting_, {}))
        done(answer);
}

}  // namespace petacq::daemon
