// HTTP clients that send exactly the given bytes, and status documents to publish.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "daemon/http/server.hpp"

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

    /// False when the server has closed the connection.
    bool send(const std::string& bytes);
    /// Closes the sending side.
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

/// One request on a new connection; Host is localhost unless the headers contain it.
HttpAnswer http(std::uint16_t port, const std::string& method, const std::string& target,
                const std::map<std::string, std::string>& headers = {}, const std::string& body = "");
HttpAnswer http_get(std::uint16_t port, const std::string& target);
/// The JSON in the answer.
nlohmann::json http_document(std::uint16_t port, const std::string& target);

/// Two modules of six crystals each, around a ring.
config::Scanner small_ring();
/// A complete status document; counters and rates grow with `n`.
nlohmann::json full_status(std::uint64_t n = 1);
/// Histograms for small_ring(): counts rise with `n`.
std::shared_ptr<const gpu::SinglesHistograms> ring_histograms(std::uint64_t n);

/// Waits until the server shows a status with that uptime.
bool shows_uptime(std::uint16_t port, double uptime_s);

}  // namespace petacq::test
