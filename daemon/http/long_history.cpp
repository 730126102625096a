#include "daemon/http/long_history.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "daemon/run/directory.hpp"
#include "daemon/system/utc.hpp"

namespace petacq::daemon {

namespace {

using nlohmann::json;

constexpr int file_version = 1;
constexpr std::string_view lost_fraction = "lost_fraction";
constexpr std::string_view net_trues = "net_trues_per_s";

double seconds_of(LongHistory::Time time) {
    return std::chrono::duration<double>(time.time_since_epoch()).count();
}

json number_or_null(double value) {
    return std::isfinite(value) ? json(value) : json();
}

/// Rates need no more than six digits.
double rounded(double value) {
    return std::strtod(fmt::format("{:.6g}", value).c_str(), nullptr);
}

const json* object_at(const json& status, const char* key) {
    const auto found = status.find(key);
    return found != status.end() && found->is_object() ? &*found : nullptr;
}

}  // namespace

void LongHistory::add(const json& status, Time now) {
    const double seconds = seconds_of(now);
    const auto step = static_cast<std::int64_t>(std::floor(seconds / step_s));
    if (step != step_) {
        complete();
        step_ = step;
        trim(step);
    }
    mark_runs(status, seconds);
    const json* rates = object_at(status, "rates");
    if (rates == nullptr) return;
    const auto prompts = rates->find("prompts_per_s");
    const bool no_prompts = prompts != rates->end() && *prompts == 0;
    for (std::size_t i = 0; i < width; ++i) {
        const auto found = rates->find(RateHistory::columns[i]);
        // Net trues are not known as long as there are no prompts. Columns of one row are means over the same
        // time.
        const bool none = no_prompts && RateHistory::columns[i] == net_trues;
        if (!none && (found == rates->end() || !found->is_number())) continue;
        const double value = none ? 0 : found->get<double>();
        if (RateHistory::columns[i] == lost_fraction) {
            sums_[i] = std::max(sums_[i], value);
            counts_[i] = 1;
        } else {
            sums_[i] += value;
            ++counts_[i];
        }
    }
}

void LongHistory::complete() {
    if (std::any_of(counts_.begin(), counts_.end(), [](std::uint32_t n) { return n > 0; })) {
        LongRow row{step_, {}};
        for (std::size_t i = 0; i < width; ++i)
            row.values[i] = counts_[i] > 0 ? rounded(sums_[i] / counts_[i]) : RateHistory::unknown;
        rows_.push_back(row);
        ++completed_;
    }
    sums_.fill(0);
    counts_.fill(0);
}

void LongHistory::trim(std::int64_t now_step) {
    while (!rows_.empty() && rows_.back().step >= now_step)
        rows_.pop_back();
    const std::int64_t oldest = now_step - static_cast<std::int64_t>(max_rows);
    while (!rows_.empty() && rows_.front().step < oldest)
        rows_.pop_front();
    const auto begin = static_cast<double>(oldest * step_s);
    while (!runs_.empty() && (runs_.size() > max_runs || (runs_.front().stop && *runs_.front().stop < begin)))
        runs_.pop_front();
}

void LongHistory::mark_runs(const json& status, double now) {
    const json* run = object_at(status, "run");
    const std::string id = run != nullptr ? run->value("id", std::string()) : "";
    if (!runs_.empty() && !runs_.back().stop && runs_.back().run != id) {
        runs_.back().stop = now;
        ++run_changes_;
    }
    if (!id.empty() && (runs_.empty() || runs_.back().stop || runs_.back().run != id)) {
        const auto text = run->find("start_utc");
        const auto start =
            text != run->end() && text->is_string() ? utc_time(text->get<std::string>()) : std::nullopt;
        runs_.push_back({id, start ? seconds_of(*start) : now, {}, false, false});
        ++run_changes_;
        if (runs_.size() > max_runs) runs_.pop_front();
    }
    if (const json* recording = object_at(status, "recording");
        recording != nullptr && recording->value("state", std::string()) == "failed") {
        for (RunMark& mark : runs_) {
            if (mark.failed || recording->at("run_id") != mark.run) continue;
            mark.failed = true;
            ++run_changes_;
        }
    }
    const json* interrupted = object_at(status, "interrupted");
    if (interrupted == nullptr || !interrupted->contains("runs")) return;
    for (const json& found : interrupted->at("runs")) {
        for (RunMark& mark : runs_) {
            if (mark.interrupted || !found.is_object() || found.value("id", std::string()) != mark.run)
                continue;
            mark.interrupted = true;
            ++run_changes_;
        }
    }
}

json LongHistory::runs_json() const {
    json runs = json::array();
    for (const RunMark& mark : runs_)
        runs.push_back({{"run", mark.run},
                        {"start", mark.start},
                        {"stop", mark.stop ? json(*mark.stop) : json()},
                        {"interrupted", mark.interrupted},
                        {"failed", mark.failed}});
    return runs;
}

json LongHistory::document(Time now) const {
    json time = json::array();
    for (const LongRow& row : rows_)
        time.push_back(row.step * step_s);
    json document = {
        {"now", seconds_of(now)}, {"step_s", step_s}, {"time", std::move(time)}, {"runs", runs_json()}};
    for (std::size_t i = 0; i < width; ++i) {
        json column = json::array();
        for (const LongRow& row : rows_)
            column.push_back(number_or_null(row.values[i]));
        document[RateHistory::columns[i]] = std::move(column);
    }
    return document;
}

std::string LongHistory::text(Time now) const {
    return document(now).dump(-1, ' ', false, json::error_handler_t::replace);
}

double LongHistory::latest() const {
    return rows_.empty() ? 0 : static_cast<double>((rows_.back().step + 1) * step_s);
}

std::string LongHistory::file_text() const {
    return file().dump(-1, ' ', false, json::error_handler_t::replace) + '\n';
}

json LongHistory::file() const {
    json rows = json::array();
    for (const LongRow& row : rows_) {
        json line = json::array({row.step});
        for (const double value : row.values)
            line.push_back(number_or_null(value));
        rows.push_back(std::move(line));
    }
    return {{"petacqd_history", file_version},
            {"step_s", step_s},
            {"columns", RateHistory::columns},
            {"rows", std::move(rows)},
            {"runs", runs_json()}};
}

void LongHistory::read(std::string_view text, Time now) {
    rows_.clear();
    runs_.clear();
    const auto expect = [](bool good, const char* what) {
        if (!good) throw std::runtime_error(std::string("expected ") + what);
    };
    std::deque<LongRow> rows;
    std::deque<RunMark> runs;
    try {
        const json document = json::parse(text);
        expect(document.at("petacqd_history") == file_version, "petacqd_history 1");
        expect(document.at("step_s") == step_s, "rows of half a minute");
        const auto columns = document.at("columns").get<std::vector<std::string>>();
        for (const json& line : document.at("rows")) {
            expect(line.is_array() && line.size() == columns.size() + 1 && line[0].is_number_integer(),
                   "rows of numbers");
            LongRow row{line[0].get<std::int64_t>(), {}};
            expect(rows.empty() || rows.back().step < row.step, "ascending times");
            row.values = RateHistory::rates_of(line, columns);
            rows.push_back(row);
        }
        for (const json& mark : document.at("runs")) {
            RunMark run{
                mark.at("run"), mark.at("start"), {}, mark.at("interrupted"), mark.value("failed", false)};
            check_run_id(run.run);
            if (!mark.at("stop").is_null()) run.stop = mark.at("stop").get<double>();
            runs.push_back(std::move(run));
        }
    } catch (const std::exception& error) {
        throw std::runtime_error(std::string("not a history of rates: ") + error.what());
    }
    rows_ = std::move(rows);
    runs_ = std::move(runs);
    const double seconds = seconds_of(now);
    trim(static_cast<std::int64_t>(std::floor(seconds / step_s)) + 1);
    // A run without a stop was in progress when the earlier daemon wrote the file. It ended with that daemon.
    const double end = rows_.empty() ? seconds : latest();
    for (RunMark& run : runs_) {
        if (!run.stop) run.stop = std::max(run.start, end);
    }
    std::erase_if(runs_,
                  [&](const RunMark& run) { return !(run.start <= seconds) || !(*run.stop >= run.start); });
}

}  // namespace petacq::daemon
