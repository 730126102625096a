#include "daemon/http/content.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "daemon/http/metrics.hpp"
#include "daemon/http/page/page_assets.hpp"
#include "daemon/http/singles.hpp"
#include "daemon/system/recent_log.hpp"
#include "daemon/system/utc.hpp"

namespace petacq::daemon {

namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

constexpr std::size_t history_rows = 600;  // ten minutes
/// The control thread publishes every second; if it has not for this long, it is stuck.
constexpr std::chrono::seconds stale{10};

std::shared_ptr<const std::string> shared(std::string text) {
    return std::make_shared<const std::string>(std::move(text));
}

std::string log_document(const std::vector<LogEvent>& log) {
    json events = json::array();
    for (const LogEvent& event : log)
        events.push_back(
            {{"time", utc_text(event.time)}, {"level", config::name_of(event.level)}, {"text", event.text}});
    return json_text({{"events", std::move(events)}});
}

}  // namespace

std::string json_text(const json& document) {
    return document.dump(-1, ' ', false, json::error_handler_t::replace);
}

Publication::Publication() : status(std::make_shared<const json>()) {}

Publication::Publication(json status_document,
                         std::shared_ptr<const gpu::SinglesHistograms> histograms_since_start,
                         std::chrono::steady_clock::time_point taken,
                         std::shared_ptr<const Second> latest_second)
    : status(std::make_shared<const json>(std::move(status_document))),
      histograms(std::move(histograms_since_start)),
      histograms_taken(taken),
      second(std::move(latest_second)) {}

HttpContent::HttpContent(const config::Geometry& geometry, std::string chart_library, SpectraSource spectra,
                         QuickLookSource quick_look)
    : geometry_(geometry),
      chart_library_(chart_library.empty() ? nullptr : shared(std::move(chart_library))),
      spectra_(std::move(spectra)),
      quick_look_(std::move(quick_look)),
      published_at_(Clock::now()),
      history_(history_rows) {}

void HttpContent::publish(Publication publication) {
    if (publication.histograms != now_.histograms && now_.histograms) {
        histograms_before_ = std::move(now_.histograms);
        histograms_before_taken_ = now_.histograms_taken;
    }
    now_ = std::move(publication);
    published_at_ = Clock::now();
    history_.add(*now_.status, std::chrono::system_clock::now());
    day_.add(*now_.status, std::chrono::system_clock::now());
    made_.clear();
}

std::optional<HttpResource> HttpContent::get(std::string_view path, const HttpStatistics& statistics) {
    if (path == "/healthz") return health();
    if (path == "/chart.js" && chart_library_) {
        return HttpResource{200, "text/javascript; charset=utf-8", chart_library_, true};
    }
    for (const PageAsset& asset : page_assets()) {
        if (path == asset.path) return HttpResource{200, asset.type, asset.text, true};
    }
    auto found = made_.find(path);
    if (found == made_.end()) {
        std::string text = make(path);
        if (text.empty() && path != "/metrics") return std::nullopt;
        found = made_.emplace(path, shared(std::move(text))).first;
    }
    if (path != "/metrics") return HttpResource{200, "application/json", found->second, false};
    const double age = std::chrono::duration<double>(Clock::now() - published_at_).count();
    return HttpResource{200, metrics_content_type, shared(*found->second + http_metrics(statistics, age)),
                        false};
}

std::string HttpContent::make(std::string_view path) const {
    if (path == "/metrics") return daemon_metrics(*now_.status);
    if (path == "/status") return json_text(*now_.status);
    if (path == "/randoms") return randoms_document(now_.second.get());
    if (path == "/history") return history_.text();
    if (path == "/history/day") return day_.text(std::chrono::system_clock::now());
    if (path == "/log") return log_document(recent_log().events());
    if (const auto unit = unit_of(path, geometry_)) {
        return unit_spectra_document(geometry_, *unit, spectra_ ? spectra_(*unit) : nullptr);
    }
    if (path == "/sinogram" || path == "/image") {
        const auto shown = quick_look_ ? quick_look_() : nullptr;
        if (!shown) return "null";
        return path == "/image" ? shown->image : shown->sinogram;
    }
    if (path != "/singles") return "";
    const std::chrono::duration<double> interval = now_.histograms_taken - histograms_before_taken_;
    return singles_document(geometry_, now_.histograms.get(), histograms_before_.get(),
                            histograms_before_ ? interval.count() : 0);
}

HttpResource HttpContent::health() const {
    const double age = std::chrono::duration<double>(Clock::now() - published_at_).count();
    std::string state = "failed";
    json reasons = json::array();
    if (Clock::now() - published_at_ > stale) {
        reasons.push_back(fmt::format("no status for {:.0f} s", age));
    } else if (now_.status->is_null()) {
        reasons.push_back("no status yet");
    } else {
        const json& health = now_.status->at("health");
        state = health.at("state");
        reasons = health.at("reasons");
    }
    const json document = {{"health", state}, {"reasons", std::move(reasons)}};
    return {state == "failed" ? 503U : 200U, "application/json", shared(json_text(document) + '\n'), false};
}

}  // namespace petacq::daemon
