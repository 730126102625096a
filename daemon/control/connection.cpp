#include "daemon/control/connection.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <exception>
#include <nlohmann/json.hpp>
#include <utility>

namespace petacq::daemon {

using boost::system::error_code;

namespace {

/// Calls of one client that may wait for their answers. Further calls are read when some have been answered.
constexpr std::size_t max_unanswered = 64;

bool other_end_closed(int descriptor) {
    pollfd state{descriptor, 0, 0};
    return ::poll(&state, 1, 0) > 0 && (state.revents & (POLLHUP | POLLERR)) != 0;
}

}  // namespace

ControlConnection::ControlConnection(Socket socket, std::shared_ptr<ControlContext> context)
    : socket_(std::move(socket)),
      context_(std::move(context)),
      may_control_(context_->access.allows(socket_.native_handle())),
      stall_timer_(socket_.get_executor()),
      interval_timer_(socket_.get_executor()) {}

void ControlConnection::start() {
    context_->connections.insert(shared_from_this());
    context_->clients.fetch_add(1, std::memory_order_relaxed);
    context_->accepted.add();
    last_used_ = std::chrono::steady_clock::now();
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

void ControlConnection::refuse(const std::string& why) {
    send_last_words(why);
    error_code ignored;
    socket_.close(ignored);
}

void ControlConnection::send_last_words(const std::string& why) {
    const std::string line = rpc_error_text("null", RpcError(rpc_refused, why)) + '\n';
    static_cast<void>(::send(socket_.native_handle(), line.data(), line.size(), MSG_DONTWAIT | MSG_NOSIGNAL));
}

void ControlConnection::drop(const char* why) {
    if (closed_) return;
    context_->dropped.add();
    context_->log_limit.log(LogLevel::warning, why, "control: a client was disconnected: {}", why);
    close();
}

bool ControlConnection::waits_for_nothing() const {
    return unanswered_ == 0 && !scheduled_ && (output_.empty() || subscribed());
}

void ControlConnection::give_way() {
    // In the middle of a message the line would be a part of it.
    if (output_.empty())
        send_last_words("disconnected: others need the connection, and this one was not in use");
    drop("others need its connection");
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
    // Do not read further requests of a client that does not read its answers.
    return output_bytes_ > context_->options.send_buffer_bytes / 2 || unanswered_ >= max_unanswered;
}

// Other clients get their turn after each line: many requests in one packet delay nobody else.
void ControlConnection::next_line() {
    if (disconnecting_ || paused()) return;  // scheduled again after a write or an answer
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
    // The input has ended; an incomplete last line is ignored. A client that closed only its sending side
    // still gets its answers.
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
        "null",
        RpcError(rpc_invalid_request, "invalid request: longer than " +
                                          std::to_string(context_->options.max_request_bytes) + " bytes")));
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
    try {
        const auto status = context_->handler.status();
        if (status != context_->status) {
            context_->status_line =
                std::make_shared<const std::string>(rpc_notification_text("status", *status) + '\n');
            context_->status = status;
        }
    } catch (const std::exception& error) {
        context_->log_limit.log(LogLevel::error, "status", "control: status failed: {}", error.what());
        return;
    }
    send(context_->status_line, true);
}

void ControlConnection::send(std::string line) {
    send(std::make_shared<const std::string>(std::move(line += '\n')), false);
}

void ControlConnection::send(std::shared_ptr<const std::string> line, bool notification) {
    if (closed_) return;
    // One message of any size may wait behind the one that is being written.
    const std::size_t waiting = output_.empty() ? 0 : output_bytes_ - output_.front().text->size();
    output_bytes_ += line->size();
    notification_queued_ = notification_queued_ || notification;
    output_.push_back({std::move(line), notification});
    if (output_.size() == 1) {
        write();
    } else if (waiting > context_->options.send_buffer_bytes) {
        drop("it does not read what it asked for");
    }
}

void ControlConnection::write() {
    stall_timer_.expires_after(context_->stall_timeout);
    stall_timer_.async_wait([self = shared_from_this()](error_code error) {
        // If the wait and the write ended together, the next write has moved the expiry: that is no stall.
        if (error || self->output_.empty() ||
            self->stall_timer_.expiry() > boost::asio::steady_timer::clock_type::now()) {
            return;
        }
        self->drop("it reads nothing");
    });
    boost::asio::async_write(socket_, boost::asio::buffer(*output_.front().text),
                             [self = shared_from_this()](error_code error, std::size_t) {
                                 if (error) return self->close();
                                 self->guarded([&] {
                                     self->last_used_ = std::chrono::steady_clock::now();
                                     self->output_bytes_ -= self->output_.front().text->size();
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
