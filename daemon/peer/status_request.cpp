#include "daemon/peer/status_request.hpp"

#include <fmt/format.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace petacq::daemon {

namespace {

namespace http = boost::beast::http;
using boost::asio::ip::tcp;
using boost::beast::error_code;

constexpr std::uint32_t max_header_bytes = 16'384;
constexpr std::size_t max_input_bytes = 65'536;

/// One request on a connection of its own. Its handlers keep it alive.
class StatusRequest : public std::enable_shared_from_this<StatusRequest> {
  public:
    StatusRequest(boost::asio::io_context& io, const config::HttpUrl& url)
        : io_(io), url_(url), resolver_(io), stream_(io), input_(max_input_bytes) {
        parser_.header_limit(max_header_bytes);
        parser_.body_limit(max_peer_status_bytes);
    }

    void start() {
        resolver_.async_resolve(
            url_.host, std::to_string(url_.port),
            [self = shared_from_this()](error_code error, const tcp::resolver::results_type& found) {
                if (error) return self->fail("its name is not known", error);
                self->connect(found);
            });
    }
    /// Ends the request. Returns the answer, or that there was none.
    PeerAnswer finish() {
        if (!answer_) answer_ = peer_failure("it gives no answer in time");
        resolver_.cancel();
        stream_.close();
        return *answer_;
    }

  private:
    void connect(const tcp::resolver::results_type& found) {
        if (answer_) return;
        stream_.async_connect(found, [self = shared_from_this()](error_code error, const tcp::endpoint& at) {
            if (error) return self->fail("it cannot be reached", error);
            self->send(at);
        });
    }
    /// A daemon accepts its numeric address as Host; a name it would have to know (http.host_names).
    void send(const tcp::endpoint& at) {
        const std::string address = at.address().to_string();
        request_.set(http::field::host, fmt::format(fmt::runtime(at.address().is_v6() ? "[{}]:{}" : "{}:{}"),
                                                    address, at.port()));
        request_.set(http::field::user_agent, "petacqd");
        request_.set(http::field::connection, "close");
        http::async_write(stream_, request_, [self = shared_from_this()](error_code error, std::size_t) {
            if (error) return self->fail("it ended the connection", error);
            self->receive();
        });
    }
    void receive() {
        http::async_read(
            stream_, input_, parser_, [self = shared_from_this()](error_code error, std::size_t) {
                if (error == http::error::body_limit)
                    return self->end(peer_failure("its answer is too large"));
                if (error) return self->fail("it sends no answer in HTTP", error);
                const auto& response = self->parser_.get();
                self->end(
                    response.result() == http::status::ok
                        ? peer_answer_from(response.body())
                        : peer_failure(fmt::format("it answers with HTTP status {}", response.result_int())));
            });
    }
    void fail(const char* what, const error_code& error) {
        end(peer_failure(fmt::format("{}: {}", what, error.message())));
    }
    void end(PeerAnswer answer) {
        if (answer_) return;  // it came too late
        answer_ = std::move(answer);
        io_.stop();
    }

    boost::asio::io_context& io_;
    const config::HttpUrl url_;
    tcp::resolver resolver_;
    boost::beast::tcp_stream stream_;
    boost::beast::flat_buffer input_;
    http::request<http::empty_body> request_{http::verb::get, "/status", 11};
    http::response_parser<http::string_body> parser_;
    std::optional<PeerAnswer> answer_;
};

}  // namespace

PeerAnswer ask_status(boost::asio::io_context& io, const config::HttpUrl& url,
                      std::chrono::milliseconds limit, const std::stop_token& stopping) {
    io.restart();
    const auto request = std::make_shared<StatusRequest>(io, url);
    request->start();
    if (!stopping.stop_requested()) io.run_for(limit);
    return request->finish();
}

}  // namespace petacq::daemon
