#include "daemon/run/ledger_series.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cassert>
#include <iterator>
#include <string_view>
#include <utility>

#include "daemon/system/logging.hpp"

namespace petacq::daemon {

namespace {

/// Rows that may wait for the disk.
constexpr std::uint64_t max_waiting = 200;

std::string first_line() {
    std::string line = "from_ticks,to_ticks";
    for (const LedgerCounter* column : ledger_columns())
        line += std::string(",") + column->section + '.' + column->name;
    return line + '\n';
}

}  // namespace

LedgerSeries::LedgerSeries(const std::filesystem::path& file, std::chrono::milliseconds sync_interval)
    : file_(file, IfExists::overwrite), thread_("ledger series", work(), 0, sync_interval) {
    thread_.put_at_once(first_line());
}

DiskWork<std::string> LedgerSeries::work() {
    const auto sync = [this] {
        file_.sync();
        synced_.add(lines_.value() - synced_.value());
    };
    return {.write =
                [this](const std::string& line) {
                    file_.identity().check();
                    file_.append(line);
                    lines_.add();
                },
            .sync = sync,
            .close =
                [this, sync] {
                    sync();
                    file_.close();
                },
            .fail =
                [](const std::string& why) {
                    log_error("ledger over time: {}; the run continues without it", why);
                    return why;
                }};
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
    if (thread_.waiting() < max_waiting) append(ticks, total);
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
    thread_.put_at_once(fmt::to_string(row));
}

LedgerSeriesStatus LedgerSeries::status() const {
    const auto rows = [](std::uint64_t lines) { return lines - std::min<std::uint64_t>(lines, 1); };
    const std::uint64_t synced = synced_.value();
    return {rows(lines_.value()), rows(synced), thread_.failure()};
}

}  // namespace petacq::daemon
