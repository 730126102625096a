#include "tools/petlm/resort/singles/second_ranges.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tools/petlm/records/run.hpp"

namespace petacq::petlm {
namespace {

constexpr std::uint64_t max_empty = 100;  ///< seconds before and after a long time without singles

/// At its first second; nullptr for a run without seconds, or with a file that says nothing.
std::unique_ptr<daemon::SecondsReader> seconds_of(const std::filesystem::path& run) {
    try {
        auto reader =
            std::make_unique<daemon::SecondsReader>(record_files(run, daemon::RecordKind::seconds).front());
        if (reader->next()) return reader;
    } catch (const daemon::NotListMode&) {
    }
    return nullptr;
}

gpu::TickRange range_of(const daemon::SecondsReader& reader) {
    return {reader.start(), reader.start() + reader.length()};
}

/// Looks for the times of singles.
class Times {
  public:
    /// `long_time`: blocks that last longer are read, as far as this host can: they may have silences.
    Times(std::span<const SinglesFiles> runs, std::uint64_t long_time)
        : runs_(runs), long_time_(long_time), read_(runs.size()) {}

    /// The earliest time from `time` on at which a run may have singles; UINT64_MAX: none has.
    std::uint64_t next(std::uint64_t time) {
        std::uint64_t next = UINT64_MAX;
        for (std::size_t i = 0; i < runs_.size(); ++i) {
            const auto blocks = runs_[i].blocks_in({time, UINT64_MAX});
            if (!blocks.empty()) next = std::min(next, next_in(i, blocks.front(), time));
        }
        return next;
    }

  private:
    struct Read {
        const SinglesFiles::SinglesBlock* block = nullptr;
        daemon::LoadedBlock memory;
        std::span<const gpu::Single> singles;
    };
    std::uint64_t next_in(std::size_t run, const SinglesFiles::SinglesBlock& block, std::uint64_t time) {
        if (time <= block.first_time) return block.first_time;
        if (block.last_time - block.first_time <= long_time_ || !runs_[run].is_here()) return time;
        Read& read = read_[run];
        if (read.block != &block) {
            read.singles = runs_[run].read(block, read.memory);
            read.block = &block;
        }
        return std::partition_point(read.singles.begin(), read.singles.end(),
                                    [&](const gpu::Single& s) { return s.time < time; })
            ->time;
    }

    const std::span<const SinglesFiles> runs_;
    const std::uint64_t long_time_;
    std::vector<Read> read_;  ///< of each run, the last block that was read
};

double mean_of_known(double a, double b) {
    if (std::isnan(a)) return b;
    return std::isnan(b) ? a : (a + b) / 2;
}

}  // namespace

std::vector<gpu::TickRange> second_ranges(const daemon::Intervals& times,
                                          std::span<const SinglesFiles> singles, std::uint64_t second) {
    std::vector<gpu::TickRange> ranges;
    Times of_singles(singles, 2 * max_empty * second);
    for (const gpu::TickRange& all : times.ranges()) {
        const auto add = [&](std::uint64_t start, std::uint64_t end) {
            ranges.push_back({start, end});
            return end;
        };
        const auto end_of = [&](std::uint64_t start) {
            return start < all.end && all.end - start > second - start % second
                       ? start + (second - start % second)
                       : all.end;
        };
        for (std::uint64_t start = all.start; start < all.end;) {
            // Up to the first second that may have singles.
            const std::uint64_t with_single = std::min(of_singles.next(start), all.end) / second;
            for (std::uint64_t empty = 0; empty < max_empty && start / second < with_single; ++empty)
                start = add(start, end_of(start));
            if (with_single > start / second + max_empty)
                start = add(start, (with_single - max_empty) * second);
            while (start / second < with_single)
                start = add(start, end_of(start));
            if (start < all.end) start = add(start, end_of(start));
        }
    }
    return ranges;
}

/// The share of a second for which the data of the modules arrived in one run.
class BoardReports::Live {
  public:
    Live(const RunSeconds& run, gpu::TickRange second)
        : run_(run), second_(second), shares_(run.told.size()), unknown_(run.told.size()) {}

    /// Of the second of the run that the reader is at.
    void add(const daemon::SecondsReader& reader) {
        const std::uint64_t inside = daemon::Intervals(range_of(reader)).intersect(second_).ticks();
        if (inside == 0) return;
        reported_ += inside;
        const auto* const lost = reader.find("lost");
        const bool whole = inside == range_of(reader).ticks() && lost != nullptr;
        lost_ += whole ? reader.values(*lost).number() : daemon::BoardReport::unknown;
        const auto* const live = reader.find("module_live");
        const auto* const singles = reader.find("module_singles");
        for (std::size_t m = 0; m < shares_.size(); ++m) {
            if (!run_.told[m]) continue;
            const double share = reader.values(*live).number(m);
            if (range_of(reader) == second_) {
                shares_[m] = share;
            } else if (!std::isnan(share)) {
                shares_[m] += share * (static_cast<double>(inside) / static_cast<double>(second_.ticks()));
            } else if (singles == nullptr || singles->count <= m || reader.values(*singles).number(m) > 0) {
                unknown_[m] = true;
            }
        }
    }
    /// Datagrams, if the run covers the second in part or not at all.
    [[nodiscard]] double lost() const {
        return run_.times.ticks_in(second_) > reported_ ? daemon::BoardReport::unknown : lost_;
    }
    /// [bdm] NaN: unknown.
    [[nodiscard]] std::vector<double> shares() const {
        std::vector<double> shares(shares_.size(), daemon::BoardReport::unknown);
        if (run_.times.ticks_in(second_) > reported_) return shares;
        for (std::size_t m = 0; m < shares.size(); ++m)
            if (run_.told[m] && !unknown_[m]) shares[m] = shares_[m];
        return shares;
    }

  private:
    const RunSeconds& run_;
    const gpu::TickRange second_;
    std::vector<double> shares_;  ///< those of one record as they stand there: the same bytes
    std::vector<bool> unknown_;
    std::uint64_t reported_ = 0;
    double lost_ = 0;
};

BoardReports::BoardReports(std::span<const ReportingRun> runs, HeardBoards heard,
                           const config::Geometry& geometry)
    : geometry_(geometry), heard_(heard) {
    lost_by_all_.estimated.resize(geometry.bdm_count);
    for (const ReportingRun& run : runs) {
        runs_.push_back({seconds_of(run.directory), run.times, std::vector<bool>(geometry.bdm_count)});
        std::vector<bool>& told = runs_.back().told;
        for (auto all = seconds_of(run.directory); all; all = all->next() ? std::move(all) : nullptr) {
            const auto* const live = all->find("module_live");
            if (live == nullptr || live->count != told.size()) break;
            for (std::size_t m = 0; m < told.size(); ++m)
                told[m] = told[m] || !std::isnan(all->values(*live).number(m));
        }
    }
}

BoardReports::RunReport BoardReports::of_run(RunSeconds& run, gpu::TickRange second) const {
    RunReport report{daemon::BoardReport::none(geometry_), false, run.times.ticks_in(second) > 0, {}};
    auto& reader = run.reader;
    Live live(run, second);
    while (reader && range_of(*reader).end < second.end) {
        live.add(*reader);
        if (!reader->next()) reader.reset();
    }
    if (reader) live.add(*reader);
    report.live = live.shares();
    if (!reader || reader->start() > second.start) {
        report.lost = live.lost();
        return report;
    }
    report.whole = range_of(*reader) == second;
    if (const auto* lost = reader->find("lost")) report.lost = reader->values(*lost).number();
    if (const auto* late = reader->find("late")) {
        if (late->type == daemon::FieldType::u64) report.late = reader->values(*late).whole();
    }
    const auto by_module = [&](const char* name, auto& numbers, auto value) {
        const auto* const field = reader->find(name);
        if (field == nullptr || field->count != geometry_.bdm_count) return;
        numbers.resize(field->count);
        const daemon::FieldValues values = reader->values(*field);
        for (std::size_t i = 0; i < numbers.size(); ++i)
            numbers[i] = value(values, i);
    };
    const auto number = [](const daemon::FieldValues& values, std::size_t i) { return values.number(i); };
    by_module("module_temperature", report.temperature_C, number);
    by_module("module_dead_time", report.dead_time, number);
    by_module("module_singles", report.singles, [](const daemon::FieldValues& values, std::size_t i) {
        return static_cast<std::uint64_t>(values.number(i));
    });
    return report;
}

daemon::BoardReport BoardReports::of(gpu::TickRange second, std::span<const std::uint64_t> singles) {
    std::vector<RunReport> runs;
    for (RunSeconds& run : runs_)
        runs.push_back(of_run(run, second));
    return heard_ == HeardBoards::same ? of_same(runs, second, singles) : of_others(runs);
}

daemon::BoardReport BoardReports::of_others(std::span<const RunReport> runs) const {
    daemon::BoardReport all = daemon::BoardReport::none(geometry_);
    all.lost = 0;
    for (const RunReport& run : runs) {
        all.lost += run.lost;
        all.late += run.late;
        for (std::size_t m = 0; m < geometry_.bdm_count; ++m) {
            all.temperature_C[m] = mean_of_known(all.temperature_C[m], run.temperature_C[m]);
            all.dead_time[m] = mean_of_known(all.dead_time[m], run.dead_time[m]);
            // Not a number is less than nothing here.
            if (!std::isnan(run.live[m]) && !(all.live[m] >= run.live[m])) all.live[m] = run.live[m];
        }
    }
    return all;
}

bool BoardReports::more(double a, double b) {
    return !std::isnan(a) && !(b >= a);
}

bool BoardReports::counted(const RunReport& run, std::size_t m, std::span<const std::uint64_t> singles) {
    return run.whole && m < run.singles.size() && run.singles[m] == singles[m];
}

std::vector<const BoardReports::RunReport*> BoardReports::most_of(
    std::span<const RunReport> runs, std::span<const std::uint64_t> singles) const {
    std::vector<const RunReport*> most(geometry_.bdm_count, &runs.front());
    for (std::size_t m = 0; m < most.size(); ++m) {
        for (const RunReport& run : runs) {
            const RunReport& other = *most[m];
            const bool tells_more =
                (run.whole && !other.whole) || (counted(run, m, singles) && !counted(other, m, singles));
            if (more(run.live[m], other.live[m]) || (!more(other.live[m], run.live[m]) && tells_more))
                most[m] = &run;
        }
    }
    return most;
}

void BoardReports::note_lost(double lost, gpu::TickRange second) {
    if (std::isnan(lost)) {
        lost_by_all_.unknown_ticks += second.ticks();
    } else {
        lost_by_all_.datagrams += lost;
    }
}

daemon::BoardReport BoardReports::of_same(std::span<const RunReport> runs, gpu::TickRange second,
                                          std::span<const std::uint64_t> singles) {
    const std::vector<const RunReport*> best = most_of(runs, singles);
    const auto has_all = [&](const RunReport& run, std::size_t m) {
        // A host may have heard what its disk did not take.
        if (!run.whole || m >= run.singles.size() || run.singles[m] > singles[m]) return false;
        return run.live[m] == 1 || (!more(best[m]->live[m], run.live[m]) && counted(run, m, singles));
    };
    for (const RunReport& run : runs) {
        std::size_t m = 0;
        while (m < best.size() && has_all(run, m))
            ++m;
        if (m < best.size()) continue;
        note_lost(run.lost, second);
        return run;
    }
    daemon::BoardReport all = daemon::BoardReport::none(geometry_);
    const auto covering =
        std::count_if(runs.begin(), runs.end(), [](const RunReport& r) { return r.covers; });
    bool known = true;
    for (std::size_t m = 0; m < best.size(); ++m) {
        const RunReport& run = *best[m];
        const auto known_of = [&](auto numbers) {
            double number = numbers(run);
            for (std::size_t i = 0; std::isnan(number) && i < runs.size(); ++i)
                number = numbers(runs[i]);
            return number;
        };
        all.temperature_C[m] = known_of([&](const RunReport& r) { return r.temperature_C[m]; });
        all.dead_time[m] = known_of([&](const RunReport& r) { return r.dead_time[m]; });
        all.live[m] = run.live[m];
        if (has_all(run, m)) continue;
        const bool counts = run.whole && m < run.singles.size() && run.singles[m] > 0;
        const bool unwritten = counts && run.singles[m] > singles[m];
        known = known && covering <= 1 && !unwritten;
        if (!unwritten && (covering <= 1 || !(run.live[m] < 1))) continue;
        lost_by_all_.estimated[m] += second.ticks();
        if (!counts) continue;
        const double gain = static_cast<double>(singles[m]) / static_cast<double>(run.singles[m]);
        all.live[m] = std::min(run.live[m] * gain, 1.0);
    }
    // Of the modules each was heard as a whole, though by different runs: nothing is missing.
    const bool nothing = known && covering > 1 &&
                         std::all_of(all.live.begin(), all.live.end(),
                                     [](double live) { return std::isnan(live) || live == 1; });
    for (const RunReport& run : runs) {
        if (!run.covers) continue;
        if ((covering == 1 && known) || (nothing && !std::isnan(run.lost))) all.lost = nothing ? 0 : run.lost;
        all.late = all.late == 0 ? run.late : std::min(all.late, run.late);
    }
    note_lost(all.lost, second);
    return all;
}

}  // namespace petacq::petlm
