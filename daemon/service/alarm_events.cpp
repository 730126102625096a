#include "daemon/service/alarm_events.hpp"

#include <unistd.h>

#include <array>
#include <nlohmann/json.hpp>

#include "config/base/printable.hpp"
#include "daemon/system/utc.hpp"

namespace petacq::daemon {

using nlohmann::json;

namespace {

std::string text_at(const json& document, const char* key) {
    const auto found = document.is_object() ? document.find(key) : document.end();
    return found != document.end() && found->is_string() ? found->get<std::string>() : "";
}

std::string host_name() {
    std::array<char, 256> name{};
    return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

AlarmFacts event_of(const char* event, const json& status, const std::string& code,
                    const std::string& severity, const std::string& message) {
    const json none = json::object();
    const json& recording = status.contains("recording") ? status.at("recording") : none;
    const json& health = status.contains("health") ? status.at("health") : none;
    return {{"event", event},
            {"code", code},
            {"severity", severity},
            {"message", config::printable(message)},
            {"health", text_at(health, "state")},
            {"recording", text_at(recording, "state")},
            {"word", text_at(recording, "word")},
            {"run", text_at(recording, "run_id")},
            {"scanner", text_at(status, "scanner")},
            {"host", host_name()},
            {"utc", utc_text(std::chrono::system_clock::now())}};
}

}  // namespace

bool AlarmEvents::may_tell(const std::string& key, Clock::time_point now) {
    const auto [entry, first] = told_.emplace(key, now);
    if (first) return true;
    if (now - entry->second < min_interval_) return false;
    entry->second = now;
    return true;
}

std::vector<AlarmFacts> AlarmEvents::of(const json& status, Clock::time_point now) {
    std::vector<AlarmFacts> events;
    std::map<std::string, json> reasons;  // one of each code
    if (const auto health = status.find("health"); health != status.end() && health->contains("reasons")) {
        for (const json& reason : health->at("reasons"))
            reasons.emplace(text_at(reason, "code"), reason);
    }
    for (const auto& [code, reason] : reasons) {
        if (raised_.contains(code) || !may_tell("raised " + code, now)) continue;
        events.push_back(
            event_of("raised", status, code, text_at(reason, "severity"), text_at(reason, "message")));
        raised_[code] = events.back();
    }
    for (auto known = raised_.begin(); known != raised_.end();) {
        const auto& [code, told] = *known;
        if (reasons.contains(code) || !may_tell("cleared " + code, now)) {
            ++known;
            continue;
        }
        events.push_back(event_of("cleared", status, code, told.at("severity"), told.at("message")));
        known = raised_.erase(known);
    }
    const auto recording = status.find("recording");
    if (recording == status.end()) return events;
    const std::string state = text_at(*recording, "state");
    const bool first = recording_.empty();
    if (state == recording_ || (!first && !may_tell("recording " + state, now))) return events;
    recording_ = state;
    if (!first) {
        events.push_back(event_of("recording", status, state, "",
                                  text_at(*recording, "word") + ": " + text_at(*recording, "text")));
    }
    return events;
}

}  // namespace petacq::daemon
