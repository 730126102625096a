#include "daemon/http/server.hpp"

#include <sys/socket.h>

#include <array>
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/host_name.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <fstream>
#include <future>
#include <iterator>
#include <stdexcept>
#include <thread>
#include <utility>

#include "daemon/control/control_token.hpp"
#include "daemon/http/session.hpp"
#include "daemon/system/background_thread.hpp"
#include "daemon/system/file.hpp"
#include "daemon/system/sockets/accept_loop.hpp"

namespace petacq::daemon {

namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;

constexpr std::size_t max_library_bytes = 8U << 20;
/// Rows of the history after which it is written: a minute.
constexpr std::uint64_t rows_between_writes = 2;
/// A reason of health that comes and goes must not keep the disk busy.
constexpr std::chrono::seconds time_between_events{10};

constexpr std::string_view too_many =
    "HTTP/1.1 503 Service Unavailable\r\nServer: petacqd\r\nRetry-After: 1\r\nConnection: close\r\n"
    "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nContent-Type: application/json\r\n"
    "Content-Length: 33\r\n\r\n{\"error\":\"too many connections\"}\n";

tcp::endpoint endpoint_of(const std::string& listen) {
    const std::size_t colon = listen.rfind(':');
    if (colon == std::string::npos)
        throw std::runtime_error("http.listen: expected ADDRESS:PORT, found " + listen);
    std::string address = listen.substr(0, colon);
    if (!address.empty() && address.front() == '[') address = address.substr(1, address.size() - 2);
    return {boost::asio::ip::make_address(address),
            static_cast<std::uint16_t>(std::stoul(listen.substr(colon + 1)))};
}

/// No run id starts with a dot. Hosts that share a data directory have a file each.
std::filesystem::path history_file(const std::filesystem::path& data_dir) {
    error_code ignored;
    return data_dir / (".petacqd-history-" + boost::asio::ip::host_name(ignored) + ".json");
}

}  // namespace

std::string read_chart_library(const std::string& file) {
    if (file.empty()) return "";
    std::ifstream in(file, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(in), {}};
    if (in.bad() || text.empty() || text.size() > max_library_bytes) {
        log_warning(
            "http: {} cannot be read: the live page shows tables without charts; install libjs-chart.js",
            file);
        return "";
    }
    return text;
}

HttpOptions http_options(const config::Configuration& configuration) {
    const config::Http& http = configuration.http;
    HttpOptions o;
    o.listen = http.listen;
    o.host_names = http.host_names;
    o.max_connections = http.max_connections;
    o.request_timeout = std::chrono::milliseconds(http.request_timeout_ms);
    o.idle_timeout = std::chrono::milliseconds(http.idle_timeout_ms);
    o.max_request_bytes = http.max_request_bytes;
    o.chart_library = read_chart_library(http.chart_library);
    if (http.allow_control) o.control_token = read_control_token(http.control_token_file);
    o.data_dir = configuration.data_dir;
    o.history_file = history_file(configuration.data_dir);
    return o;
}

HttpControl control_through(boost::asio::io_context& io, ControlHandler& handler, bool allow_control) {
    HttpControl control;
    control.runs = [&io, &handler](RunsRequest request, const Reply& reply) {
        boost::asio::post(io,
                          [&handler, request = std::move(request), reply] { handler.runs(request, reply); });
    };
    if (!allow_control) return control;
    control.start = [&io, &handler](StartRequest request, const Reply& reply) {
        boost::asio::post(io,
                          [&handler, request = std::move(request), reply] { handler.start(request, reply); });
    };
    control.stop = [&io, &handler](StopRequest request, const Reply& reply) {
        boost::asio::post(io,
                          [&handler, request = std::move(request), reply] { handler.stop(request, reply); });
    };
    control.mark = [&io, &handler](std::string text, const Reply& reply) {
        boost::asio::post(io, [&handler, text = std::move(text), reply] { handler.mark(text, reply); });
    };
    return control;
}

class HttpServer::Implementation {
  public:
    Implementation(HttpOptions options, const config::Scanner& scanner, HttpControl control,
                   SpectraSource spectra, QuickLookSource quick_look)
        : io_(1), work_(io_.get_executor()), loop_(std::make_shared<AcceptLoop<tcp>>(io_, "http")) {
        const std::string where = options.listen;
        context_ = std::make_shared<HttpContext>(io_, std::move(options), scanner, std::move(control),
                                                 std::move(spectra), std::move(quick_look));
        try {
            const tcp::endpoint endpoint = endpoint_of(where);
            tcp::acceptor& acceptor = loop_->acceptor();
            acceptor.open(endpoint.protocol());
            acceptor.set_option(tcp::acceptor::reuse_address(true));
            acceptor.bind(endpoint);
            acceptor.listen();
            port_ = acceptor.local_endpoint().port();
            if (!endpoint.address().is_loopback()) {
                log_warning(
                    "http: {} is not a loopback address: everybody who can reach it sees everything{}", where,
                    control_allowed() ? ", and may start and stop runs if they have the token" : "");
            }
        } catch (const boost::system::system_error& e) {
            throw std::runtime_error("http.listen: cannot listen on " + where + ": " + e.code().message());
        }
    }

    void start() {
        read_history();
        loop_->start([this](tcp::socket client) { admit(std::move(client)); });
        thread_ = serving_thread("http", io_);
    }

    void close() {
        if (!thread_.joinable()) return;
        context_->gate->shut();
        boost::asio::post(io_, [this] {
            loop_->close();
            const auto open = context_->sessions;
            for (const auto& session : open)
                session->close();
            work_.reset();
        });
        thread_.join();
        context_->files.join();
        History& history = context_->resources.history();
        history.stop(std::chrono::system_clock::now());
        write_history(context_->options.history_file, history.file_text());
    }

    void publish(Publication publication) {
        // A handler must be copyable.
        auto shared = std::make_shared<Publication>(std::move(publication));
        boost::asio::post(io_, [this, shared] {
            context_->resources.publish(std::move(*shared));
            keep_history();
        });
    }

    void history(const HistoryRequest& request, const Reply& reply) {
        boost::asio::post(io_, [this, request, reply] {
            const auto now = std::chrono::system_clock::now();
            reply.result(context_->resources.history().between(
                request.since.value_or(now - std::chrono::hours(24)), request.until.value_or(now)));
        });
    }

    HttpStatistics statistics() {
        if (!thread_.joinable()) return context_->statistics;
        std::promise<HttpStatistics> promise;
        auto result = promise.get_future();
        boost::asio::post(io_, [&] { promise.set_value(context_->statistics); });
        return result.get();
    }

    [[nodiscard]] std::uint16_t port() const { return port_; }

  private:
    void read_history() {
        const std::filesystem::path& file = context_->options.history_file;
        std::error_code none;
        if (file.empty() || !std::filesystem::exists(file, none)) return;
        try {
            if (!std::filesystem::is_regular_file(file) ||
                std::filesystem::file_size(file) > History::max_file_bytes)
                throw std::runtime_error("not a history of rates: too large");
            std::ifstream in(file, std::ios::binary);
            const std::string text{std::istreambuf_iterator<char>(in), {}};
            context_->resources.history().read(text, std::chrono::system_clock::now());
        } catch (const std::exception& error) {
            log_warning("http: {}: {}; the history starts anew", file.string(), error.what());
        }
    }

    /// Has another thread write the history about once a minute, whenever a run starts or stops, and soon
    /// after another event, one write at a time.
    void keep_history() {
        const History& history = context_->resources.history();
        const auto now = std::chrono::steady_clock::now();
        const bool due =
            history.completed() >= written_ + rows_between_writes ||
            history.run_changes() != run_changes_written_ ||
            (history.event_changes() != event_changes_written_ && now >= written_at_ + time_between_events);
        if (context_->options.history_file.empty() || *writing_ || !due) return;
        written_ = history.completed();
        run_changes_written_ = history.run_changes();
        event_changes_written_ = history.event_changes();
        written_at_ = now;
        writing_->store(true);
        boost::asio::post(context_->files, [file = context_->options.history_file, text = history.file_text(),
                                            writing = writing_] {
            write_history(file, text);
            writing->store(false);
        });
    }

    static void write_history(const std::filesystem::path& file, const std::string& text) {
        if (file.empty()) return;
        try {
            replace_file(file, text);
        } catch (const std::exception& error) {
            log_warning("http: the history is not kept: {}", error.what());
        }
    }

    [[nodiscard]] bool control_allowed() const { return context_->control.start != nullptr; }

    void admit(tcp::socket client) {
        if (context_->sessions.size() >= context_->options.max_connections) return refuse(client);
        error_code ignored;
        client.set_option(tcp::no_delay(true), ignored);
        std::make_shared<HttpSession>(std::move(client), context_)->start();
    }

    void refuse(tcp::socket& client) {
        ++context_->statistics.refused;
        // The send buffer of a new connection has room for it; do not wait for its arrival.
        static_cast<void>(
            ::send(client.native_handle(), too_many.data(), too_many.size(), MSG_DONTWAIT | MSG_NOSIGNAL));
        ::shutdown(client.native_handle(), SHUT_WR);
        // Closing a socket with unread input would discard the answer.
        std::array<char, 4096> waste{};
        static_cast<void>(::recv(client.native_handle(), waste.data(), waste.size(), MSG_DONTWAIT));
        context_->log_limit.log(LogLevel::warning, "refuse", "http: refused a client: {} are connected",
                                context_->options.max_connections);
    }

    boost::asio::io_context io_;
    boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
    std::shared_ptr<AcceptLoop<tcp>> loop_;
    std::shared_ptr<HttpContext> context_;
    std::uint16_t port_ = 0;
    std::uint64_t written_ = 0;  ///< rows of the history completed when it was last written
    std::uint64_t run_changes_written_ = 0;
    std::uint64_t event_changes_written_ = 0;
    std::chrono::steady_clock::time_point written_at_;
    const std::shared_ptr<std::atomic<bool>> writing_ = std::make_shared<std::atomic<bool>>(false);
    std::jthread thread_;
};

HttpServer::HttpServer(HttpOptions options, const config::Scanner& scanner, HttpControl control,
                       SpectraSource spectra, QuickLookSource quick_look)
    : implementation_(std::make_unique<Implementation>(std::move(options), scanner, std::move(control),
                                                       std::move(spectra), std::move(quick_look))) {
    implementation_->start();
}

HttpServer::~HttpServer() {
    implementation_->close();
}

void HttpServer::publish(Publication publication) {
    implementation_->publish(std::move(publication));
}

void HttpServer::history(const HistoryRequest& request, const Reply& reply) {
    implementation_->history(request, reply);
}

std::uint16_t HttpServer::port() const {
    return implementation_->port();
}

void HttpServer::close() {
    implementation_->close();
}

HttpStatistics HttpServer::statistics() const {
    return implementation_->statistics();
}

}  // namespace petacq::daemon
