#include "tools/petlm/progress.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace petacq::petlm {

using Clock = std::chrono::steady_clock;

Progress::Progress(std::string what, std::uint64_t total, Unit unit)
    : what_(std::move(what)),
      total_(std::max<std::uint64_t>(total, 1)),
      unit_(unit),
      terminal_(::isatty(STDERR_FILENO) == 1),
      start_(Clock::now()),
      last_(start_) {}

Progress::~Progress() {
    if (shown_) std::fputs("\r\033[K", stderr);
}

void Progress::show(std::uint64_t done) {
    if (!terminal_) return;
    const auto now = Clock::now();
    if (now - last_ < std::chrono::milliseconds(200)) return;
    last_ = now;
    shown_ = true;
    const double seconds = std::chrono::duration<double>(now - start_).count();
    const double part = static_cast<double>(done) / static_cast<double>(total_);
    if (unit_ == Unit::steps) {
        std::fprintf(stderr, "\r\033[K%s: %.0f %%, %.0f s left", what_.c_str(), 100 * part,
                     seconds * (1 - part) / part);
        return;
    }
    std::fprintf(stderr, "\r\033[K%s: %.0f %% of %.1f GB, %.0f MB/s", what_.c_str(), 100 * part,
                 static_cast<double>(total_) / 1e9, static_cast<double>(done) / 1e6 / seconds);
}

}  // namespace petacq::petlm
