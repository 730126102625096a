// The resources of the HTTP server: the live page and the documents that the page reads. Each document is
// made at most once from each published status, however many clients ask for it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "config/scanner/scanner.hpp"
#include "daemon/http/history.hpp"
#include "daemon/http/unit_spectra.hpp"
#include "daemon/seconds/second.hpp"
#include "daemon/sinogram/quick_look.hpp"
#include "gpu/pipeline.hpp"

namespace petacq::daemon {

/// Text from outside, such as the note of a run, need not be UTF-8: replaces what is not.
std::string json_text(const nlohmann::json& document);

/// One reading of the daemon, as the HTTP server shows it.
struct Publication {
    Publication();  ///< nothing yet
    Publication(nlohmann::json status_document,
                std::shared_ptr<const gpu::SinglesHistograms> histograms_since_start,
                std::chrono::steady_clock::time_point taken,
                std::shared_ptr<const Second> latest_second = nullptr);

    std::shared_ptr<const nlohmann::json> status;              ///< the status document; JSON null: none yet
    std::shared_ptr<const gpu::SinglesHistograms> histograms;  ///< since the start; nullptr: none yet
    std::chrono::steady_clock::time_point histograms_taken;
    std::shared_ptr<const Second> second;  ///< the latest; nullptr: none yet
    std::chrono::system_clock::time_point made = std::chrono::system_clock::now();
};

/// Counters of the HTTP server itself.
struct HttpStatistics {
    std::uint64_t connections = 0;              ///< open now
    std::uint64_t accepted = 0;                 ///< connections served
    std::uint64_t refused = 0;                  ///< connections beyond max_connections
    std::uint64_t timeouts = 0;                 ///< connections closed for being too slow
    std::map<unsigned, std::uint64_t> answers;  ///< by status code
};

struct HttpResource {
    unsigned status = 200;
    const char* type = "application/json";
    std::shared_ptr<const std::string> body;
    bool asset = false;            ///< part of the page, which does not change while the daemon runs
    const char* policy = nullptr;  ///< Content-Security-Policy; nullptr: that of the page
};

/// The live sinogram and the quick-look image; nullptr: there is none yet. Called in the thread of the
/// server; it must not block. Empty: none.
using QuickLookSource = std::function<std::shared_ptr<const QuickLookDocuments>()>;

/// Who answers a request for a path. HttpResources has the resources; the control thread answers requests for
/// the list of runs, and commands.
enum class HttpTarget : std::uint8_t { resource, runs, start, stop, mark };

/// Belongs to one thread.
class HttpResources {
  public:
    /// `chart_library`: its text; empty: none. `commands_allowed`: whether there is control over HTTP.
    HttpResources(const config::Scanner& scanner, std::string chart_library, bool commands_allowed,
                  SpectraSource spectra = {}, QuickLookSource quick_look = {});

    static HttpTarget target_of(std::string_view path);

    void publish(Publication publication);
    /// The resource at a path (without query), if there is one.
    std::optional<HttpResource> get(std::string_view path, const HttpStatistics& statistics);
    [[nodiscard]] History& history() { return history_; }

  private:
    using Text = std::shared_ptr<const std::string>;

    struct Row;
    static const Row rows[];
    static const Row* row_of(std::string_view path);

    /// The document at a path, made by `make` unless it has been made from now_.
    template <class Make>
    HttpResource document(std::string_view path, const Make& make);
    [[nodiscard]] double age_s() const;
    HttpResource health(std::string_view path, const HttpStatistics& statistics);
    HttpResource scanner(std::string_view path, const HttpStatistics& statistics);
    HttpResource metrics(std::string_view path, const HttpStatistics& statistics);
    [[nodiscard]] std::string quick_look_text(std::string QuickLookDocuments::*which) const;
    [[nodiscard]] std::string singles() const;

    const config::Geometry geometry_;
    const Text scanner_;  ///< the document
    const Text chart_library_;
    const bool commands_allowed_;
    const SpectraSource spectra_;
    const QuickLookSource quick_look_;
    Publication now_;
    std::chrono::steady_clock::time_point published_at_;  ///< host time of now_
    /// The previous histograms, for the singles of the interval.
    std::shared_ptr<const gpu::SinglesHistograms> histograms_before_;
    std::chrono::steady_clock::time_point histograms_before_taken_;
    History history_;
    std::map<std::string, Text, std::less<>> made_;  ///< documents of now_, by path
};

}  // namespace petacq::daemon
