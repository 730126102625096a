#include "daemon/system/watchdog.hpp"

#include <algorithm>
#include <condition_variable>
#include <utility>

#include "daemon/system/logging.hpp"
#include "net/base/mutex.hpp"
#include "net/base/thread.hpp"

namespace petacq::daemon {

Watchdog::Watchdog(std::chrono::microseconds interval, std::function<std::vector<StageState>()> stages,
                   std::function<void()> feed)
    : stages_(std::move(stages)), feed_(std::move(feed)) {
    const auto pause = std::min<std::chrono::microseconds>(interval / 2, std::chrono::seconds(1));
    thread_ = net::start_thread("watchdog", [this, pause](const std::stop_token& stopping) {
        net::Mutex mutex;  // only to sleep until the end
        std::condition_variable_any never;
        net::MutexLock lock(mutex);
        do {
            check();
        } while (!never.wait_for(lock, stopping, pause, [&] { return stopping.stop_requested(); }));
    });
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
}

}  // namespace petacq::daemon
