#include "daemon/service/calibration_switch.hpp"

#include <boost/asio/post.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "daemon/service/settings.hpp"
#include "daemon/system/logging.hpp"

namespace petacq::daemon {

void CalibrationSwitch::offer(std::optional<NewCalibration> next) {
    next_ = std::move(next);
}

std::optional<CalibrationInUse> CalibrationSwitch::waiting() const {
    if (!next_) return std::nullopt;
    return in_use_now(*next_->content, next_->file);
}

void CalibrationSwitch::take(std::function<void(const std::string& failure)> done) {
    done_.push_back(std::move(done));
    if (done_.size() == 1) advance("");
}

/// `failure`: of the calibration before.
void CalibrationSwitch::advance(const std::string& failure) {
    if (!next_) {
        for (const auto& done : std::exchange(done_, {}))
            done(failure);
        return;
    }
    const NewCalibration calibration = *std::exchange(next_, std::nullopt);
    acquisition_.set_calibration(calibration.content, largest_offset(*calibration.content),
                                 [this, calibration](const std::string& why) {
                                     boost::asio::post(io_,
                                                       [this, calibration, why] { taken(calibration, why); });
                                 });
}

void CalibrationSwitch::taken(const NewCalibration& calibration, const std::string& failure) {
    const CalibrationInUse now = in_use_now(*calibration.content, calibration.file);
    if (!failure.empty()) {
        log_error("calibration {}: cannot be taken, {} stays in use: {}", described(now),
                  described(setting_.calibration), failure);
        return advance(failure);
    }
    log_info("calibration {} is in use now, was {}", described(now), described(setting_.calibration));
    config::Configuration changed = *setting_.configuration;
    nlohmann::json document = *changed.document;
    document["calibration"] = calibration.configured;
    changed.document = std::make_shared<const nlohmann::json>(std::move(document));
    changed.calibration = calibration.file;
    setting_.configuration = std::make_shared<const config::Configuration>(std::move(changed));
    setting_.calibration = now;
    advance("");
}

}  // namespace petacq::daemon
