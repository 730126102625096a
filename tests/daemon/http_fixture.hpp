// An HTTP server with a status document under the test's command, and clients that say what they are told to,
// byte by byte.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "daemon/http_server.hpp"

namespace petacq::test {

struct HttpAnswer {
    int status = 0;
    std::string reason;
    std::map<std::string, std::string> headers;  ///< names in lower case
    std::string body;
};

/// A TCP connection to 127.0.0.1.
class HttpClient {
  public:
    /// Throws std::runtime_error when it is not accepted.
    explicit HttpClient(std::uint16_t port);
    ~HttpClient();
    HttpClient(const HttpClient&) = delete;
    HttpClient& operator=(const HttpClient&) = delete;

    /// False when the server has gone.
    bool send(const std::string& bytes);
    /// No more will be sent.
    void half_close();
    /// The next answer; status 0 when the connection ends before one. `to_head`: it has no body.
    HttpAnswer answer(bool to_head = false);
    /// Whether the server closes the connection without another answer.
    bool closed();

  private:
    bool more();
    int fd_;
    std::string input_;
};

/// One request on a connection of its own; Host is localhost unless it is among the headers.
HttpAnswer http(std::uint16_t port, const std::string& method, const std::string& target,
                const std::map<std::string, std::string>& headers = {}, const std::string& body = "");
HttpAnswer http_get(std::uint16_t port, const std::string& target);

/// Two modules of six crystals each, around a ring.
config::Geometry small_ring();
/// A status document in which everything is known: `n` makes counters and rates larger.
nlohmann::json full_status(std::uint64_t n = 1);
/// Histograms for small_ring(): counts rise with `n`.
std::shared_ptr<const gpu::SinglesHistograms> ring_histograms(std::uint64_t n);

/// Waits until the server shows a status with that uptime.
bool shows_uptime(std::uint16_t port, double uptime_s);

std::string read_text(const std::string& file);

}  // namespace petacq::test
