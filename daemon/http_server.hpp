// The HTTP server: the live page, status and metrics, for browsers and monitors. docs/http.md describes it.
//
// It has a thread and an io_context of its own and is told what to show by publish(); nothing that a client
// does reaches the control thread or the acquisition, except a start or a stop, and those only when allowed.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "config/configuration.hpp"
#include "config/scanner.hpp"
#include "daemon/control_server.hpp"
#include "daemon/http_content.hpp"

namespace petacq::daemon {

struct HttpOptions {
    std::string listen = "127.0.0.1:0";   ///< ADDRESS:PORT; port 0: any free one
    std::vector<std::string> host_names;  ///< accepted in Host beside localhost and numeric addresses
    std::uint32_t max_connections = 64;
    std::chrono::milliseconds request_timeout{10'000};  ///< to send a request, and to take its answer
    std::chrono::milliseconds idle_timeout{30'000};     ///< between requests
    std::uint64_t max_request_bytes = 65'536;           ///< of a body
    std::string chart_library;                          ///< text; empty: none
};

/// Both are called in the thread of the server and must not block. Empty: not allowed.
struct HttpControl {
    std::function<void(StartRequest, Reply)> start;
    std::function<void(Reply)> stop;
};

/// Text of the chart library; empty, with a warning in the log, when it cannot be read.
std::string read_chart_library(const std::string& file);
/// With the chart library read.
HttpOptions http_options(const config::Http& http);
/// Has a handler called in the thread that runs `io`. Both outlive the server.
HttpControl control_through(boost::asio::io_context& io, ControlHandler& handler);

/// Serves from construction to close().
class HttpServer {
  public:
    /// Throws std::runtime_error naming the address when it cannot be listened on.
    HttpServer(HttpOptions options, const config::Geometry& geometry, HttpControl control = {});
    HttpServer(const HttpServer&) = delete;
    HttpServer& operator=(const HttpServer&) = delete;
    ~HttpServer();

    /// What is shown from now on. Any thread.
    void publish(Publication publication);
    /// The one in use.
    [[nodiscard]] std::uint16_t port() const;
    /// Disconnects everybody and joins the thread. Idempotent. Not from within the server's thread.
    void close();
    /// Any thread; waits for the server's.
    [[nodiscard]] HttpStatistics statistics() const;

  private:
    class Implementation;
    std::unique_ptr<Implementation> implementation_;
};

}  // namespace petacq::daemon
