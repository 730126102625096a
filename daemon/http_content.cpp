#include "daemon/http_content.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "daemon/http_metrics.hpp"
#include "daemon/http_singles.hpp"
#include "daemon/page/page_assets.hpp"

namespace petacq::daemon {

namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

constexpr std::size_t history_rows = 600;  // ten minutes
/// Published every second; without one for that long the control thread is stuck.
constexpr std::chrono::seconds stale{10};

std::shared_ptr<const std::string> shared(std::string text) {
    return std::make_shared<const std::string>(std::move(text));
}

/// Text from outside, a run's note for instance, need not be UTF-8.
std::string json_text(const json& document) {
    return document.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

HttpContent::HttpContent(const config::Geometry& geometry, std::string chart_library)
    : geometry_(geometry),
      chart_library_(chart_library.empty() ? nullptr : shared(std::move(chart_library))),
      published_at_(Clock::now()),
      history_(history_rows) {}

void HttpContent::publish(Publication publication) {
    if (publication.histograms != now_.histograms && now_.histograms) {
        histograms_before_ = std::move(now_.histograms);
        histograms_before_taken_ = now_.histograms_taken;
    }
    now_ = std::move(publication);
    published_at_ = Clock::now();
    history_.add(now_.status, std::chrono::system_clock::now());
    status_.reset();
    metrics_.clear();
    singles_.reset();
    randoms_.reset();
    history_text_.reset();
}

std::optional<HttpResource> HttpContent::get(std::string_view path, const HttpStatistics& statistics) {
    if (path == "/healthz") return health();
    if (path == "/metrics") return HttpResource{200, metrics_content_type, metrics(statistics), false};
    if (path == "/status") return HttpResource{200, "application/json", status(), false};
    if (path == "/singles") return HttpResource{200, "application/json", singles(), false};
    if (path == "/randoms") return HttpResource{200, "application/json", randoms(), false};
    if (path == "/history") return HttpResource{200, "application/json", history(), false};
    if (path == "/chart.js" && chart_library_) {
        return HttpResource{200, "text/javascript; charset=utf-8", chart_library_, true};
    }
    for (const PageAsset& asset : page_assets()) {
        if (path == asset.path) return HttpResource{200, asset.type, asset.text, true};
    }
    return std::nullopt;
}

HttpResource HttpContent::health() const {
    const double age = std::chrono::duration<double>(Clock::now() - published_at_).count();
    std::string state = "failed";
    json reasons = json::array();
    if (Clock::now() - published_at_ > stale) {
        reasons.push_back(fmt::format("no status for {:.0f} s", age));
    } else if (now_.status.is_null()) {
        reasons.push_back("no status yet");
    } else {
        const json& health = now_.status.at("health");
        state = health.at("state");
        reasons = health.at("reasons");
    }
    const json document = {{"health", state}, {"reasons", std::move(reasons)}};
    return {state == "failed" ? 503U : 200U, "application/json", shared(json_text(document) + '\n'), false};
}

HttpContent::Text HttpContent::status() {
    if (!status_) status_ = shared(json_text(now_.status));
    return status_;
}

HttpContent::Text HttpContent::metrics(const HttpStatistics& statistics) {
    if (metrics_.empty()) metrics_ = daemon_metrics(now_.status);
    const double age = std::chrono::duration<double>(Clock::now() - published_at_).count();
    return shared(metrics_ + http_metrics(statistics, age));
}

HttpContent::Text HttpContent::singles() {
    if (!singles_) {
        const double seconds =
            histograms_before_
                ? std::chrono::duration<double>(now_.histograms_taken - histograms_before_taken_).count()
                : 0;
        singles_ =
            shared(singles_document(geometry_, now_.histograms.get(), histograms_before_.get(), seconds));
    }
    return singles_;
}

HttpContent::Text HttpContent::randoms() {
    if (!randoms_) randoms_ = shared(randoms_document(now_.expected_randoms.get()));
    return randoms_;
}

HttpContent::Text HttpContent::history() {
    if (!history_text_) history_text_ = shared(history_.text());
    return history_text_;
}

}  // namespace petacq::daemon
