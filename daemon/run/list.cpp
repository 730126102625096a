#include "daemon/run/list.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>
#include <vector>

#include "config/base/json_file.hpp"
#include "daemon/coverage/coverage.hpp"
#include "daemon/run/directory.hpp"
#include "daemon/space/reserve.hpp"
#include "daemon/system/utc.hpp"

namespace petacq::daemon {

namespace {

using nlohmann::json;

RunDirectoryError unreadable(const std::filesystem::path& data_dir, std::error_code why) {
    return RunDirectoryError("cannot read the data directory " + data_dir.string() + ": " + why.message());
}

std::optional<std::chrono::system_clock::time_point> time_of(const json& text) {
    return text.is_string() ? utc_time(text.get_ref<const std::string&>()) : std::nullopt;
}

json value_at(const json& document, const char* pointer) {
    const json::json_pointer path(pointer);
    return document.contains(path) ? document.at(path) : json();
}

/// A run that claims to be running and that nobody writes was interrupted: its daemon was killed.
json state_of(const json& content, const std::filesystem::path& directory, const std::string& current) {
    json state = value_at(content, "/state");
    if (state != "running" || directory.filename() == current || is_being_written(directory)) return state;
    return "interrupted";
}

json summary_of(const std::filesystem::path& directory, const std::string& run) {
    json summary = {{"run", run}};
    for (const char* key : {"state", "start_utc", "stop_utc", "seconds", "prompts", "delayeds", "singles",
                            "triples", "delayed_triples", "reason", "ledger_closed", "verdict"})
        summary[key] = nullptr;
    try {
        const json content = read_run_json(directory / run_file);
        summary["state"] = value_at(content, "/state");
        summary["start_utc"] = value_at(content, "/start_utc");
        summary["stop_utc"] = value_at(content, "/stop_utc");
        if (content.contains("stop_ticks")) {
            const Coverage coverage = coverage_of_run(content);
            if (coverage.intervals) summary["seconds"] = coverage.seconds();
        }
        // What a run does not write is unknown, not 0.
        if (value_at(content, "/configuration/listmode/write_coincidences") != false) {
            summary["prompts"] = value_at(content, "/ledger/pairs/prompts_found");
            summary["delayeds"] = value_at(content, "/ledger/pairs/delayeds_found");
            if (value_at(content, "/configuration/gammas").is_object()) {
                summary["triples"] = value_at(content, "/ledger/gammas/triples");
                summary["delayed_triples"] = value_at(content, "/ledger/gammas/delayed");
            }
        }
        if (value_at(content, "/configuration/listmode/write_singles") == true)
            summary["singles"] = value_at(content, "/ledger/saved_singles/found");
        summary["reason"] = value_at(content, "/stop_reason");
        summary["ledger_closed"] = value_at(content, "/ledger/closed");
        summary["verdict"] = value_at(content, "/verdict");
    } catch (const std::exception& error) {
        summary["state"] = "unreadable";
        summary["reason"] = error.what();
    }
    return summary;
}

/// `petlm plot` makes it there.
constexpr const char* report_file_in_run = "plot/report.html";

/// When its run.json was written; absent: there is none.
std::optional<std::int64_t> change_ns(const std::filesystem::path& directory) {
    struct stat file {};
    if (::stat((directory / run_file).c_str(), &file) != 0) return {};
    return file.st_mtim.tv_sec * 1'000'000'000 + file.st_mtim.tv_nsec;
}

std::uint64_t bytes_in(const std::filesystem::path& directory) {
    std::uint64_t bytes = 0;
    std::error_code ignored;
    for (std::filesystem::directory_iterator entry(directory, ignored), end; !ignored && entry != end;
         entry.increment(ignored)) {
        std::error_code none;
        const auto size = entry->is_regular_file(none) ? entry->file_size(none) : 0;
        if (!none) bytes += size;
    }
    return bytes;
}

}  // namespace

json read_run_json(const std::filesystem::path& file) {
    try {
        json content = config::read_json_file(file, config::max_run_json_bytes);
        if (content.is_object()) return content;
    } catch (const config::Error& error) {
        throw RunDirectoryError(std::string("cannot read ") + error.what());
    }
    throw RunDirectoryError("cannot read " + file.string() + ": not a JSON object");
}

std::optional<EndedRun> last_ended_run(const std::filesystem::path& data_dir) {
    std::vector<std::pair<std::int64_t, std::filesystem::path>> order;
    std::error_code error;
    for (std::filesystem::directory_iterator entry(data_dir, error), end; !error && entry != end;
         entry.increment(error)) {
        if (const auto changed_ns = change_ns(entry->path())) order.emplace_back(*changed_ns, entry->path());
    }
    if (error) throw unreadable(data_dir, error);
    std::sort(order.rbegin(), order.rend());
    for (const auto& [changed_ns, directory] : order) {
        json run;
        try {
            run = read_run_json(directory / run_file);
        } catch (const RunDirectoryError&) {
            continue;
        }
        if (run.contains("resorted") || run.contains("replayed")) continue;  // made of others
        const json state = state_of(run, directory, "");
        if (state == "interrupted") return {};
        const bool open = state == "bad-ledger";
        const bool failed = open || state == "failed";
        if (!failed && state != "complete") continue;
        const json reason = open ? json("the ledger does not close") : value_at(run, "/stop_reason");
        const json verdict = value_at(run, "/verdict/state");
        return EndedRun{directory.filename(), time_of(value_at(run, "/stop_utc")),
                        reason.is_string() ? reason.get<std::string>() : "", failed,
                        verdict.is_string() ? verdict.get<std::string>() : ""};
    }
    return {};
}

void RunList::refresh(const std::string& current) {
    std::map<std::string, Known> found;
    std::error_code error;
    for (std::filesystem::directory_iterator entry(data_dir_, error), end; !error && entry != end;
         entry.increment(error)) {
        const std::string run = entry->path().filename().string();
        const auto changed_ns = change_ns(entry->path());
        if (!changed_ns) continue;
        auto known = known_.extract(run);
        if (known.empty() || known.mapped().changed_ns != *changed_ns) {
            found[run] = {*changed_ns, bytes_in(entry->path()),
                          std::make_shared<const json>(summary_of(entry->path(), run))};
        } else {
            // The files of the current run grow while run.json stays unchanged.
            if (run == current) known.mapped().bytes = bytes_in(entry->path());
            found.insert(std::move(known));
        }
    }
    if (error) throw unreadable(data_dir_, error);
    known_ = std::move(found);
}

json RunList::page(std::size_t limit, const std::optional<std::string>& before, const std::string& current) {
    refresh(current);
    using Place = std::pair<std::string, std::string>;  // UTC texts sort like times; the id breaks ties
    std::vector<Place> order;
    order.reserve(known_.size());
    for (const auto& [run, known] : known_) {
        const json& start = known.summary->at("start_utc");
        order.emplace_back(start.is_string() ? start.get<std::string>() : "", run);
    }
    std::sort(order.begin(), order.end());
    auto end = order.end();
    if (before) {
        end = std::find_if(order.begin(), order.end(), [&](const Place& p) { return p.second == *before; });
        if (end == order.end()) throw RunDirectoryError("there is no run '" + *before + "'");
    }
    const auto earlier = end - order.begin();
    const auto first = end - std::min(earlier, static_cast<std::ptrdiff_t>(limit));
    json answer = {
        {"data_dir", data_dir_.string()}, {"earlier", first - order.begin()}, {"runs", json::array()}};
    std::error_code none;
    for (auto place = first; place != end; ++place) {
        const Known& known = known_.at(place->second);
        json run = *known.summary;
        run["state"] = state_of(run, data_dir_ / place->second, current);
        run["bytes"] = known.bytes;
        run["report"] =
            std::filesystem::is_regular_file(data_dir_ / place->second / report_file_in_run, none);
        answer["runs"].push_back(std::move(run));
    }
    return answer;
}

json RunList::ledger(const std::string& run, const std::string& current) const {
    check_run_id(run);
    const std::filesystem::path file = data_dir_ / run / run_file;
    std::error_code error;
    if (!std::filesystem::exists(file, error)) {
        throw RunDirectoryError("there is no run '" + run + "' in " + data_dir_.string());
    }
    const json content = read_run_json(file);
    json ledger = value_at(content, "/ledger");
    const json state = state_of(content, data_dir_ / run, current);
    if (ledger.is_null()) {
        throw RunDirectoryError("run '" + run + "' has no ledger: it " +
                                (state == "interrupted" ? "was interrupted" : "is not finished"));
    }
    return {{"run", run}, {"state", state}, {"ledger", std::move(ledger)}};
}

}  // namespace petacq::daemon
