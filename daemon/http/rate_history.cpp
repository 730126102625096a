#include "daemon/http/rate_history.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
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
    put(row);
}

void RateHistory::put(const Row& row) {
    if (ring_.size() < rows_) {
        ring_.push_back(row);
    } else {
        ring_[oldest_] = row;
        oldest_ = (oldest_ + 1) % rows_;
    }
}

RateHistory::Rates RateHistory::rates_of(const nlohmann::json& row, const std::vector<std::string>& names) {
    Rates rates{};
    for (std::size_t i = 0; i < columns.size(); ++i) {
        const auto found = std::find(names.begin(), names.end(), columns[i]);
        const nlohmann::json value =
            found == names.end() ? nlohmann::json() : row.at(1 + (found - names.begin()));
        rates[i] = value.is_null() ? unknown : value.get<double>();
    }
    return rates;
}

nlohmann::json RateHistory::rows() const {
    const auto number_or_null = [](double value) {
        // Rates need no more than six digits.
        if (!std::isfinite(value)) return nlohmann::json();
        return nlohmann::json(std::strtod(fmt::format("{:.6g}", value).c_str(), nullptr));
    };
    nlohmann::json rows = nlohmann::json::array();
    for (std::size_t i = 0; i < ring_.size(); ++i) {
        nlohmann::json row = nlohmann::json::array({at(i).time});
        for (const double value : at(i).rates)
            row.push_back(number_or_null(value));
        rows.push_back(std::move(row));
    }
    return {{"columns", columns}, {"rows", std::move(rows)}};
}

void RateHistory::read(const nlohmann::json& document, std::chrono::system_clock::time_point now) {
    ring_.clear();
    oldest_ = 0;
    const double end = std::chrono::duration<double>(now.time_since_epoch()).count();
    const auto names = document.at("columns").get<std::vector<std::string>>();
    for (const nlohmann::json& row : document.at("rows")) {
        const auto time = row.at(0).get<double>();
        const Rates rates = rates_of(row, names);
        // A second makes a row.
        if (time > end || time < end - static_cast<double>(rows_) || time < latest()) continue;
        put({time, unknown, rates});
    }
}

double RateHistory::latest() const {
    return ring_.empty() ? 0 : at(ring_.size() - 1).time;
}

std::string RateHistory::text() const {
    fmt::memory_buffer out;
    const auto column = [&](const char* name, auto value) {
        fmt::format_to(std::back_inserter(out), "{}\"{}\":[", out.size() > 0 ? "," : "{", name);
        for (std::size_t i = 0; i < ring_.size(); ++i) {
            const double v = value(at(i));
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
