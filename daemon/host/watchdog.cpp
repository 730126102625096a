#include "daemon/host/watchdog.hpp"

#include <utility>

#include "daemon/host/logging.hpp"

namespace petacq::daemon {

Watchdog::Watchdog(boost::asio::io_context& io, std::chrono::microseconds interval,
                   std::function<std::vector<StageState>()> stages, std::function<void()> feed)
    : timer_(io), pause_(interval / 2), stages_(std::move(stages)), feed_(std::move(feed)) {
    check();
}

void Watchdog::check() {
    std::set<std::string> stalled;
    for (const StageState& stage : stages_()) {
        if (stage.activity != Activity::stalled) continue;
        stalled.insert(stage.name);
        if (!stalled_.contains(stage.name)) {
            log_error("stage {} has stalled with work waiting for {:.1f} s: the watchdog is not fed",
                      stage.name, stage.stands_s);
        }
    }
    for (const std::string& name : stalled_) {
        if (!stalled.contains(name)) log_info("stage {} works again", name);
    }
    stalled_ = std::move(stalled);
    if (stalled_.empty()) feed_();
    timer_.expires_after(pause_);
    timer_.async_wait([this](boost::system::error_code error) {
        if (!error) check();
    });
}

}  // namespace petacq::daemon
