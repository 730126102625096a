#include "daemon/http/session.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "daemon/system/utc.hpp"

namespace petacq::daemon {

namespace beast = boost::beast;
namespace http = boost::beast::http;
using beast::error_code;
using nlohmann::json;

namespace {

constexpr std::uint32_t max_request_header_bytes = 16'384;
/// Headers, and further requests sent in advance.
constexpr std::size_t max_input_bytes = 65'536;
constexpr std::chrono::seconds linger_time{2};
constexpr std::size_t max_drained_bytes = 1U << 20;

/// Allows only what this daemon serves, and no page to frame it.
constexpr const char* content_security_policy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

std::string http_date() {
    return utc_text(std::chrono::system_clock::now(), "%a, %d %b %Y %H:%M:%S GMT");
}

}  // namespace

HttpSession::HttpSession(boost::asio::ip::tcp::socket socket, std::shared_ptr<HttpContext> context)
    : stream_(std::move(socket)),
      context_(std::move(context)),
      input_(max_input_bytes),
      time_limit_(stream_.get_executor()) {}

void HttpSession::start() {
    context_->sessions.insert(shared_from_this());
    context_->statistics.connections = context_->sessions.size();
    ++context_->statistics.accepted;
    read_request();
}

void HttpSession::close() {
    if (std::exchange(closed_, true)) return;
    context_->sessions.erase(shared_from_this());
    context_->statistics.connections = context_->sessions.size();
    time_limit_.cancel();
    stream_.close();
}

/// A client may take longer between requests than within one.
void HttpSession::await_request() {
    if (input_.size() > 0) return read_request();
    stream_.expires_after(context_->options.idle_timeout);
    stream_.async_read_some(input_.prepare(max_request_header_bytes),
                            [self = shared_from_this()](error_code error, std::size_t bytes) {
                                self->guarded([&] {
                                    if (error) return self->close();
                                    self->input_.commit(bytes);
                                    self->read_request();
                                });
                            });
}

void HttpSession::read_request() {
    parser_.emplace();
    parser_->header_limit(max_request_header_bytes);
    parser_->body_limit(context_->options.max_request_bytes);
    stream_.expires_after(context_->options.request_timeout);
    http::async_read(stream_, input_, *parser_, [self = shared_from_this()](error_code error, std::size_t) {
        self->guarded([&] {
            if (error) return self->refuse(error);
            self->stream_.expires_never();
            const Request request = self->parser_->release();
            self->handle(request);
        });
    });
}

void HttpSession::refuse(error_code error) {
    if (error == beast::error::timeout) {
        ++context_->statistics.timeouts;
        return close();
    }
    if (error == http::error::end_of_stream ||
        error.category() != make_error_code(http::error::bad_method).category()) {
        return close();
    }
    head_ = false;
    keep_alive_ = false;
    version_ = 11;
    if (error == http::error::body_limit) {
        return send_error(413, "the body is larger than http.max_request_bytes");
    }
    if (error == http::error::header_limit || error == http::error::buffer_overflow) {
        return send_error(431, "the header is too large");
    }
    send_error(400, "not an HTTP request: " + error.message());
}

void HttpSession::send_json(unsigned status, const std::string& text, const char* allow) {
    send({status, "application/json", std::make_shared<const std::string>(text + '\n'), false}, allow);
}

void HttpSession::send_error(unsigned status, const std::string& message, const char* allow) {
    send_json(status, json_text({{"error", message}}), allow);
}

void HttpSession::send(const HttpResource& resource, const char* allow) {
    awaiting_ = false;
    time_limit_.cancel();
    ++context_->statistics.answers[resource.status];
    body_ = resource.body;
    response_.emplace(static_cast<http::status>(resource.status), version_);
    Response& r = *response_;
    r.keep_alive(keep_alive_);
    r.set(http::field::date, http_date());
    r.set(http::field::server, "petacqd");
    r.set(http::field::content_type, resource.type);
    r.set(http::field::cache_control, resource.asset ? "no-cache" : "no-store");
    r.set("Content-Security-Policy", resource.policy != nullptr ? resource.policy : content_security_policy);
    r.set("X-Content-Type-Options", "nosniff");
    r.set("X-Frame-Options", "DENY");
    r.set("Referrer-Policy", "no-referrer");
    r.set("Cross-Origin-Resource-Policy", "same-origin");
    if (allow != nullptr) r.set(http::field::allow, allow);
    r.content_length(body_->size());
    if (!head_) r.body() = {body_->data(), body_->size()};
    stream_.expires_after(context_->options.request_timeout);
    http::async_write(stream_, r, [self = shared_from_this()](error_code error, std::size_t) {
        self->guarded([&] { self->sent(error); });
    });
}

void HttpSession::sent(error_code error) {
    response_.reset();
    body_.reset();
    if (error) {
        if (error == beast::error::timeout) ++context_->statistics.timeouts;
        return close();
    }
    if (keep_alive_) return await_request();
    linger();
}

void HttpSession::linger() {
    // Closing a socket with unread input would discard the answer.
    error_code ignored;
    stream_.socket().shutdown(boost::asio::ip::tcp::socket::shutdown_send, ignored);
    stream_.expires_after(linger_time);
    drain(max_drained_bytes);
}

void HttpSession::drain(std::size_t left) {
    stream_.async_read_some(boost::asio::buffer(waste_),
                            [self = shared_from_this(), left](error_code error, std::size_t bytes) {
                                self->guarded([&] {
                                    if (error || bytes >= left) return self->close();
                                    self->drain(left - bytes);
                                });
                            });
}

}  // namespace petacq::daemon
