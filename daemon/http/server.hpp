// The HTTP server: the live page, status and metrics, for browsers and monitors. docs/reference/http.md
// describes it.
//
// The server has a thread and an io_context of its own and shows what publish() gave it. Clients cannot reach
// the control thread or the acquisition, except to start or stop a run where that is allowed.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "config/configuration.hpp"
#include "config/scanner/scanner.hpp"
#include "daemon/control/server.hpp"
#include "daemon/http/resources.hpp"

namespace petacq::daemon {

struct HttpOptions {
    std::string listen = "127.0.0.1:0";   ///< ADDRESS:PORT; port 0: any free one
    std::vector<std::string> host_names;  ///< accepted in Host besides localhost and numeric addresses
    std::uint32_t max_connections = 64;
    std::chrono::milliseconds request_timeout{
        10'000};  ///< to send a request, to find its answer, and to receive it
    std::chrono::milliseconds control_timeout{300'000};  ///< to start or stop a run
    std::chrono::milliseconds idle_timeout{30'000};      ///< between two requests
    std::uint64_t max_request_bytes = 65'536;            ///< in the body of a request
    std::string chart_library;                           ///< its text; empty: none
    std::string control_token;                           ///< without one nobody may start or stop runs
    std::filesystem::path data_dir;                      ///< of the runs, for their reports; empty: none
    std::filesystem::path history_file;  ///< keeps what the daemon knows of the past; empty: none does
};

/// Functions that pass requests of clients to the control thread. The server calls them in its own thread, so
/// they must not block. A function that is empty stands for a request that is not allowed.
struct HttpControl {
    std::function<void(StartRequest, Reply)> start{};
    std::function<void(StopRequest, Reply)> stop{};
    std::function<void(std::string, Reply)> mark{};
    std::function<void(RunsRequest, Reply)> runs{};
};

/// Text of the chart library. If the file cannot be read, logs a warning and returns "".
std::string read_chart_library(const std::string& file);
/// Options of the configuration, including the text of the chart library and the token. Throws
/// std::runtime_error, which names the file, if there is no usable token.
HttpOptions http_options(const config::Configuration& configuration);
/// Functions that call the handler in the thread that runs `io`; start, stop and mark only if clients may.
/// Both outlive the server.
HttpControl control_through(boost::asio::io_context& io, ControlHandler& handler, bool allow_control);

/// Serves clients from construction until close().
class HttpServer {
  public:
    /// Throws std::runtime_error naming the address if the server cannot listen on it.
    HttpServer(HttpOptions options, const config::Scanner& scanner, HttpControl control = {},
               SpectraSource spectra = {}, QuickLookSource quick_look = {});
    HttpServer(const HttpServer&) = delete;
    HttpServer& operator=(const HttpServer&) = delete;
    ~HttpServer();

    /// Shows this from now on. Any thread.
    void publish(Publication publication);
    /// Answers from what is kept of the past. Any thread.
    void history(const HistoryRequest& request, const Reply& reply);
    /// The port in use.
    [[nodiscard]] std::uint16_t port() const;
    /// Disconnects all clients and joins the server's thread. Idempotent. Do not call it from that thread.
    void close();
    /// Any thread; waits for the server's thread to answer.
    [[nodiscard]] HttpStatistics statistics() const;

  private:
    class Implementation;
    std::unique_ptr<Implementation> implementation_;
};

}  // namespace petacq::daemon
