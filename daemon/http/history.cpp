#include "daemon/http/history.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "daemon/system/utc.hpp"

namespace petacq::daemon {

namespace {

using nlohmann::json;

double epoch_seconds(History::Time time) {
    return std::chrono::duration<double>(time.time_since_epoch()).count();
}

/// To the nearest millisecond: a double has no more digits for the nanoseconds since 1970.
json utc_at(double seconds) {
    return utc_text(History::Time(std::chrono::milliseconds(std::llround(seconds * 1000))));
}

json event_json(const Event& event) {
    const auto known = [](const std::string& text) { return text.empty() ? json() : json(text); };
    return {{"utc", utc_at(event.time)}, {"kind", event.kind},
            {"code", known(event.code)}, {"run", known(event.run)},
            {"text", event.text},        {"ticks", event.ticks ? json(*event.ticks) : json()}};
}

std::string dumped(const json& document) {
    return document.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

void History::add(const json& status, Time now) {
    recent_.add(status, now);
    day_.add(status, now);
    events_.add(status, now);
}

std::string History::day_text(Time now) const {
    json document = day_.document(now);
    json marks = json::array();
    const double begin =
        epoch_seconds(now) - static_cast<double>(LongHistory::max_rows * LongHistory::step_s);
    for (const Event& event : events_.events()) {
        if (event.kind == "mark" && event.time >= begin)
            marks.push_back({{"time", event.time}, {"run", event.run}, {"text", event.text}});
    }
    document["marks"] = std::move(marks);
    return dumped(document);
}

json History::between(Time since, Time until) const {
    const double from = epoch_seconds(since);
    const double to = epoch_seconds(until);
    json answer = {{"since", utc_text(since)}, {"until", utc_text(until)}};
    const json day = day_.document(until);
    const json& times = day.at("time");
    const auto in_time = [&](const json& time) {
        return time.get<double>() >= from && time.get<double>() < to;
    };
    json rates = {{"time", json::array()}};
    for (const char* column : RateHistory::columns)
        rates[column] = json::array();
    for (std::size_t i = 0; i < times.size(); ++i) {
        if (!in_time(times[i])) continue;
        rates["time"].push_back(times[i]);
        for (const char* column : RateHistory::columns)
            rates[column].push_back(day.at(column)[i]);
    }
    answer["step_s"] = day.at("step_s");
    answer["rates"] = std::move(rates);
    answer["runs"] = json::array();
    for (const json& run : day.at("runs")) {
        const json& stop = run.at("stop");
        if (run.at("start") >= to || (!stop.is_null() && stop < from)) continue;
        answer["runs"].push_back({{"run", run.at("run")},
                                  {"start_utc", utc_at(run.at("start"))},
                                  {"stop_utc", stop.is_null() ? json() : utc_at(stop)},
                                  {"interrupted", run.at("interrupted")},
                                  {"failed", run.at("failed")}});
    }
    answer["events"] = json::array();
    std::vector<const Event*> chosen;
    for (const Event& event : events_.events()) {
        if (event.time >= from && event.time < to) chosen.push_back(&event);
    }
    // A mark is found up to a second after it was made.
    std::stable_sort(chosen.begin(), chosen.end(),
                     [](const Event* a, const Event* b) { return a->time < b->time; });
    for (const Event* event : chosen)
        answer["events"].push_back(event_json(*event));
    return answer;
}

std::string History::file_text() const {
    json document = day_.file();
    document["seconds"] = recent_.rows();
    document["events"] = events_.rows();
    return dumped(document) + '\n';
}

void History::read(std::string_view text, Time now) {
    *this = History();
    try {
        day_.read(text, now);
        const json document = json::parse(text);
        // Earlier versions kept neither.
        if (document.contains("seconds")) recent_.read(document.at("seconds"), now);
        const double last = std::max(day_.latest(), recent_.latest());
        if (document.contains("events")) events_.read(document.at("events"), last, now);
    } catch (const std::runtime_error&) {
        *this = History();
        throw;
    } catch (const std::exception& error) {
        *this = History();
        throw std::runtime_error(std::string("not a history of rates: ") + error.what());
    }
}

}  // namespace petacq::daemon
