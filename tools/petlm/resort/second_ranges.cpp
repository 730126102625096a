#include "tools/petlm/resort/second_ranges.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tools/petlm/records/run.hpp"

namespace petacq::petlm {
namespace {

constexpr std::uint64_t most_empty = 100;  ///< seconds before and after a long time without singles

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

std::vector<gpu::TickRange> second_ranges(const daemon::Intervals& times,
                                          std::span<const SinglesFiles> singles, std::uint64_t second) {
    std::vector<gpu::TickRange> ranges;
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
            const std::uint64_t with_single = std::min(next_single(singles, start), all.end) / second;
            for (std::uint64_t empty = 0; empty < most_empty && start / second < with_single; ++empty)
                start = add(start, end_of(start));
            if (with_single > start / second + most_empty)
                start = add(start, (with_single - most_empty) * second);
            while (start / second < with_single)
                start = add(start, end_of(start));
            if (start < all.end) start = add(start, end_of(start));
        }
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
