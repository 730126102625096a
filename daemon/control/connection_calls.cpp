// Handles a line of a connection: the calls in it, and their replies.
#include <exception>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>
#include <vector>

#include "daemon/control/connection.hpp"
#include "daemon/marks/marks.hpp"
#include "daemon/system/utc.hpp"

namespace petacq::daemon {

using nlohmann::json;

namespace {

constexpr double longest_duration_s = 1e9;
constexpr double shortest_interval_s = 0.1;
constexpr double longest_interval_s = 3600;
constexpr std::uint32_t largest_page = 1000;

RunsRequest runs_request(const RpcCall& call) {
    const RpcParams params(call, {"limit", "before"});
    RunsRequest request;
    request.limit = params.whole("limit", 1, largest_page).value_or(request.limit);
    request.before = params.text("before");
    return request;
}

HistoryRequest history_request(const RpcCall& call) {
    const RpcParams params(call, {"since", "until"});
    const auto time = [&](const char* name) -> std::optional<std::chrono::system_clock::time_point> {
        const auto text = params.text(name);
        if (!text) return {};
        const auto found = utc_time(*text);
        if (!found) {
            throw RpcError(rpc_invalid_params,
                           std::string(name) +
                               ": expected a time of ISO 8601 with Z or its distance from UTC, such as "
                               "2026-11-20T18:45:00Z, found '" +
                               text->substr(0, 100) + "'");
        }
        return found;
    };
    HistoryRequest request{time("since"), time("until")};
    const auto until = request.until.value_or(std::chrono::system_clock::now());
    if (request.since && *request.since >= until)
        throw RpcError(rpc_invalid_params, "since: expected a time before " + utc_text(until));
    return request;
}

}  // namespace

StartRequest start_request(const RpcCall& call) {
    const RpcParams params(call, {"run", "duration_s", "start_ticks", "stop_ticks", "note", "nuclide",
                                  "half_life_s", "branching_ratio", "nuclide_source", "activity_MBq",
                                  "assay_utc", "bed_mm", "subject", "keys"});
    StartRequest request;
    request.run = params.text("run");
    request.duration_s = params.number("duration_s", std::numeric_limits<double>::denorm_min(),
                                       longest_duration_s, "a number of seconds above 0, at most 1e9");
    request.start_ticks = params.ticks("start_ticks");
    request.stop_ticks = params.ticks("stop_ticks");
    if (request.stop_ticks && request.duration_s)
        throw RpcError(rpc_invalid_params, "stop_ticks: expected none together with duration_s");
    if (request.stop_ticks && *request.stop_ticks <= request.start_ticks.value_or(0)) {
        throw RpcError(rpc_invalid_params, "stop_ticks: expected more than start_ticks = " +
                                               std::to_string(request.start_ticks.value_or(0)) + ", found " +
                                               std::to_string(*request.stop_ticks));
    }
    request.note = params.text("note");
    try {
        if (call.params)
            request.operator_data = operator_data(*call.params, std::chrono::system_clock::now());
    } catch (const std::invalid_argument& error) {
        throw RpcError(rpc_invalid_params, error.what());
    }
    return request;
}

StopRequest stop_request(const RpcCall& call) {
    const RpcParams params(call, {"run", "stop_ticks"});
    return {params.text("run"), params.ticks("stop_ticks")};
}

std::string mark_text(const RpcCall& call) {
    const auto text = RpcParams(call, {"text"}).text("text");
    try {
        check_mark_text(text.value_or(""));
    } catch (const std::invalid_argument& error) {
        throw RpcError(rpc_invalid_params, error.what());
    }
    return *text;
}

/// One message of the client, until its answer is complete.
struct ControlConnection::Exchange {
    bool batch = false;
    std::vector<std::string> answers;  ///< in the order of the calls; empty for notifications
    std::size_t answer_bytes = 0;
    std::size_t waiting = 0;
};

void ControlConnection::handle(std::string_view line) {
    last_used_ = std::chrono::steady_clock::now();
    const RpcMessage message = parse_rpc_message(line);
    context_->requests.add(message.calls.size());
    auto exchange = std::make_shared<Exchange>();
    exchange->batch = message.batch;
    exchange->answers.resize(message.calls.size());
    exchange->waiting = message.calls.size();
    unanswered_ += message.calls.size();
    for (std::size_t i = 0; i < message.calls.size() && !closed_; ++i) {
        carry_out(message.calls[i], exchange, i);
    }
}

void ControlConnection::carry_out(const RpcCall& call, const ExchangePtr& exchange, std::size_t index) {
    std::optional<Answer> outcome;
    try {
        outcome = perform(call, exchange, index);
    } catch (const RpcError& error) {
        outcome = Answer{{}, error};
    } catch (const std::exception& error) {
        outcome = Answer{{}, RpcError(rpc_internal_error, error.what())};
    }
    if (outcome) answer(call, exchange, index, *outcome);
}

std::optional<Answer> ControlConnection::perform(const RpcCall& call, const ExchangePtr& exchange,
                                                 std::size_t index) {
    if (call.error) return Answer{{}, call.error};
    ControlHandler& handler = context_->handler;
    // An exception of the handler goes through the reply, of which the handler may hold a copy: one answer
    // only.
    const auto ask_handler = [&](const auto& ask) -> std::optional<Answer> {
        const Reply reply = make_reply(call, exchange, index);
        try {
            ask(reply);
        } catch (const std::exception& error) {
            reply.error(rpc_internal_error, error.what());
        }
        return std::nullopt;
    };
    if (call.method == "start") {
        require_control(call);
        return ask_handler(
            [&, request = start_request(call)](const Reply& reply) { handler.start(request, reply); });
    }
    if (call.method == "stop") {
        require_control(call);
        return ask_handler(
            [&, request = stop_request(call)](const Reply& reply) { handler.stop(request, reply); });
    }
    if (call.method == "mark") {
        require_control(call);
        return ask_handler([&, text = mark_text(call)](const Reply& reply) { handler.mark(text, reply); });
    }
    if (call.method == "status") {
        const RpcParams none(call, {});
        return Answer{*handler.status(), {}};
    }
    if (call.method == "runs") {
        return ask_handler(
            [&, request = runs_request(call)](const Reply& reply) { handler.runs(request, reply); });
    }
    if (call.method == "ledger") {
        const auto run = RpcParams(call, {"run"}).text("run");
        return ask_handler([&](const Reply& reply) { handler.ledger(run, reply); });
    }
    if (call.method == "history") {
        return ask_handler(
            [&, request = history_request(call)](const Reply& reply) { handler.history(request, reply); });
    }
    if (call.method == "reload") {
        require_control(call);
        const RpcParams none(call, {});
        return ask_handler([&](const Reply& reply) { handler.reload(reply); });
    }
    if (call.method == "acknowledge") {
        require_control(call);
        const auto run = RpcParams(call, {"run"}).text("run");
        if (!run) throw RpcError(rpc_invalid_params, "run: missing, expected the id of an interrupted run");
        return ask_handler([&](const Reply& reply) { handler.acknowledge(*run, reply); });
    }
    if (call.method == "log_level") return Answer{rpc_text(log_level(call)), {}};
    if (call.method == "subscribe") return Answer{subscribe(call), {}};
    if (call.method == "unsubscribe") {
        const RpcParams none(call, {});
        end_subscription();
        return Answer{"{}", {}};
    }
    throw RpcError(rpc_method_not_found, "no method '" + call.method +
                                             "': expected start, stop, mark, status, subscribe, unsubscribe, "
                                             "runs, ledger, history, reload, acknowledge or log_level");
}

void ControlConnection::require_control(const RpcCall& call) {
    if (may_control_) return;
    const std::string refusal = context_->access.refusal(socket_.native_handle());
    context_->log_limit.log(LogLevel::warning, refusal, "control: {} is not allowed: {}", call.method,
                            refusal);
    throw RpcError(rpc_refused, "not allowed: " + refusal);
}

json ControlConnection::log_level(const RpcCall& call) {
    const RpcParams params(call, {"level"});
    const auto word = params.text("level");
    const LogLevel before = daemon::log_level();
    if (!word) return {{"level", name_of(before)}};
    require_control(call);
    LogLevel level{};
    try {
        level = config::from_name<LogLevel>(*word);
    } catch (const std::invalid_argument& error) {
        throw RpcError(rpc_invalid_params, std::string("level: ") + error.what());
    }
    if (level != before) {
        // Logged once, at whichever of the two levels lets the message through.
        const bool logged = log_enabled(LogLevel::info);
        log_info("log level: {}, was {}", *word, name_of(before));
        set_log_level(level);
        if (!logged) log_info("log level: {}, was {}", *word, name_of(before));
    }
    return {{"level", *word}, {"previous", name_of(before)}};
}

std::string ControlConnection::subscribe(const RpcCall& call) {
    const RpcParams params(call, {"interval_s"});
    constexpr const char* expected = "a number of seconds from 0.1 to 3600";
    const auto seconds = params.number("interval_s", shortest_interval_s, longest_interval_s, expected);
    if (!seconds)
        throw RpcError(rpc_invalid_params, std::string("interval_s: missing, expected ") + expected);
    const auto status = context_->handler.status();
    interval_ = std::chrono::nanoseconds(static_cast<std::int64_t>(*seconds * 1e9));
    notify_after_interval();
    return *status;
}

void ControlConnection::end_subscription() {
    interval_ = std::chrono::nanoseconds(0);
    interval_timer_.cancel();
}

Reply ControlConnection::make_reply(const RpcCall& call, const ExchangePtr& exchange, std::size_t index) {
    RpcCall header;  // without the parameters, which may be large
    header.id = call.id;
    header.notification = call.notification;
    header.method = call.method;
    return Reply([weak = weak_from_this(), gate = context_->gate, header = std::move(header), exchange,
                  index](Answer result) {
        gate->post([weak, header, exchange, index, result = std::move(result)] {
            const auto self = weak.lock();
            if (!self) return;
            self->guarded([&] { self->answer(header, exchange, index, result); });
        });
    });
}

void ControlConnection::answer(const RpcCall& call, const ExchangePtr& exchange, std::size_t index,
                               const Answer& answer) {
    if (closed_) return;
    if (answer.error) context_->errors.add();
    if (!call.notification) {
        std::string text =
            answer.error ? rpc_error_text(call.id, *answer.error) : rpc_result_text(call.id, answer.result);
        // One alone is sent whatever its size: the status of a large scanner is many megabytes.
        if (exchange->answer_bytes > 0 &&
            exchange->answer_bytes + text.size() > context_->options.send_buffer_bytes) {
            text = rpc_error_text(
                call.id,
                RpcError(rpc_internal_error, "the answers of the batch are larger than the send buffer"));
            context_->errors.add();
        }
        exchange->answer_bytes += text.size();
        exchange->answers[index] = std::move(text);
    }
    --unanswered_;
    schedule();
    if (--exchange->waiting > 0) return;
    std::string line;
    for (const std::string& text : exchange->answers) {
        if (text.empty()) continue;
        if (exchange->batch) line += line.empty() ? "[" : ",";
        line += text;
    }
    if (line.empty()) return;
    if (exchange->batch) line += "]";
    send(std::move(line));
}

}  // namespace petacq::daemon
