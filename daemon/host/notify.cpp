#include "daemon/host/notify.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>

#ifdef PETACQ_HAVE_LIBSYSTEMD
#include <systemd/sd-daemon.h>
#endif

namespace petacq::daemon {

namespace {

void send([[maybe_unused]] const std::string& state) {
#ifdef PETACQ_HAVE_LIBSYSTEMD
    sd_notify(0, state.c_str());
#endif
}

std::uint64_t monotonic_us() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000U +
           static_cast<std::uint64_t>(now.tv_nsec) / 1'000U;
}

/// Three digits and a prefix: "12.3 M".
std::string short_number(double value) {
    const char* prefix = "";
    for (const char* next : {"k", "M", "G"}) {
        if (value < 999.5) break;
        value /= 1000;
        prefix = next;
    }
    const int decimals = *prefix == '\0' || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
    return fmt::format("{:.{}f} {}", value, decimals, prefix);
}

/// "12.3 M frames/s, " for a known rate; empty for an unknown one.
std::string rate(const nlohmann::json& rates, const char* key, const char* unit) {
    const auto found = rates.find(key);
    if (found == rates.end() || !found->is_number()) return "";
    std::string text = short_number(found->get<double>());
    if (text.back() == ' ') text.pop_back();
    return text + " " + unit + ", ";
}

std::string health_word(const nlohmann::json& health) {
    std::string text = health.value("state", "unknown");
    const auto reasons = health.find("reasons");
    if (reasons == health.end() || reasons->empty()) return text;
    text += " (" + reasons->front().value("message", "");
    if (reasons->size() > 1) text += fmt::format("; {} more", reasons->size() - 1);
    return text + ")";
}

}  // namespace

std::string notification_missing() {
#ifndef PETACQ_HAVE_LIBSYSTEMD
    if (std::getenv("NOTIFY_SOCKET") != nullptr) {
        return "the service manager waits for notification (Type=notify), but petacqd was built without "
               "libsystemd: use Type=exec and no WatchdogSec=";
    }
#endif
    return "";
}

void notify_ready() {
    send("READY=1");
}

void notify_reloading() {
    send(fmt::format("RELOADING=1\nMONOTONIC_USEC={}", monotonic_us()));
}

void notify_stopping(std::chrono::microseconds within) {
    send(fmt::format("STOPPING=1\nEXTEND_TIMEOUT_USEC={}", within.count()));
}

void notify_watchdog() {
    send("WATCHDOG=1");
}

void notify_status(std::string_view line) {
    std::string state = "STATUS=" + std::string(line);
    // Text after a line break would be another assignment.
    std::replace(state.begin(), state.end(), '\n', ' ');
    send(state);
}

void StatusNotifier::tell(const nlohmann::json& status) {
    std::string line = status_line(status);
    if (line == told_) return;
    notify_status(line);
    told_ = std::move(line);
}

std::optional<std::chrono::microseconds> watchdog_interval() {
#ifdef PETACQ_HAVE_LIBSYSTEMD
    std::uint64_t us = 0;
    if (sd_watchdog_enabled(0, &us) > 0) return std::chrono::microseconds(us);
#endif
    return std::nullopt;
}

std::string status_line(const nlohmann::json& status) {
    std::string text = status.value("state", "unknown");
    const auto run = status.find("run");
    if (run != status.end() && run->is_object() && run->contains("id")) {
        text += " " + run->at("id").get<std::string>();
    }
    text += ": ";
    if (const auto rates = status.find("rates"); rates != status.end()) {
        text += rate(*rates, "frames_per_s", "frames/s") + rate(*rates, "prompts_per_s", "prompts/s");
    }
    if (const auto health = status.find("health"); health != status.end()) text += health_word(*health);
    return text;
}

}  // namespace petacq::daemon
