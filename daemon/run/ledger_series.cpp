#include "daemon/run/ledger_series.hpp"

#include <fmt/format.h>
#include <cassert>
#include <iterator>
#include <string_view>
#include <system_error>
#include <utility>

#include "daemon/system/logging.hpp"
#include "net/base/thread.hpp"

namespace petacq::daemon {

namespace {

/// Text that may wait for the disk: some hundred rows.
constexpr std::size_t max_waiting = 64U << 10U;

std::string first_line() {
    std::string line = "from_ticks,to_ticks";
    for (const LedgerCounter* column : ledger_columns())
        line += std::string(",") + column->section + '.' + column->name;
    return line + '\n';
}

}  // namespace

LedgerSeries::LedgerSeries(const std::filesystem::path& file, std::chrono::milliseconds sync_interval)
    : sync_interval_(sync_interval), file_(file, IfExists::overwrite), waiting_(first_line()) {
    thread_ = net::start_thread("ledger series", [this] { run(); });
}

LedgerSeries::~LedgerSeries() {
    finish();
}

void LedgerSeries::start(std::uint64_t ticks, std::uint64_t row, const Ledger& total) {
    cadence_ = {ticks, row};
    start_ = total;
    run_ = {};
}

bool LedgerSeries::row_ends(std::uint64_t watermark, std::uint64_t first_frame) {
    if (!cadence_.row_ends(watermark, first_frame)) return false;
    start_rows(watermark, first_frame);
    return true;
}

void LedgerSeries::start_rows(std::uint64_t end, std::uint64_t first_frame) {
    if (!ticks_) ticks_ = cadence_.first_row(end, first_frame);
}

void LedgerSeries::add(std::uint64_t ticks, const Ledger& total) {
    {
        const net::MutexLock lock(mutex_);
        if (waiting_.size() >= max_waiting) return;
    }
    append(ticks, total);
}

void LedgerSeries::add_last(std::uint64_t ticks, std::uint64_t first_frame, const Ledger& total) {
    start_rows(ticks, first_frame);
    append(ticks, total);
}

void LedgerSeries::append(std::uint64_t ticks, const Ledger& total) {
    assert(ticks_);
    const Ledger run = total - start_;
    fmt::memory_buffer row;
    fmt::format_to(std::back_inserter(row), "{},{}", *ticks_, ticks);
    for (const LedgerCounter* column : ledger_columns()) {
        if (!run.loss_known() && column->name == std::string_view("lost")) {
            row.push_back(',');
            continue;
        }
        fmt::format_to(std::back_inserter(row), ",{}",
                       static_cast<std::int64_t>(column->of(run) - column->of(run_)));
    }
    row.push_back('\n');
    ticks_ = ticks;
    run_ = run;
    const net::MutexLock lock(mutex_);
    waiting_.append(row.data(), row.size());
    ++waiting_rows_;
    changed_.notify_one();
}

void LedgerSeries::finish() {
    {
        const net::MutexLock lock(mutex_);
        finishing_ = true;
        changed_.notify_one();
    }
    if (thread_.joinable()) thread_.join();
}

LedgerSeriesStatus LedgerSeries::status() const {
    const net::MutexLock lock(mutex_);
    return status_;
}

// After a failure nothing more is written.
template <class Action>
void LedgerSeries::unless_failed(Action action) {
    if (!status().failure.empty()) return;
    std::string failure;
    try {
        action();
    } catch (const std::system_error& error) {
        failure = error.what();
        log_error("ledger over time: {}; the run continues without it", failure);
    }
    const net::MutexLock lock(mutex_);
    status_.failure = failure;
}

void LedgerSeries::run() {
    using Clock = std::chrono::steady_clock;
    Clock::time_point sync_at = Clock::now() + sync_interval_;
    bool unsynced = false;
    for (bool last = false; !last;) {
        std::string text;
        std::uint64_t rows = 0;
        {
            net::MutexLock lock(mutex_);
            while (waiting_.empty() && !finishing_) {
                if (!unsynced) {
                    changed_.wait(lock.native());
                } else if (changed_.wait_until(lock.native(), sync_at) == std::cv_status::timeout) {
                    break;
                }
            }
            text = std::exchange(waiting_, {});
            rows = std::exchange(waiting_rows_, 0);
            last = finishing_;
        }
        unsynced = unsynced || !text.empty();
        unless_failed([&] {
            file_.identity().check();
            file_.append(text);
            const net::MutexLock lock(mutex_);
            status_.rows += rows;
        });
        if (last || (unsynced && Clock::now() >= sync_at)) {
            unless_failed([&] {
                file_.sync();
                const net::MutexLock lock(mutex_);
                status_.synced = status_.rows;
            });
            unsynced = false;
            sync_at = Clock::now() + sync_interval_;
        }
    }
    unless_failed([&] { file_.close(); });
}

}  // namespace petacq::daemon
