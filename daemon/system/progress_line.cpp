#include "daemon/system/progress_line.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "config/base/printable.hpp"

namespace petacq::daemon {

using Clock = std::chrono::steady_clock;

namespace {

std::string time_text(double seconds) {
    const auto s = static_cast<std::uint64_t>(std::lround(std::min(seconds, 1e9)));
    if (s < 120) return fmt::format("{} s", s);
    if (s < 7200) return fmt::format("{} min", (s + 30) / 60);
    return fmt::format("{} h {:02} min", (s + 30) / 3600, (s + 30) % 3600 / 60);
}

}  // namespace

std::string progress_text(const std::string& what, std::uint64_t done, std::uint64_t start,
                          std::uint64_t total, double seconds, ProgressUnit unit) {
    const bool bytes = unit == ProgressUnit::bytes;
    const auto all = static_cast<double>(total);
    std::string text = fmt::format("{}: {:.0f} %", what, 100 * static_cast<double>(done) / all);
    if (bytes) text += fmt::format(" of {:.1f} GB", all / 1e9);
    if (done <= start || seconds <= 0) return text;
    const double rate = static_cast<double>(done - start) / seconds;
    if (bytes) text += fmt::format(", {:.0f} MB/s", rate / 1e6);
    if (done < total) text += ", " + time_text(static_cast<double>(total - done) / rate) + " left";
    return text;
}

ProgressLine::ProgressLine(std::string what, std::uint64_t total, ProgressUnit unit)
    : what_(config::printable(what)),
      total_(std::max<std::uint64_t>(total, 1)),
      unit_(unit),
      terminal_(::isatty(STDERR_FILENO) == 1),
      start_(Clock::now()),
      last_(start_) {}

ProgressLine::~ProgressLine() {
    clear();
}

void ProgressLine::clear() {
    if (shown_) std::fputs("\r\033[K", stderr);
    shown_ = false;
}

void ProgressLine::show(std::uint64_t done) {
    if (!terminal_) return;
    const auto now = Clock::now();
    if (!start_count_) {
        start_count_ = done;
        start_ = now;
    }
    if (now - last_ < std::chrono::milliseconds(200)) return;
    last_ = now;
    shown_ = true;
    const double seconds = std::chrono::duration<double>(now - start_).count();
    std::fprintf(stderr, "\r\033[K%s",
                 progress_text(what_, done, *start_count_, total_, seconds, unit_).c_str());
}

}  // namespace petacq::daemon
