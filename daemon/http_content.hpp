// What is served over HTTP: the live page and the documents behind it, made at most once from each status
// that is published, however many ask.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "config/scanner.hpp"
#include "daemon/rate_history.hpp"
#include "gpu/pipeline.hpp"
#include "gpu/randoms.hpp"

namespace petacq::daemon {

/// What the daemon has to show at one moment.
struct Publication {
    nlohmann::json status;                                     ///< the status document
    std::shared_ptr<const gpu::SinglesHistograms> histograms;  ///< since the start; null: none yet
    std::chrono::steady_clock::time_point histograms_taken;
    std::shared_ptr<const gpu::ExpectedRandoms> expected_randoms =
        nullptr;  ///< of the latest second; null: not known
};

/// Counters of the HTTP server itself.
struct HttpStatistics {
    std::uint64_t connections = 0;              ///< now
    std::uint64_t accepted = 0;                 ///< connections served
    std::uint64_t refused = 0;                  ///< connections turned away: max_connections
    std::uint64_t timeouts = 0;                 ///< connections closed for being too slow
    std::map<unsigned, std::uint64_t> answers;  ///< by status code
};

struct HttpResource {
    unsigned status = 200;
    const char* type = "application/json";
    std::shared_ptr<const std::string> body;
    bool asset = false;  ///< part of the page: does not change while the daemon lives
};

/// One thread.
class HttpContent {
  public:
    /// Text of the chart library; empty: there is none.
    HttpContent(const config::Geometry& geometry, std::string chart_library);

    void publish(Publication publication);
    /// What stands at a path (without query); none: nothing does.
    std::optional<HttpResource> get(std::string_view path, const HttpStatistics& statistics);

  private:
    using Text = std::shared_ptr<const std::string>;

    HttpResource health() const;
    Text status();
    Text metrics(const HttpStatistics& statistics);
    Text singles();
    Text randoms();
    Text history();

    const config::Geometry geometry_;
    const Text chart_library_;
    Publication now_;
    std::chrono::steady_clock::time_point published_at_;  ///< host time of now_
    /// The histograms before those of now_, for what came in between.
    std::shared_ptr<const gpu::SinglesHistograms> histograms_before_;
    std::chrono::steady_clock::time_point histograms_before_taken_;
    RateHistory history_;
    // Made when first asked for.
    Text status_;
    std::string metrics_;
    Text singles_;
    Text randoms_;
    Text history_text_;
};

}  // namespace petacq::daemon
