#include "tools/petctl/hosts/group.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "daemon/system/utc.hpp"
#include "tools/petctl/text/values.hpp"

namespace petacq::petctl {

using nlohmann::json;

const json& HostAnswer::result() const {
    static const json none;
    return document ? *document : none;
}

HostGroup::HostGroup(const std::vector<std::string>& words, std::string socket)
    : pairs_(words), names_(pairs_.names()), socket_(std::move(socket)), launchers_(names_.size()) {
    for (std::size_t i = 0; i < names_.size(); ++i) {
        // An option would reach the launcher as one of its own.
        if (names_[i].empty() || names_[i].starts_with('-') || printable(names_[i]) != names_[i] ||
            names_[i].find(' ') != std::string::npos) {
            throw std::invalid_argument(
                "expected names of hosts separated by commas, those of a pair by +, found '" +
                printable(names_[i]) + "'");
        }
        if (std::find(names_.begin(), names_.begin() + static_cast<std::ptrdiff_t>(i), names_[i]) !=
            names_.begin() + static_cast<std::ptrdiff_t>(i))
            throw std::invalid_argument(names_[i] + " is named twice");
    }
}

std::vector<HostAnswer> HostGroup::ask(const std::string& method, const json& parameters,
                                       Milliseconds timeout) {
    return ask(names_, method, parameters, timeout);
}

std::vector<HostAnswer> HostGroup::ask_status(const std::vector<std::string>& names) {
    return ask(names, "status", json::object());
}

std::vector<HostAnswer> HostGroup::ask(const std::vector<std::string>& names, const std::string& method,
                                       const json& parameters, Milliseconds timeout) {
    std::vector<std::future<HostAnswer>> pending;
    for (std::size_t i = 0; i < names_.size(); ++i) {
        if (std::find(names.begin(), names.end(), names_[i]) == names.end()) continue;
        pending.push_back(
            std::async(std::launch::async, [&, i] { return ask_one(i, method, parameters, timeout); }));
    }
    std::vector<HostAnswer> answers;
    answers.reserve(pending.size());
    for (std::future<HostAnswer>& answer : pending)
        answers.push_back(answer.get());
    return answers;
}

std::vector<HostAnswer> HostGroup::watch_status(Milliseconds grace) {
    using Clock = std::chrono::steady_clock;
    const auto now = Clock::now();
    watched_.resize(names_.size());
    for (std::size_t i = 0; i < names_.size(); ++i) {
        if (watched_[i].answer.valid()) continue;
        watched_[i].asked = now;
        watched_[i].answer = std::async(std::launch::async,
                                        [this, i] { return ask_one(i, "status", json::object(), patience); });
    }
    std::vector<HostAnswer> answers;
    for (std::size_t i = 0; i < names_.size(); ++i) {
        Watched& host = watched_[i];
        // One that has failed is shown as such until it answers; the others do not wait for it.
        const auto until = host.last.good() ? host.asked + grace : now;
        if (host.answer.wait_until(until) == std::future_status::ready) {
            host.last = host.answer.get();
            if (host.last.good())
                host.failing_since.reset();
            else if (!host.failing_since)
                host.failing_since = std::chrono::system_clock::now();
        }
        answers.push_back(host.last);
        if (host.failing_since)
            answers.back().failure += " (since " + daemon::utc_text(*host.failing_since) + ")";
        if (host.answer.valid() && host.last.good()) {
            const auto waited = std::chrono::floor<std::chrono::seconds>(Clock::now() - host.asked).count();
            answers.back() = {names_[i], {}, "no answer for " + std::to_string(waited) + " s", false};
        }
    }
    return answers;
}

HostAnswer HostGroup::ask_one(std::size_t host, const std::string& method, const json& parameters,
                              Milliseconds timeout) {
    HostAnswer answer{names_[host], {}, {}, false};
    std::unique_ptr<Launcher>& launcher = launchers_[host];
    try {
        if (!launcher) launcher = std::make_unique<Launcher>(names_[host], socket_);
        json result = launcher->client().call(method, parameters, timeout);
        if (result.is_object()) {
            answer.reached = true;
            answer.document = std::make_shared<const json>(std::move(result));
            return answer;
        }
        answer.failure = "its answer is not an object";
        launcher.reset();
    } catch (const daemon::RpcError& error) {
        answer.reached = true;
        answer.failure = printable(error.what());
    } catch (const std::exception& error) {
        // The launcher knows more about the reason than the end of the connection says.
        const std::string words = launcher ? launcher->last_words() : "";
        answer.failure = printable(words.empty() ? error.what() : words);
        launcher.reset();
    }
    return answer;
}

}  // namespace petacq::petctl
