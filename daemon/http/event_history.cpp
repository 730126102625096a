#include "daemon/http/event_history.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "config/base/printable.hpp"
#include "daemon/system/utc.hpp"

namespace petacq::daemon {

namespace {

using nlohmann::json;

const json* object_in(const json& document, const char* key) {
    const auto found = document.is_object() ? document.find(key) : document.end();
    return found != document.end() && found->is_object() ? &*found : nullptr;
}

std::string text_in(const json& document, const char* key) {
    const auto found = document.is_object() ? document.find(key) : document.end();
    return found != document.end() && found->is_string() ? found->get<std::string>() : "";
}

double seconds_since_1970(EventHistory::Time time) {
    return std::chrono::duration<double>(time.time_since_epoch()).count();
}

/// Without the half of a character at its end.
std::string shortened(std::string text) {
    if (text.size() <= EventHistory::max_text_bytes) return text;
    std::size_t end = EventHistory::max_text_bytes;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80)
        --end;
    return text.substr(0, end);
}

/// A status comes each second. A start that it places further back is not believed.
constexpr double longest_s = 10;

double start_of(const json& run, double now) {
    const auto start = utc_time(text_in(run, "start_utc"));
    const double begun = start ? seconds_since_1970(*start) : now;
    return begun <= now && now - begun < longest_s ? begun : now;
}

double start_of_daemon(const json& status, double now) {
    const auto uptime = status.find("uptime_s");
    if (uptime == status.end() || !uptime->is_number()) return now;
    return now - std::clamp(uptime->get<double>(), 0.0, longest_s);
}

/// How the last run ended, if that was it.
std::string end_of(const json& status, const std::string& run) {
    const json* const last = object_in(status, "last_run");
    std::string text = "run " + run + " ended";
    if (last == nullptr || text_in(*last, "id") != run) return text;
    if (last->value("failed", json()) == true) text = "run " + run + " failed";
    if (const std::string reason = text_in(*last, "reason"); !reason.empty()) text += ": " + reason;
    const std::string verdict = text_in(*last, "verdict");
    if (!verdict.empty() && verdict != "good") text += "; its data are " + verdict;
    return text;
}

}  // namespace

void EventHistory::put(Event event) {
    event.text = shortened(std::move(event.text));
    event.time = std::round(event.time * 1000) / 1000;
    events_.push_back(std::move(event));
    if (events_.size() > max_events) events_.pop_front();
    ++changes_;
}

void EventHistory::trim(double now) {
    while (!events_.empty() && events_.front().time < now - kept_s)
        events_.pop_front();
    // A clock that was set back.
    while (!events_.empty() && events_.back().time > now + 1)
        events_.pop_back();
}

void EventHistory::add(const json& status, Time time) {
    if (!status.is_object()) return;
    const double now = seconds_since_1970(time);
    trim(now);
    if (!std::exchange(started_, true)) {
        const double before = events_.empty() ? 0 : events_.back().time;  // an event of an earlier daemon
        put({std::max(start_of_daemon(status, now), before),
             "daemon_started",
             "",
             "",
             "petacqd " + text_in(status, "version") + " started",
             {}});
    }
    add_run(status, now);
    add_reasons(status, now);
    add_recording(status, now);
}

void EventHistory::stop(Time now) {
    if (std::exchange(started_, false))
        put({seconds_since_1970(now), "daemon_stopped", "", "", "petacqd stopped", {}});
}

void EventHistory::add_run(const json& status, double now) {
    const json* const run = object_in(status, "run");
    const std::string id = run == nullptr ? "" : text_in(*run, "id");
    if (id != run_) {
        if (!run_.empty()) put({now, "run_ended", "", run_, end_of(status, run_), {}});
        if (!id.empty()) {
            const std::string note = text_in(*run, "note");
            put({start_of(*run, now),
                 "run_started",
                 "",
                 id,
                 "run " + id + " started" + (note.empty() ? "" : ": " + config::printable(note)),
                 {}});
        }
        run_ = id;
        marks_.clear();
    }
    if (run != nullptr) add_marks(*run, now);
}

void EventHistory::add_marks(const json& run, double now) {
    const json* const marks = object_in(run, "marks");
    if (marks == nullptr || !marks->contains("latest") || !marks->at("latest").is_array()) return;
    std::deque<std::string> latest;
    for (const json& mark : marks->at("latest")) {
        latest.push_back(mark.dump(-1, ' ', false, json::error_handler_t::replace));
        if (std::find(marks_.begin(), marks_.end(), latest.back()) != marks_.end()) continue;
        const auto made = utc_time(text_in(mark, "utc"));
        Event event{made ? seconds_since_1970(*made) : now, "mark", "", run_, text_in(mark, "text"), {}};
        if (const auto ticks = mark.find("ticks"); ticks != mark.end() && ticks->is_number_unsigned())
            event.ticks = ticks->get<std::uint64_t>();
        put(std::move(event));
    }
    marks_ = std::move(latest);
}

/// Whether a reason was cleared so lately that it has not been away; then it has not.
bool EventHistory::forget_clearing(const std::string& code, double now) {
    for (auto event = events_.rbegin(); event != events_.rend() && event->time > now - away_s; ++event) {
        if (event->kind.starts_with("daemon_")) return false;
        if (event->code != code || event->kind == "recording") continue;
        if (event->kind != "cleared") return false;
        events_.erase(std::next(event).base());
        ++changes_;
        return true;
    }
    return false;
}

void EventHistory::add_reasons(const json& status, double now) {
    std::map<std::string, std::string> reasons;
    const json* const health = object_in(status, "health");
    if (health != nullptr && health->contains("reasons") && health->at("reasons").is_array()) {
        for (const json& reason : health->at("reasons"))
            reasons.emplace(text_in(reason, "code"), config::printable(text_in(reason, "message")));
    }
    for (const auto& [code, message] : reasons) {
        if (!reasons_.contains(code) && !forget_clearing(code, now))
            put({now, "raised", code, run_, message, {}});
    }
    for (const auto& [code, message] : reasons_) {
        if (!reasons.contains(code)) put({now, "cleared", code, run_, message, {}});
    }
    reasons_ = std::move(reasons);
}

void EventHistory::add_recording(const json& status, double now) {
    const json* const recording = object_in(status, "recording");
    if (recording == nullptr) return;
    const std::string state = text_in(*recording, "state");
    if (state == recording_) return;
    recording_ = state;
    put({now,
         "recording",
         state,
         run_,
         text_in(*recording, "word") + ": " + text_in(*recording, "text"),
         {}});
}

json EventHistory::rows() const {
    json rows = json::array();
    for (const Event& e : events_)
        rows.push_back(
            json::array({e.time, e.kind, e.code, e.run, e.text, e.ticks ? json(*e.ticks) : json()}));
    return rows;
}

void EventHistory::read(const json& rows, double last, Time time) {
    std::deque<Event> events;
    for (const json& row : rows) {
        Event event{row.at(0).get<double>(), row.at(1), row.at(2), row.at(3), row.at(4), {}};
        if (!row.at(5).is_null()) event.ticks = row.at(5).get<std::uint64_t>();
        event.text = shortened(std::move(event.text));
        events.push_back(std::move(event));
        if (events.size() > max_events) events.pop_front();
    }
    events_ = std::move(events);
    const double now = seconds_since_1970(time);
    trim(now);
    if (events_.empty() || events_.back().kind == "daemon_stopped") return;
    put({std::min(std::max(events_.back().time, last), now),
         "daemon_gone",
         "",
         "",
         "nothing more is known: petacqd was killed, or the host lost power",
         {}});
}

}  // namespace petacq::daemon
