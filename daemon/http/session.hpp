// One HTTP connection: reads requests one after the other and answers them. Everything here runs in the
// thread of the server.
#pragma once

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/span_body.hpp>
#include <boost/beast/http/string_body.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "daemon/control/gate.hpp"
#include "daemon/http/reports.hpp"
#include "daemon/http/resources.hpp"
#include "daemon/http/runs_view.hpp"
#include "daemon/http/server.hpp"
#include "daemon/system/logging.hpp"

namespace petacq::daemon {

class HttpSession;

/// Shared by the connections and their server; each connection keeps it alive.
struct HttpContext {
    HttpContext(boost::asio::io_context& io, HttpOptions http_options, const config::Scanner& scanner,
                HttpControl http_control, SpectraSource spectra, QuickLookSource quick_look)
        : options(std::move(http_options)),
          control(std::move(http_control)),
          resources(scanner, options.chart_library, control.start != nullptr, std::move(spectra),
                    std::move(quick_look)),
          gate(std::make_shared<ControlGate>(io)),
          runs(std::make_shared<RunsView>(control.runs, gate, options.request_timeout)) {}

    /// The same report for all of its readers: `text`, or an equal one that is on its way to another.
    std::shared_ptr<const std::string> shared_report(std::shared_ptr<const std::string> text) {
        if (!text) return text;
        for (const auto& held : reports_held)
            if (auto same = held.lock(); same && *same == *text) return same;
        reports_held.push_back(text);
        return text;
    }

    const HttpOptions options;
    const HttpControl control;
    HttpResources resources;
    HttpStatistics statistics;
    const std::shared_ptr<ControlGate> gate;  ///< for answers from the control thread
    const std::shared_ptr<RunsView> runs;
    std::unordered_set<std::shared_ptr<HttpSession>> sessions;
    std::size_t reports_read = 0;                                ///< by `files`, now
    std::vector<std::weak_ptr<const std::string>> reports_held;  ///< on their way to readers
    RateLimit log_limit{std::chrono::seconds(10)};
    boost::asio::thread_pool files{
        1};  ///< reads reports, and writes the history; its work keeps nothing here alive
};

class HttpSession : public std::enable_shared_from_this<HttpSession> {
  public:
    HttpSession(boost::asio::ip::tcp::socket socket, std::shared_ptr<HttpContext> context);
    HttpSession(const HttpSession&) = delete;
    HttpSession& operator=(const HttpSession&) = delete;
    ~HttpSession() = default;

    void start();
    void close();

  private:
    using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;
    using Request = boost::beast::http::request<boost::beast::http::string_body>;
    using Response = boost::beast::http::response<boost::beast::http::span_body<const char>>;

    /// Runs a step. If it throws (at worst, no memory), only this client loses its connection.
    template <class Step>
    void guarded(Step step);
    void await_request();
    void read_request();
    void refuse(boost::beast::error_code error);
    void handle(const Request& request);
    void send_runs();
    void read_and_send(const ReportFile& report);
    void handle_control(const Request& request, const char* method);
    /// Another thread finds the answer. If it does not within `time_limit`, the client gets an error and is
    /// disconnected, so that a disk that hangs does not use up the connections.
    void await_answer(std::chrono::milliseconds time_limit);
    /// Takes the answer of another thread; without effect after the time limit.
    template <class Step>
    void answered(Step step);
    void take(const Answer& answer);
    [[nodiscard]] Reply make_reply();
    void send_json(unsigned status, const std::string& text, const char* allow = nullptr);
    void send_error(unsigned status, const std::string& message, const char* allow = nullptr);
    void send(const HttpResource& resource, const char* allow = nullptr);
    void sent(boost::beast::error_code error);
    /// Ends the connection so that the client still receives the answer.
    void linger();
    void drain(std::size_t left);

    boost::beast::tcp_stream stream_;
    const std::shared_ptr<HttpContext> context_;
    boost::beast::flat_buffer input_;
    std::optional<Parser> parser_;
    // The request being answered.
    bool head_ = false;
    bool keep_alive_ = false;
    unsigned version_ = 11;
    bool awaiting_ = false;  ///< the answer of another thread
    boost::asio::steady_timer time_limit_;
    std::optional<Response> response_;
    std::shared_ptr<const std::string> body_;  ///< of response_
    std::array<char, 4096> waste_{};
    bool closed_ = false;
};

template <class Step>
void HttpSession::guarded(Step step) {
    if (closed_) return;
    try {
        step();
    } catch (const std::exception& error) {
        context_->log_limit.log(LogLevel::warning, "failure", "http: a client was disconnected: {}",
                                error.what());
        close();
    }
}

template <class Step>
void HttpSession::answered(Step step) {
    guarded([&] {
        if (awaiting_) step();
    });
}

}  // namespace petacq::daemon
