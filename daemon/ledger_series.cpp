#include "daemon/ledger_series.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <iterator>
#include <system_error>
#include <utility>

#include "daemon/logging.hpp"

namespace petacq::daemon {

namespace {

/// Text that may wait for the disk: some hundred rows.
constexpr std::size_t most_waiting = 64U << 10U;

struct Column {
    const char* name;  ///< section and counter
    std::uint64_t (*of)(const Ledger&);
};

#define PETACQ_COLUMN(section, counter)                                                           \
    Column {                                                                                      \
#section "." #counter, [](const Ledger& l) -> std::uint64_t { return l.section.counter; } \
    }
constexpr std::array columns{
    PETACQ_COLUMN(datagrams, accepted),
    PETACQ_COLUMN(datagrams, lost),
    PETACQ_COLUMN(datagrams, dropped_kernel),
    PETACQ_COLUMN(datagrams, dropped_no_buffer),
    PETACQ_COLUMN(datagrams, duplicate),
    PETACQ_COLUMN(datagrams, malformed),
    PETACQ_COLUMN(datagrams, unknown_source),
    PETACQ_COLUMN(datagrams, too_many_sources),
    PETACQ_COLUMN(datagrams, reordered),
    PETACQ_COLUMN(datagrams, stray),
    PETACQ_COLUMN(datagrams, restarted),
    PETACQ_COLUMN(frames, received),
    PETACQ_COLUMN(frames, bad_marker),
    PETACQ_COLUMN(frames, bad_address),
    PETACQ_COLUMN(frames, outside_crystal),
    PETACQ_COLUMN(frames, time_jump),
    PETACQ_COLUMN(frames, bad_time),
    PETACQ_COLUMN(frames, late),
    PETACQ_COLUMN(frames, below_window),
    PETACQ_COLUMN(frames, above_window),
    PETACQ_COLUMN(frames, accepted),
    PETACQ_COLUMN(singles, decided),
    PETACQ_COLUMN(singles, prompts),
    PETACQ_COLUMN(singles, delayeds),
    PETACQ_COLUMN(singles, unpaired),
    PETACQ_COLUMN(singles, same_crystal),
    PETACQ_COLUMN(singles, geometry),
    PETACQ_COLUMN(singles, in_dropped_multiples),
    PETACQ_COLUMN(singles, in_oversize_multiples),
    PETACQ_COLUMN(singles, unused_in_multiples),
    PETACQ_COLUMN(singles, reused),
};
#undef PETACQ_COLUMN
constexpr std::string_view lost = "datagrams.lost";

std::string first_line() {
    std::string line = "from_ticks,to_ticks";
    for (const Column& column : columns)
        line += std::string(",") + column.name;
    return line + '\n';
}

}  // namespace

LedgerSeries::LedgerSeries(const std::filesystem::path& file, std::chrono::milliseconds sync_interval)
    : path_(file), sync_interval_(sync_interval), waiting_(first_line()) {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-vararg)
    file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file_ < 0) {
        throw std::system_error(errno, std::generic_category(), path_.string() + ": cannot make it");
    }
    thread_ = std::thread([this] { run(); });
    pthread_setname_np(thread_.native_handle(), "ledger series");
}

LedgerSeries::~LedgerSeries() {
    finish();
}

void LedgerSeries::begin(std::uint64_t ticks, const Ledger& total) {
    ticks_ = ticks;
    total_ = total;
}

void LedgerSeries::add(std::uint64_t ticks, const Ledger& total) {
    {
        const std::lock_guard lock(mutex_);
        if (waiting_.size() >= most_waiting) return;
    }
    append(ticks, total);
}

void LedgerSeries::end(std::uint64_t ticks, const Ledger& total) {
    append(ticks, total);
}

void LedgerSeries::append(std::uint64_t ticks, const Ledger& total) {
    fmt::memory_buffer row;
    fmt::format_to(std::back_inserter(row), "{},{}", ticks_, ticks);
    for (const Column& column : columns) {
        if (column.name == lost && !total.loss_known) {
            row.push_back(',');
            continue;
        }
        // Lost is taken back when what was missing comes after all.
        const auto grown = static_cast<std::int64_t>(column.of(total) - column.of(total_));
        fmt::format_to(std::back_inserter(row), ",{}", grown);
    }
    row.push_back('\n');
    ticks_ = ticks;
    total_ = total;
    const std::lock_guard lock(mutex_);
    waiting_.append(row.data(), row.size());
    ++waiting_rows_;
    changed_.notify_one();
}

void LedgerSeries::finish() {
    {
        const std::lock_guard lock(mutex_);
        finishing_ = true;
        changed_.notify_one();
    }
    if (thread_.joinable()) thread_.join();
}

LedgerSeriesStatus LedgerSeries::status() const {
    const std::lock_guard lock(mutex_);
    return status_;
}

void LedgerSeries::run() {
    using Clock = std::chrono::steady_clock;
    Clock::time_point sync_at = Clock::now() + sync_interval_;
    bool unsynced = false;
    for (bool last = false; !last;) {
        std::string text;
        std::uint64_t rows = 0;
        {
            std::unique_lock lock(mutex_);
            const auto due = [&] { return !waiting_.empty() || finishing_; };
            if (unsynced) {
                changed_.wait_until(lock, sync_at, due);
            } else {
                changed_.wait(lock, due);
            }
            text = std::exchange(waiting_, {});
            rows = std::exchange(waiting_rows_, 0);
            last = finishing_;
        }
        write(text);
        unsynced = unsynced || !text.empty();
        {
            const std::lock_guard lock(mutex_);
            if (status_.failure.empty()) status_.rows += rows;
        }
        if (last || (unsynced && Clock::now() >= sync_at)) {
            sync();
            unsynced = false;
            sync_at = Clock::now() + sync_interval_;
        }
    }
    if (::close(std::exchange(file_, -1)) != 0) fail(errno);
}

void LedgerSeries::sync() {
    if (::fdatasync(file_) != 0 && errno != EINVAL) {
        fail(errno);
        return;
    }
    const std::lock_guard lock(mutex_);
    if (status_.failure.empty()) status_.synced = status_.rows;
}

void LedgerSeries::write(std::string_view text) {
    if (!status().failure.empty()) return;
    while (!text.empty()) {
        const ssize_t wrote = ::write(file_, text.data(), text.size());
        if (wrote > 0) {
            text.remove_prefix(static_cast<std::size_t>(wrote));
        } else if (wrote == 0 || errno != EINTR) {
            fail(wrote == 0 ? EIO : errno);
            return;
        }
    }
}

void LedgerSeries::fail(int error) {
    const std::lock_guard lock(mutex_);
    if (!status_.failure.empty()) return;
    status_.failure = std::system_error(error, std::generic_category(), path_.string()).what();
    log_error("ledger over time: {}; the run goes on without it", status_.failure);
}

}  // namespace petacq::daemon
