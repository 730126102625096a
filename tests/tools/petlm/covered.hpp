// Files of records that say what they cover.
#pragma once

#include <iostream>
#include <nlohmann/json.hpp>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "daemon/coverage/coverage.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/intervals.hpp"
#include "tools/petlm/records/record_file.hpp"
#include "tools/petlm/records/record_source.hpp"

namespace petacq::test {

/// Of a run that starts at the beginning of the times, on 20 November 2026 at 18:45 UTC.
inline daemon::Coverage covered_by_run(const std::filesystem::path& run, daemon::Intervals times,
                                       double tick_ps) {
    daemon::Coverage coverage;
    coverage.tick_ps = tick_ps;
    coverage.anchor = daemon::TimeAnchor{
        times.span().start, std::chrono::system_clock::time_point(std::chrono::seconds(1'795'200'300))};
    coverage.intervals = std::move(times);
    coverage.activity = daemon::StatedActivity{"F-18", 6586.2, 0.9686, 12.0, coverage.anchor->utc};
    coverage.origin.runs = {{run.filename().string(), run}};
    return coverage;
}

template <class Records>
void write_covered(const std::filesystem::path& file, daemon::RecordKind kind, const Records& records,
                   const daemon::Coverage& coverage, nlohmann::json more = nlohmann::json::object()) {
    more["run_id"] = coverage.origin.runs.front().run_id;
    more["tick_ps"] = coverage.tick_ps;
    more["coverage"] = daemon::to_json(coverage);
    std::filesystem::remove(file);
    petlm::RecordFile out(file, kind, 512, more);
    out.append(std::span<const typename Records::value_type>(records));
    out.close();
}

inline daemon::Coverage coverage_in(const std::filesystem::path& target, daemon::RecordKind kind) {
    return petlm::RecordSource(target, kind).coverage();
}

/// Calls a command without what it prints.
template <class Command>
auto quietly(Command command) {
    struct Quiet {
        ~Quiet() {
            std::cout.rdbuf(out);
            std::cerr.rdbuf(err);
        }
        std::ostringstream ignored;
        std::streambuf* const out = std::cout.rdbuf(ignored.rdbuf());
        std::streambuf* const err = std::cerr.rdbuf(ignored.rdbuf());
    } const quiet;
    return command();
}

}  // namespace petacq::test
