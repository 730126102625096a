#include "daemon/http/resources.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "daemon/http/metrics.hpp"
#include "daemon/http/page/page_assets.hpp"
#include "daemon/http/scanner_document.hpp"
#include "daemon/http/singles.hpp"
#include "daemon/system/recent_log.hpp"
#include "daemon/system/utc.hpp"

namespace petacq::daemon {

namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

/// The control thread publishes every second; if it has not for this long, it is stuck.
constexpr double stale_s = 10;

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

/// A path, and what is there: a document made once from each status (`make`), one that is made anew for each
/// request (`answer`), or what the control thread answers. A path that names a unit, a file of the page or a
/// report is no row.
struct HttpResources::Row {
    std::string_view path;
    std::string (*make)(const HttpResources&) = nullptr;
    HttpResource (HttpResources::*answer)(std::string_view path, const HttpStatistics&) = nullptr;
    HttpTarget target = HttpTarget::resource;
};

const HttpResources::Row HttpResources::rows[] = {
    {"/status", [](const HttpResources& r) { return json_text(*r.now_.status); }},
    {"/healthz", nullptr, &HttpResources::health},
    {"/metrics", nullptr, &HttpResources::metrics},
    {"/singles", [](const HttpResources& r) { return r.singles(); }},
    {"/scanner", nullptr, &HttpResources::scanner},
    {"/randoms", [](const HttpResources& r) { return randoms_document(r.now_.second.get()); }},
    {"/history", [](const HttpResources& r) { return r.history_.recent_text(); }},
    {"/history/day",
     [](const HttpResources& r) { return r.history_.day_text(std::chrono::system_clock::now()); }},
    {"/log", [](const HttpResources&) { return log_document(recent_log().events()); }},
    {"/sinogram", [](const HttpResources& r) { return r.quick_look_text(&QuickLookDocuments::sinogram); }},
    {"/image", [](const HttpResources& r) { return r.quick_look_text(&QuickLookDocuments::image); }},
    {"/gammas", [](const HttpResources& r) { return r.quick_look_text(&QuickLookDocuments::gammas); }},
    {"/control",
     [](const HttpResources& r) {
         return json_text({{"allowed", r.commands_allowed_}});
     }},
    {"/control/start", nullptr, nullptr, HttpTarget::start},
    {"/control/stop", nullptr, nullptr, HttpTarget::stop},
    {"/control/mark", nullptr, nullptr, HttpTarget::mark},
    {"/runs", nullptr, nullptr, HttpTarget::runs},
};

const HttpResources::Row* HttpResources::row_of(std::string_view path) {
    const auto* const found =
        std::find_if(std::begin(rows), std::end(rows), [&](const Row& row) { return row.path == path; });
    return found == std::end(rows) ? nullptr : found;
}

HttpTarget HttpResources::target_of(std::string_view path) {
    const Row* const row = row_of(path);
    return row == nullptr ? HttpTarget::resource : row->target;
}

HttpResources::HttpResources(const config::Scanner& scanner, std::string chart_library, bool commands_allowed,
                             SpectraSource spectra, QuickLookSource quick_look)
    : geometry_(scanner.geometry),
      scanner_(shared(scanner_document(scanner))),
      chart_library_(chart_library.empty() ? nullptr : shared(std::move(chart_library))),
      commands_allowed_(commands_allowed),
      spectra_(std::move(spectra)),
      quick_look_(std::move(quick_look)),
      published_at_(Clock::now()) {}

void HttpResources::publish(Publication publication) {
    if (publication.histograms != now_.histograms && now_.histograms) {
        histograms_before_ = std::move(now_.histograms);
        histograms_before_taken_ = now_.histograms_taken;
    }
    now_ = std::move(publication);
    published_at_ = Clock::now();
    history_.add(*now_.status, now_.made);
    made_.clear();
}

std::optional<HttpResource> HttpResources::get(std::string_view path, const HttpStatistics& statistics) {
    if (const Row* const row = row_of(path)) {
        if (row->answer != nullptr) return (this->*row->answer)(path, statistics);
        if (row->make == nullptr) return std::nullopt;
        return document(path, [&] { return row->make(*this); });
    }
    if (const auto unit = unit_of(path, geometry_)) {
        return document(path, [&] {
            return unit_spectra_document(geometry_, *unit, spectra_ ? spectra_(*unit) : nullptr);
        });
    }
    if (path == "/chart.js" && chart_library_)
        return HttpResource{200, "text/javascript; charset=utf-8", chart_library_, true};
    for (const PageAsset& asset : page_assets()) {
        if (path == asset.path) return HttpResource{200, asset.type, asset.text, true};
    }
    return std::nullopt;
}

template <class Make>
HttpResource HttpResources::document(std::string_view path, const Make& make) {
    auto found = made_.find(path);
    if (found == made_.end()) found = made_.emplace(path, shared(make())).first;
    return {200, "application/json", found->second, false};
}

double HttpResources::age_s() const {
    return std::chrono::duration<double>(Clock::now() - published_at_).count();
}

std::string HttpResources::quick_look_text(std::string QuickLookDocuments::*which) const {
    const auto shown = quick_look_ ? quick_look_() : nullptr;
    return shown ? (*shown).*which : "null";
}

std::string HttpResources::singles() const {
    const std::chrono::duration<double> interval = now_.histograms_taken - histograms_before_taken_;
    return singles_document(geometry_, now_.histograms.get(), histograms_before_.get(),
                            histograms_before_ ? interval.count() : 0);
}

HttpResource HttpResources::scanner(std::string_view /*path*/, const HttpStatistics& /*statistics*/) {
    return {200, "application/json", scanner_, false};
}

HttpResource HttpResources::metrics(std::string_view path, const HttpStatistics& statistics) {
    const HttpResource once = document(path, [this] { return daemon_metrics(*now_.status); });
    return {200, metrics_content_type, shared(*once.body + http_metrics(statistics, age_s())), false};
}

HttpResource HttpResources::health(std::string_view /*path*/, const HttpStatistics& /*statistics*/) {
    const double age = age_s();
    std::string state = "failed";
    json reasons = json::array();
    if (age > stale_s) {
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
