#include "daemon/control_connection.hpp"

#include <poll.h>

#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <exception>
#include <limits>
#include <utility>
#include <vector>

namespace petacq::daemon {

using boost::system::error_code;
using nlohmann::json;

namespace {

/// Calls of one client that may wait for their answers; further ones are read when some have been answered.
constexpr std::size_t most_unanswered = 64;
constexpr double shortest_interval_s = 0.1;
constexpr double longest_interval_s = 3600;

bool other_end_closed(int descriptor) {
    pollfd state{descriptor, 0, 0};
    return ::poll(&state, 1, 0) > 0 && (state.revents & (POLLHUP | POLLERR)) != 0;
}

}  // namespace

void ControlGate::post(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    if (io_ != nullptr) boost::asio::post(*io_, std::move(work));
}

void ControlGate::shut() {
    const std::lock_guard lock(mutex_);
    io_ = nullptr;
}

/// One message of the client on its way to its answer.
struct ControlConnection::Exchange {
    bool batch = false;
    std::vector<std::string> answers;  ///< in the order of the calls; empty for notifications
    std::size_t answer_bytes = 0;
    std::size_t waiting = 0;
};

ControlConnection::ControlConnection(Socket socket, std::shared_ptr<ControlContext> context)
    : socket_(std::move(socket)),
      context_(std::move(context)),
      stall_timer_(socket_.get_executor()),
      interval_timer_(socket_.get_executor()) {}

void ControlConnection::start() {
    context_->connections.insert(shared_from_this());
    context_->clients.fetch_add(1, std::memory_order_relaxed);
    context_->accepted.add();
    schedule();
}

void ControlConnection::close() {
    if (closed_) return;
    closed_ = true;
    context_->connections.erase(shared_from_this());
    context_->clients.fetch_sub(1, std::memory_order_relaxed);
    error_code ignored;
    socket_.close(ignored);
    stall_timer_.cancel();
    interval_timer_.cancel();
}

void ControlConnection::drop(const char* why) {
    if (closed_) return;
    context_->dropped.add();
    context_->log_limit.log(LogLevel::warning, why, "control: a client was disconnected: {}", why);
    close();
}

template <class Step>
void ControlConnection::guarded(Step step) {
    if (closed_) return;
    try {
        step();
    } catch (const std::exception& error) {
        drop(error.what());
    }
}

void ControlConnection::schedule() {
    if (scheduled_ || closed_) return;
    scheduled_ = true;
    boost::asio::post(socket_.get_executor(), [self = shared_from_this()] {
        self->scheduled_ = false;
        self->guarded([&] { self->next_line(); });
    });
}

bool ControlConnection::paused() const {
    // A client that asks faster than it reads is not listened to until it has read.
    return output_bytes_ > context_->options.send_buffer_bytes / 2 || unanswered_ >= most_unanswered;
}

// One line at a time, and then the others' turn: a client with many requests in one packet delays nobody.
void ControlConnection::next_line() {
    if (disconnecting_ || paused()) return;  // scheduled again when something has been written or answered
    const std::size_t end = input_.find('\n', searched_);
    if (end != std::string::npos) {
        std::string_view line(input_.data() + line_begin_, end - line_begin_);
        line_begin_ = searched_ = end + 1;
        if (line.size() > context_->options.max_request_bytes) return refuse_long_line();
        if (line.ends_with('\r')) line.remove_suffix(1);
        if (!line.empty()) handle(line);
        return schedule();
    }
    input_.erase(0, line_begin_);
    line_begin_ = 0;
    searched_ = input_.size();
    if (input_.size() > context_->options.max_request_bytes) return refuse_long_line();
    if (!input_ended_) return read();
    // It has said all it wanted; half a line at the end is nothing. One that only closed its sending side is
    // still answered.
    if (gone_ || (unanswered_ == 0 && output_.empty() && interval_.count() == 0)) close();
}

void ControlConnection::read() {
    if (reading_) return;
    reading_ = true;
    socket_.async_read_some(boost::asio::buffer(chunk_),
                            [self = shared_from_this()](error_code error, std::size_t bytes) {
                                self->reading_ = false;
                                self->guarded([&] {
                                    self->input_.append(self->chunk_.data(), bytes);
                                    if (error && error != boost::asio::error::eof) return self->close();
                                    if (error) {
                                        self->input_ended_ = true;
                                        self->gone_ = other_end_closed(self->socket_.native_handle());
                                    }
                                    self->schedule();
                                });
                            });
}

void ControlConnection::refuse_long_line() {
    input_.clear();
    line_begin_ = searched_ = 0;
    end_subscription();
    context_->requests.add();
    context_->errors.add();
    context_->dropped.add();
    disconnecting_ = true;
    send(rpc_error_text(
        nullptr,
        RpcError(rpc_invalid_request, "invalid request: longer than " +
                                          std::to_string(context_->options.max_request_bytes) + " bytes")));
}

void ControlConnection::handle(std::string_view line) {
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
        outcome = Answer{nullptr, error};
    } catch (const std::exception& error) {
        outcome = Answer{nullptr, RpcError(rpc_internal_error, error.what())};
    }
    if (outcome) answer(call, exchange, index, *outcome);
}

std::optional<Answer> ControlConnection::perform(const RpcCall& call, const ExchangePtr& exchange,
                                                 std::size_t index) {
    if (call.error) return Answer{nullptr, call.error};
    // What the handler throws goes through the reply, which it may have kept a copy of: still one answer.
    const auto ask_handler = [&](const auto& ask) {
        const Reply reply = make_reply(call, exchange, index);
        try {
            ask(reply);
        } catch (const std::exception& error) {
            reply.error(rpc_internal_error, error.what());
        }
    };
    if (call.method == "start") {
        require_control(call);
        const RpcParams params(call, {"run", "duration_s", "note"});
        StartRequest request;
        request.run = params.text("run");
        request.duration_s =
            params.number("duration_s", std::numeric_limits<double>::denorm_min(),
                          std::numeric_limits<double>::max(), "a finite number of seconds above 0");
        request.note = params.text("note");
        ask_handler([&](const Reply& reply) { context_->handler.start(std::move(request), reply); });
        return std::nullopt;
    }
    if (call.method == "stop") {
        require_control(call);
        const RpcParams none(call, {});
        ask_handler([&](const Reply& reply) { context_->handler.stop(reply); });
        return std::nullopt;
    }
    if (call.method == "status") {
        const RpcParams none(call, {});
        return Answer{context_->handler.status(), {}};
    }
    if (call.method == "runs") {
        const RpcParams params(call, {"limit", "before"});
        RunsRequest request;
        request.limit = params.whole("limit", 1, 1000).value_or(request.limit);
        request.before = params.text("before");
        ask_handler([&](const Reply& reply) { context_->handler.runs(std::move(request), reply); });
        return std::nullopt;
    }
    if (call.method == "ledger") {
        const RpcParams params(call, {"run"});
        auto run = params.text("run");
        ask_handler([&](const Reply& reply) { context_->handler.ledger(std::move(run), reply); });
        return std::nullopt;
    }
    if (call.method == "log_level") return Answer{log_level(call), {}};
    if (call.method == "subscribe") return Answer{subscribe(call), {}};
    if (call.method == "unsubscribe") {
        const RpcParams none(call, {});
        end_subscription();
        return Answer{json::object(), {}};
    }
    throw RpcError(rpc_method_not_found, "no method '" + call.method +
                                             "': expected start, stop, status, subscribe, unsubscribe, runs, "
                                             "ledger or log_level");
}

void ControlConnection::require_control(const RpcCall& call) {
    if (!refusal_) refusal_ = context_->access.refusal(socket_.native_handle());
    if (refusal_->empty()) return;
    context_->log_limit.log(LogLevel::warning, *refusal_, "control: {} is not allowed: {}", call.method,
                            *refusal_);
    throw RpcError(rpc_refused, "not allowed: " + *refusal_);
}

json ControlConnection::log_level(const RpcCall& call) {
    const RpcParams params(call, {"level"});
    const auto word = params.text("level");
    const LogLevel before = daemon::log_level();
    if (!word) return {{"level", word_of(before)}};
    require_control(call);
    LogLevel level{};
    try {
        level = log_level_from(*word);
    } catch (const std::invalid_argument& error) {
        throw RpcError(rpc_invalid_params, std::string("level: ") + error.what());
    }
    if (level != before) {
        // Once, with whichever of the two levels lets it through.
        const bool said = log_enabled(LogLevel::info);
        log_info("log level: {}, was {}", *word, word_of(before));
        set_log_level(level);
        if (!said) log_info("log level: {}, was {}", *word, word_of(before));
    }
    return {{"level", *word}, {"previous", word_of(before)}};
}

json ControlConnection::subscribe(const RpcCall& call) {
    const RpcParams params(call, {"interval_s"});
    constexpr const char* expected = "a number of seconds from 0.1 to 3600";
    const auto seconds = params.number("interval_s", shortest_interval_s, longest_interval_s, expected);
    if (!seconds)
        throw RpcError(rpc_invalid_params, std::string("interval_s: missing, expected ") + expected);
    json status = context_->handler.status();
    interval_ = std::chrono::nanoseconds(static_cast<std::int64_t>(*seconds * 1e9));
    notify_after_interval();
    return status;
}

void ControlConnection::end_subscription() {
    interval_ = std::chrono::nanoseconds(0);
    interval_timer_.cancel();
}

Reply ControlConnection::make_reply(const RpcCall& call, const ExchangePtr& exchange, std::size_t index) {
    RpcCall reminder;  // id and method only: parameters may be large
    reminder.id = call.id;
    reminder.notification = call.notification;
    reminder.method = call.method;
    return Reply([weak = weak_from_this(), gate = context_->gate, reminder = std::move(reminder), exchange,
                  index](Answer result) {
        gate->post([weak, reminder, exchange, index, result = std::move(result)] {
            const auto self = weak.lock();
            if (!self) return;
            self->guarded([&] { self->answer(reminder, exchange, index, result); });
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
        if (exchange->answer_bytes + text.size() > context_->options.send_buffer_bytes) {
            text = rpc_error_text(call.id,
                                  RpcError(rpc_internal_error, "the answer is larger than the send buffer"));
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

void ControlConnection::tell() {
    if (interval_.count() == 0) return;
    guarded([this] { notify(); });
}

void ControlConnection::notify_after_interval() {
    interval_timer_.expires_after(interval_);  // cancels the wait before
    interval_timer_.async_wait([self = shared_from_this()](error_code error) {
        if (error || self->interval_.count() == 0) return;
        self->guarded([&] { self->notify(); });
    });
}

void ControlConnection::notify() {
    notify_after_interval();
    if (notification_queued_) {
        context_->skipped.add();
        return;
    }
    std::string line;
    try {
        line = rpc_notification_text("status", context_->handler.status());
    } catch (const std::exception& error) {
        context_->log_limit.log(LogLevel::error, "status", "control: status failed: {}", error.what());
        return;
    }
    send(std::move(line), true);
}

void ControlConnection::send(std::string line, bool notification) {
    if (closed_) return;
    line += '\n';
    output_bytes_ += line.size();
    notification_queued_ = notification_queued_ || notification;
    output_.push_back({std::move(line), notification});
    if (output_.size() == 1) {
        write();
    } else if (output_bytes_ > context_->options.send_buffer_bytes) {
        drop("it does not read what it asked for");
    }
}

void ControlConnection::write() {
    stall_timer_.expires_after(context_->options.stall_timeout);
    stall_timer_.async_wait([self = shared_from_this()](error_code error) {
        // A wait that ended while the write did is told from a stall by the expiry moved on since.
        if (error || self->output_.empty() ||
            self->stall_timer_.expiry() > boost::asio::steady_timer::clock_type::now()) {
            return;
        }
        self->drop("it reads nothing");
    });
    boost::asio::async_write(socket_, boost::asio::buffer(output_.front().text),
                             [self = shared_from_this()](error_code error, std::size_t) {
                                 if (error) return self->close();
                                 self->guarded([&] {
                                     self->output_bytes_ -= self->output_.front().text.size();
                                     if (self->output_.front().notification)
                                         self->notification_queued_ = false;
                                     self->output_.pop_front();
                                     if (!self->output_.empty()) {
                                         self->write();
                                     } else {
                                         self->stall_timer_.cancel();
                                         if (self->disconnecting_) return self->close();
                                     }
                                     self->schedule();
                                 });
                             });
}

}  // namespace petacq::daemon
