#include "daemon/http/rate_history.hpp"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

namespace petacq::daemon {

namespace {

double number(const nlohmann::json& section, const char* key) {
    const auto found = section.find(key);
    return found != section.end() && found->is_number() ? found->get<double>() : RateHistory::unknown;
}

}  // namespace

void RateHistory::add(const nlohmann::json& status, std::chrono::system_clock::time_point now) {
    Row row;
    row.time = std::round(std::chrono::duration<double>(now.time_since_epoch()).count() * 1000) / 1000;  // ms
    row.uptime_s = number(status, "uptime_s");
    row.rates.fill(unknown);
    if (const auto rates = status.find("rates"); rates != status.end()) {
        for (std::size_t i = 0; i < columns.size(); ++i)
            row.rates[i] = number(*rates, columns[i]);
    }
    if (ring_.size() < rows_) {
        ring_.push_back(row);
    } else {
        ring_[oldest_] = row;
        oldest_ = (oldest_ + 1) % rows_;
    }
}

std::string RateHistory::text() const {
    fmt::memory_buffer out;
    const auto column = [&](const char* name, auto value) {
        fmt::format_to(std::back_inserter(out), "{}\"{}\":[", out.size() > 0 ? "," : "{", name);
        for (std::size_t i = 0; i < ring_.size(); ++i) {
            const double v = value(ring_[(oldest_ + i) % ring_.size()]);
            if (i > 0) out.push_back(',');
            if (std::isfinite(v)) {
                fmt::format_to(std::back_inserter(out), "{}", v);
            } else {
                fmt::format_to(std::back_inserter(out), "null");
            }
        }
        out.push_back(']');
    };
    column("time", [](const Row& row) { return row.time; });
    column("uptime_s", [](const Row& row) { return row.uptime_s; });
    for (std::size_t i = 0; i < columns.size(); ++i)
        column(columns[i], [i](const Row& row) { return row.rates[i]; });
    out.push_back('}');
    return fmt::to_string(out);
}

}  // namespace petacq::daemon
