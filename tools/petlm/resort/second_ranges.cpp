#include "tools/petlm/resort/second_ranges.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tools/petlm/records/run.hpp"

namespace petacq::petlm {
namespace {

constexpr std::uint64_t most_empty = 100;  ///< seconds

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

/// Those in the interval, by their begin.
std::vector<gpu::TickRange> within(std::vector<gpu::TickRange> ranges, gpu::TickRange interval) {
    for (gpu::TickRange& range : ranges)
        range = {std::max(range.start, interval.start), std::min(range.end, interval.end)};
    std::erase_if(ranges, [](const gpu::TickRange& r) { return r.start >= r.end; });
    std::sort(ranges.begin(), ranges.end(),
              [](const gpu::TickRange& a, const gpu::TickRange& b) { return a.start < b.start; });
    return ranges;
}

/// The earliest time from `time` on at which a run may have singles; UINT64_MAX: none has.
std::uint64_t next_single(std::span<const SinglesFiles> runs, std::uint64_t time) {
    std::uint64_t next = UINT64_MAX;
    for (const SinglesFiles& run : runs) {
        const auto blocks = run.blocks_in({time, UINT64_MAX});
        if (!blocks.empty()) next = std::min(next, std::max(time, blocks.front().first_time));
    }
    return next;
}

double mean_of_known(double a, double b) {
    if (std::isnan(a)) return b;
    return std::isnan(b) ? a : (a + b) / 2;
}

}  // namespace

std::vector<gpu::TickRange> recorded_seconds(const std::filesystem::path& run) {
    std::vector<gpu::TickRange> ranges;
    if (const auto reader = seconds_of(run)) {
        do
            ranges.push_back(range_of(*reader));
        while (reader->next());
    }
    return ranges;
}

std::vector<gpu::TickRange> second_ranges(std::vector<gpu::TickRange> recorded,
                                          std::span<const SinglesFiles> singles, std::uint64_t second,
                                          gpu::TickRange interval) {
    const std::vector<gpu::TickRange> known = within(std::move(recorded), interval);
    std::uint64_t after_last = 0;  // of the singles
    for (const SinglesFiles& run : singles)
        for (const SinglesFiles::Block& block : run.blocks_in(interval))
            after_last = std::max(after_last, block.last_time + 1);
    after_last = std::min(after_last, interval.end);
    const std::uint64_t first = next_single(singles, interval.start);
    // The runs may have started within a second, or long before the first single.
    std::uint64_t start = first < after_last ? std::max(first / second * second, interval.start) : 0;
    if (!known.empty() && (first >= after_last || known.front().start <= first)) start = known.front().start;

    std::vector<gpu::TickRange> ranges;
    auto next = known.begin();  // the first that ends after `start`
    while (true) {
        while (next != known.end() && next->end <= start)
            ++next;
        if (next == known.end() && start >= after_last) return ranges;
        gpu::TickRange range{start, (start / second + 1) * second};
        const bool is_known = next != known.end() && next->start <= start;
        if (is_known) {
            range.end = next->end;
        } else {
            const std::uint64_t single = next_single(singles, start);
            const bool long_empty = single > start && (single - start) / second > most_empty;
            if (long_empty && single != UINT64_MAX) range.end = single / second * second;
            if (next == known.end()) range.end = std::min(range.end, after_last);
        }
        for (auto other = next; other != known.end() && other->start < range.end; ++other)
            if (other->start > start) range.end = other->start;
        ranges.push_back(range);
        start = range.end;
    }
}

std::vector<gpu::TickRange> seconds_in(gpu::TickRange stretch, std::vector<std::uint64_t> divisions,
                                       std::span<const SinglesFiles> singles, std::uint64_t second) {
    divisions.push_back(stretch.end);
    std::sort(divisions.begin(), divisions.end());
    std::vector<gpu::TickRange> ranges;
    for (const std::uint64_t division : divisions) {
        if (division <= stretch.start || division > stretch.end) continue;
        const auto some = second_ranges({}, singles, second, {stretch.start, division});
        ranges.insert(ranges.end(), some.begin(), some.end());
        stretch.start = division;
    }
    return ranges;
}

BoardReports::BoardReports(std::span<const std::filesystem::path> runs, const config::Geometry& geometry)
    : geometry_(geometry) {
    for (const std::filesystem::path& run : runs)
        readers_.push_back(seconds_of(run));
}

daemon::BoardReport BoardReports::of(gpu::TickRange second) {
    daemon::BoardReport all = daemon::BoardReport::none(geometry_);
    all.lost = 0;
    for (auto& reader : readers_) {
        while (reader && range_of(*reader).end < second.end)
            if (!reader->next()) reader.reset();
        if (!reader || reader->start() > second.start) {
            all.lost = daemon::BoardReport::unknown;
            continue;
        }
        const auto* const lost = reader->find("lost");
        all.lost += lost != nullptr ? reader->values(*lost).number() : daemon::BoardReport::unknown;
        if (const auto* late = reader->find("late")) {
            if (late->type == daemon::FieldType::u64) all.late += reader->values(*late).whole();
        }
        const auto by_module = [&](const char* name, std::vector<double>& numbers) {
            const auto* const field = reader->find(name);
            if (field == nullptr || field->count != numbers.size()) return;
            const daemon::FieldValues values = reader->values(*field);
            for (std::size_t i = 0; i < numbers.size(); ++i)
                numbers[i] = mean_of_known(numbers[i], values.number(i));
        };
        by_module("module_temperature", all.temperature_C);
        by_module("module_dead_time", all.dead_time);
    }
    return all;
}

}  // namespace petacq::petlm
